"""The pages of the report: which tables and figures stand where, from reports/templates/sections.yaml."""

from stages.report.drawing import Drawing
from stages.report.tables import Grid
from stages.report.words import say

MAIN, REST = "report", "appendix"
LEFT_OUT = {"id": "published_only", "title": "Published, with nothing of this run beside it", "text": []}


def pages(content: dict, grids: dict[str, Grid], figures: dict[str, Drawing], values: dict) -> list[dict]:
    """The pages with their sections filled.

    On the main page stands what holds a number of this run or of released results; the rest moves to the appendix, and
    a section that is left with nothing is left out.

    Args:
        content: of sections.yaml.
        grids: every table by name.
        figures: every figure by name.
        values: what the texts may name.
    """
    made, rest = [], []
    for page in content["pages"]:
        sections = [_section(section, grids, figures, values) for section in page["sections"]]
        if page["file"] == MAIN:
            rest = [item for section in sections for item in section["items"] if not item.measured]
            sections = [_measured(section) for section in sections]
            sections = [section for section in sections if section["items"]]
        if page["file"] == REST:
            sections = [*sections, LEFT_OUT | _split([item for item in rest if _shows(item)])]
        sections = [_drawn(section) for section in sections]
        made.append(page | {"sections": [section for section in sections if section["items"]]})
    return made


def places(made: list[dict]) -> dict[str, str]:
    """The address of every table and figure that stands on a page; a figure of one run also by its kind."""
    shown = {}
    for page in made:
        for item in (item for section in page["sections"] for item in section["items"]):
            address = f"{'' if page['file'] == MAIN else page['file'] + '.html'}#{item.name}"
            shown |= {item.name: address, item.name.split("-")[0]: address}
    return shown


def not_run(
    made: list[dict], content: dict, grids: dict[str, Grid], figures: dict[str, Drawing]
) -> list[tuple[str, str, str]]:
    """What this run did not measure: (title, address of the published numbers, command that makes it)."""
    shown, listed = places(made), {}
    for page in content["pages"]:
        for section in page["sections"]:
            for item in _section(section, grids, figures, {}, fill=False)["items"]:
                if not item.measured and item.stage not in ("analysis", "report"):
                    title = f"{item.place}: {item.title}" if item.place else item.title
                    listed[item.name] = (title, shown.get(item.name, "") if _shows(item) else "", item.command)
    return list(listed.values())


def _section(section: dict, grids: dict, figures: dict, values: dict, fill: bool = True) -> dict:
    items = [grids[name] for name in section["tables"]]
    items += [drawing for name in section["figures"] for drawing in _named(figures, name)]
    text = [filled for paragraph in section["text"] if (filled := say(paragraph, **values))] if fill else []
    return section | {"text": text} | _split(items)


def _split(items: list) -> dict:
    return {
        "items": items,
        "tables": [item for item in items if isinstance(item, Grid)],
        "figures": [item for item in items if isinstance(item, Drawing)],
    }


def _drawn(section: dict) -> dict:
    """The section without figures in which there is nothing to draw, such as a ledger without drops."""
    return section | _split([item for item in section["items"] if isinstance(item, Grid) or item.pieces])


def _measured(section: dict) -> dict:
    return section | _split([item for item in section["items"] if item.measured])


def _shows(item: Grid | Drawing) -> bool:
    """Whether anything is to be seen where this run has nothing: what a paper prints."""
    return bool(item.place) and not (isinstance(item, Drawing) and not item.pieces)


def _named(figures: dict[str, Drawing], name: str) -> list[Drawing]:
    """A figure that the layout names, or those of every protocol and size: `NAME-PROTOCOL-SIZE`."""
    return [drawing for key, drawing in figures.items() if key.split("-")[0] == name]
