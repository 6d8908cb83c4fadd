"""The pages of the report: which tables and figures stand where, from reports/templates/sections.yaml."""

from stages.report.drawing import Drawing
from stages.report.tables import Grid
from stages.report.words import say

MAIN, REST = "report", "appendix"  # names of pages, and of their HTML files
LEFT_OUT = {"id": "published_only", "title": "Published, with nothing of this run beside it", "text": []}


def pages(content: dict, grids: dict[str, Grid], figures: dict[str, Drawing], values: dict) -> list[dict]:
    """Fills the pages with their sections: the main page has what holds a number of this run or of released results.

    Of the rest, what the papers have moves to the appendix, a later page, and what is ours is left out; so is a figure
    with nothing to draw, such as that of a filter that drops nothing, and a section without a table or figure.

    Args:
        content: of sections.yaml; its `pages` have, in order, their name as `file`, and `sections`, each with a list
            `text` of templates, and lists `tables` and `figures` of names.
        grids, figures, values: every table and every figure, by name, and what the templates in `text` may name.

    Returns:
        The pages of `content`; of each section, `text` has its paragraphs and `shown` its tables and figures in order.
    """
    filled, published = [], []
    for page in content["pages"]:
        sections = []
        for section in page["sections"]:  # a paragraph whose template says nothing is left out
            text = [paragraph for template in section["text"] if (paragraph := say(template, **values))]
            sections.append(section | {"text": text, "shown": _shown(section, grids, figures)})
        if page["file"] == MAIN:
            published = [item for section in sections for item in section["shown"] if not item.measured and item.place]
            sections = [section | {"shown": [i for i in section["shown"] if i.measured]} for section in sections]
        if page["file"] == REST:
            sections.append(LEFT_OUT | {"shown": published})
        sections = [section | {"shown": [i for i in section["shown"] if not i.empty]} for section in sections]
        filled.append(page | {"sections": [section for section in sections if section["shown"]]})
    return filled


def places(filled: list[dict]) -> dict[str, str]:
    """Maps every table and figure on these pages to its address, `FILE.html#NAME`; on the main page `#NAME`."""
    return {
        item.name: f"{'' if page['file'] == MAIN else page['file'] + '.html'}#{item.name}"
        for page in filled
        for section in page["sections"]
        for item in section["shown"]
    }


def not_run(content: dict, grids: dict[str, Grid], figures: dict[str, Drawing]) -> list[Grid | Drawing]:
    """Lists, each once, the tables and figures without a number of this run or of released results.

    Those of the stages analysis and report are left out: both ran, and to run them again would fill nothing.

    Args:
        content, grids, figures: those of `pages`.
    """
    sections = (section for page in content["pages"] for section in page["sections"])
    items = {item.name: item for section in sections for item in _shown(section, grids, figures)}
    return [item for item in items.values() if not item.measured and item.stage not in ("analysis", "report")]


def _shown(section: dict, grids: dict[str, Grid], figures: dict[str, Drawing]) -> list[Grid | Drawing]:
    """The tables and then the figures of a section that this run has; NAME stands for all `NAME-PROTOCOL-SIZE`, too."""
    named = [drawing for name in section["figures"] for key, drawing in figures.items() if key.split("-")[0] == name]
    return [grids[name] for name in section["tables"]] + named
