"""The pages of the report: which tables and figures stand where, from reports/templates/sections.yaml."""

from stages.report.figures import Drawing
from stages.report.tables import Grid
from stages.report.text_templates import fill_template


def fill_pages(
    layout: dict, grids: dict[str, Grid], figures: dict[str, Drawing], facts: dict
) -> tuple[list[dict], list[dict]]:
    """Fills the pages with their sections, and lists the tables and figures that this run lacks.

    `layout` is sections.yaml, and templates may name `facts`. A section has only what has something to show, and a
    section without tables and figures is left out.

    Returns:
        The pages, whose sections have filled paragraphs `text`, and `figures`, `folds` (tables and figures that are
        folded) and `tables`, and `printed`, the part for the PDF; and dictionaries of `item`, without a number of this
        run, and `link`, empty if no page shows the item.
    """
    filled, not_run = [], {}
    for page in layout["pages"]:
        sections = []
        for section in page["sections"]:
            items = find_items(section, grids, figures)
            for item in items:
                # every run with a report has run these two stages, so running them again would not help
                if not item.measured and item.stage not in ("analysis", "report"):
                    link = f"{page['file']}.html#{item.name}" if item.shown else ""
                    not_run[item.name] = {"item": item, "link": link}
            shown = [item for item in items if item.shown]
            if shown:
                sections.append(fill_section(section, shown, facts, whole=not filled))
        filled.append({**page, "sections": sections})
    return filled, list(not_run.values())


def fill_section(section: dict, items: list[Grid | Drawing], facts: dict, whole: bool) -> dict:
    """Fills the texts of a section, and sorts the items; the PDF has all open items if `whole`, or else the papers'."""
    sorted_items = {"figures": [], "tables": [], "folds": [], "printed": []}
    for item in items:
        place = "figures" if item.kind == "figure" else "tables"
        is_closed = item.kind == "table" and item.name not in section.get("open", ())
        if item.folded or is_closed:
            place = "folds"
        sorted_items[place].append(item)
        if item.place or (whole and place != "folds"):
            sorted_items["printed"].append(item)
    paragraphs = [fill_template(template, **facts) for template in section["text"]]
    return {
        **section,
        **sorted_items,
        "answer": fill_template(section.get("answer", ""), **facts),
        "text": [paragraph for paragraph in paragraphs if paragraph],
    }


def find_items(section: dict, grids: dict[str, Grid], figures: dict[str, Drawing]) -> list[Grid | Drawing]:
    """Finds the figures and then the tables of a section; ValueError for an unknown name."""
    items = []
    for kind, known in (("figure", figures), ("table", grids)):
        for name in section[f"{kind}s"]:
            if name not in known:
                raise ValueError(
                    f"reports/templates/sections.yaml: section {section['id']} lists an unknown {kind} {name!r}; add "
                    f"an entry to reports/templates/{kind}s.yaml (a published table: stages/evidence/tables.yaml)"
                )
            items.append(known[name])
    return items
