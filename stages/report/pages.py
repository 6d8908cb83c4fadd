"""The pages of the report: which tables and figures stand where, from reports/templates/sections.yaml."""

from stages.report.drawing import Drawing
from stages.report.tables import Grid
from stages.report.text_templates import fill_template

# stages that every run with a report has run
WITH_REPORT = ("analysis", "report")


def fill_pages(
    layout: dict, grids: dict[str, Grid], figures: dict[str, Drawing], facts: dict
) -> tuple[list[dict], list[dict]]:
    """Fills the pages with their sections, and lists the tables and figures that this run lacks.

    Tables and figures of our own are shown only with a number of this run or of released results, sections only with a
    table or figure. `layout` is sections.yaml, and templates may name `facts`.

    Returns:
        The pages, whose sections have filled paragraphs `text`, and `shown`, the figures and tables; and dictionaries
        of `item`, without a number of this run, and `link`, its address, empty if no page shows the item.
    """
    filled, not_run = [], {}
    for page in layout["pages"]:
        sections = []
        for section in page["sections"]:
            shown = find_shown(section, grids, figures)
            names = [item.name for item in shown]
            for item in find_items(section, grids, figures):
                # running analysis or report again would not help
                if not item.measured and item.stage not in WITH_REPORT:
                    link = f"{page['file']}.html#{item.name}" if item.name in names else ""
                    not_run[item.name] = {"item": item, "link": link}
            # a section without numbers says nothing
            if shown:
                paragraphs = [fill_template(template, **facts) for template in section["text"]]
                answer = fill_template(section.get("answer", ""), section=section["id"], **facts)
                text = [paragraph for paragraph in paragraphs if paragraph]
                sections.append({**section, "answer": answer, "text": text, "shown": shown})
        filled.append({**page, "sections": sections})
    return filled, list(not_run.values())


def find_shown(section: dict, grids: dict[str, Grid], figures: dict[str, Drawing]) -> list[Grid | Drawing]:
    """Selects the tables and figures of a section with something to show: a number of ours or of a paper."""
    items = find_items(section, grids, figures)
    return [item for item in items if not item.empty and (item.place or item.measured)]


def find_items(section: dict, grids: dict[str, Grid], figures: dict[str, Drawing]) -> list[Grid | Drawing]:
    """Finds the figures and then the tables of a section. `noise` stands for all figures `noise-PROTOCOL-SIZE`, too."""
    items = []
    for name in section["figures"]:
        items += [drawing for key, drawing in figures.items() if key.split("-")[0] == name]
    for name in section["tables"]:
        if name not in grids:
            raise ValueError(
                f"reports/templates/sections.yaml: section {section['id']} lists an unknown table {name!r}; add an "
                "entry to reports/templates/tables.yaml (own table) or stages/evidence/tables.yaml (published table)"
            )
        items.append(grids[name])
    return items
