"""The pages of the report: which tables and figures stand where, from reports/templates/sections.yaml."""

from stages.report.figures import Drawing
from stages.report.tables import Grid
from stages.report.text_templates import fill_template


def fill_pages(
    layout: dict, grids: dict[str, Grid], figures: dict[str, Drawing], facts: dict
) -> tuple[list[dict], list[dict]]:
    """Fills the pages with their sections, and lists the tables and figures that have no number of this run.

    `layout` is the content of sections.yaml, whose texts may name `facts`. Tables and figures with nothing to show are
    left out, and so are sections without any.

    Returns:
        The pages of `layout`, with sections as `fill_section` returns them; and, for each table or figure without a
        number of this run, a dictionary of the `item` and a `link` to the item, empty if no page shows the item.
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
                sections.append(fill_section(section, shown, facts, on_first_page=not filled))
        filled.append({**page, "sections": sections})
    return filled, list(not_run.values())


def fill_section(section: dict, items: list[Grid | Drawing], facts: dict, on_first_page: bool) -> dict:
    """Fills the texts of a section, and sorts the tables and figures (`items`) into the lists that templates show.

    `figures` and `tables` are open, `folds` are folded, and `printed` are in the PDF.
    """
    lists = {"figures": [], "tables": [], "folds": [], "printed": []}
    for item in items:
        list_name = "figures" if item.kind == "figure" else "tables"
        is_closed = item.kind == "table" and item.name not in section.get("open", ())
        if item.folded or is_closed:
            list_name = "folds"
        lists[list_name].append(item)
        # the PDF has all items with a place in a paper, and the open items of the first page
        if item.place or (on_first_page and list_name != "folds"):
            lists["printed"].append(item)
    paragraphs = [fill_template(template, **facts) for template in section["text"]]
    return {
        **section,
        **lists,
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
