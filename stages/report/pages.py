"""The pages of the report: which tables and figures stand where, from reports/templates/sections.yaml."""

from stages.report.drawing import Drawing
from stages.report.tables import Grid
from stages.report.text_templates import fill_template

# names of pages, and of their HTML files
MAIN, REST = "report", "appendix"
LEFT_OUT = {"id": "published_only", "title": "Published, with nothing of this run beside it", "text": []}


def fill_pages(layout: dict, grids: dict[str, Grid], figures: dict[str, Drawing], facts: dict) -> list[dict]:
    """Fills the pages with their sections.

    The main page has the tables and figures with a number of this run or of released results. All others of the papers
    move to the appendix, and all others of our own are left out. A figure with nothing to draw and a section without a
    table or figure are left out, too.

    Args:
        layout: the content of sections.yaml; its `pages` have a name, `file`, and `sections`, each with a list `text`
            of templates, and lists `tables` and `figures` of names.
        grids: every table by name.
        figures: every figure by name.
        facts: the values that the templates in `text` may name.

    Returns:
        The pages of `layout`; of each section, `text` has the paragraphs and `shown` the tables and figures in order.
    """
    published = []
    filled = []
    for page in layout["pages"]:
        sections = []
        for section in page["sections"]:
            shown = find_shown(section, grids, figures)
            if page["file"] == MAIN:
                published += [item for item in shown if item.place and not item.measured]
                shown = [item for item in shown if item.measured]
            paragraphs = [fill_template(template, **facts) for template in section["text"]]
            sections.append({**section, "text": [text for text in paragraphs if text], "shown": shown})
        if page["file"] == REST:
            sections.append({**LEFT_OUT, "shown": published})
        for section in sections:
            section["shown"] = [item for item in section["shown"] if not item.empty]
        filled.append({**page, "sections": [section for section in sections if section["shown"]]})
    return filled


def map_places(filled: list[dict]) -> dict[str, str]:
    """Maps every table and figure on these pages to its address, `FILE.html#NAME`; on the main page `#NAME`."""
    places = {}
    for page in filled:
        file = "" if page["file"] == MAIN else f"{page['file']}.html"
        for section in page["sections"]:
            for item in section["shown"]:
                places[item.name] = f"{file}#{item.name}"
    return places


def list_not_run(layout: dict, grids: dict[str, Grid], figures: dict[str, Drawing]) -> list[Grid | Drawing]:
    """Lists, each once, the tables and figures without a number of this run or of released results.

    Tables of the stages analysis and report are left out: both stages ran, and running them again would fill nothing.

    Args:
        layout: the content of sections.yaml.
        grids: every table by name.
        figures: every figure by name.
    """
    items = {}
    for page in layout["pages"]:
        for section in page["sections"]:
            for item in find_shown(section, grids, figures):
                if not item.measured and item.stage not in ("analysis", "report"):
                    items[item.name] = item
    return list(items.values())


def select_printed(filled: list[dict]) -> list[dict]:
    """Selects the sections of report.tex: the main page whole, and of the appendix what stands in a paper.

    Args:
        filled: the result of `fill_pages`.
    """
    sections = []
    for page in filled:
        for section in page["sections"]:
            if page["file"] == MAIN:
                sections.append(section)
            elif page["file"] == REST:
                of_papers = [item for item in section["shown"] if item.place]
                sections.append({**section, "text": [], "shown": of_papers})
    return [section for section in sections if section["shown"]]


def find_shown(section: dict, grids: dict[str, Grid], figures: dict[str, Drawing]) -> list[Grid | Drawing]:
    """Finds the tables and then the figures of a section; a figure NAME stands for all `NAME-PROTOCOL-SIZE`, too."""
    shown = [grids[name] for name in section["tables"]]
    for name in section["figures"]:
        for key, drawing in figures.items():
            if key.split("-")[0] == name:
                shown.append(drawing)
    return shown
