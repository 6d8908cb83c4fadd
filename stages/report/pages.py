"""The pages of the report: which tables and figures stand where, from reports/templates/sections.yaml."""

from stages.report.drawing import Drawing
from stages.report.tables import Grid
from stages.report.text_templates import fill_template

# stages that every run with a report has run
WITH_REPORT = ("analysis", "report")


def fill_pages(layout: dict, grids: dict[str, Grid], figures: dict[str, Drawing], facts: dict) -> list[dict]:
    """Fills the pages with their sections.

    Tables and figures of our own are shown only with a number of this run or of released results, figures only with
    something to draw, and sections only with a table or figure.

    Args:
        layout: the content of sections.yaml; its `pages` have a name, `file`, and `sections`, each with a template
            `answer`, a list `text` of templates, and lists `tables` and `figures` of names.
        grids: every table by name.
        figures: every figure by name.
        facts: the values that the templates in `answer` and `text` may name.

    Returns:
        The pages of `layout`; of each section, `text` has the paragraphs and `shown` the figures and tables in order.
    """
    filled = []
    for page in layout["pages"]:
        sections = []
        for section in page["sections"]:
            shown = find_shown(section, grids, figures)
            # a section without numbers says nothing
            if shown:
                paragraphs = [fill_template(template, **facts) for template in section["text"]]
                answer = fill_template(section.get("answer", ""), section=section["id"], **facts)
                text = [paragraph for paragraph in paragraphs if paragraph]
                sections.append({**section, "answer": answer, "text": text, "shown": shown})
        filled.append({**page, "sections": sections})
    return filled


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


def list_not_run(layout: dict, grids: dict[str, Grid], figures: dict[str, Drawing]) -> list[dict]:
    """Lists the tables and figures without a number of this run or of released results.

    Readers thus see which stages to run. Tables and figures of the stages analysis and report are left out, because
    running these again would not help.

    Args:
        layout: the sections of the pages, as in sections.yaml.
        grids: every table by name.
        figures: every figure by name.

    Returns:
        Dictionaries with `item`, the table or figure, and `link`, its address, such as `appendix.html#tokens`; the
        address is empty if no page shows the item.
    """
    listed = {}
    for page in layout["pages"]:
        for section in page["sections"]:
            shown = [item.name for item in find_shown(section, grids, figures)]
            for item in find_items(section, grids, figures):
                link = f"{page['file']}.html#{item.name}" if item.name in shown else ""
                if not item.measured and item.stage not in WITH_REPORT:
                    listed[item.name] = {"item": item, "link": link}
    return list(listed.values())
