"""The pages of the report: which tables and figures stand where, from reports/templates/sections.yaml."""

from stages.report.figures import Drawing
from stages.report.tables import Grid
from stages.report.text_templates import fill_template

# stages that every run with a report has run
WITH_REPORT = ("analysis", "report")
# templates of HTML; a table of a section that is not listed under `open` is folded
FIGURE, LEDGER, OPENED, FOLDED = "figure.html", "ledger.html", "table.html", "folded.html"
# templates of LaTeX
PRINTED = {"figure": "figure.tex", "table": "input.tex"}
# in the PDF, the appendix has only the tables and figures of the papers
PRINTED_PAGES = ("report", "appendix")


def fill_pages(
    layout: dict, grids: dict[str, Grid], figures: dict[str, Drawing], facts: dict
) -> tuple[list[dict], list[dict]]:
    """Fills the pages with their sections, and lists the tables and figures that this run lacks.

    Tables and figures of our own are shown only with a number of this run or of released results, sections only with a
    table or figure. `layout` is sections.yaml, and templates may name `facts`.

    Returns:
        The pages, whose sections have filled paragraphs `text`, and `figures`, `folds` and `tables`, each with a
        template; and dictionaries of `item`, without a number of this run, and `link`, empty if no page shows the item.
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
                sections.append(fill_section(section, shown, facts))
        filled.append({**page, "sections": sections})
    return filled, list(not_run.values())


def fill_section(section: dict, shown: list[Grid | Drawing], facts: dict) -> dict:
    """Fills the texts of a section, and chooses a template for every table and figure."""
    opened = section.get("open", ())
    paragraphs = [fill_template(template, **facts) for template in section["text"]]
    items = {"figures": [], "folds": [], "tables": []}
    for item in shown:
        if item.kind == "figure":
            items["folds" if item.folded else "figures"].append((FIGURE, item))
        elif item.kind == "ledger":
            items["tables"].append((LEDGER, item))
        elif item.name in opened:
            items["tables"].append((OPENED, item))
        else:
            items["folds"].append((FOLDED, item))
    return {
        **section,
        **items,
        "answer": fill_template(section.get("answer", ""), **facts),
        "text": [paragraph for paragraph in paragraphs if paragraph],
    }


def list_printed(pages: list[dict]) -> list[dict]:
    """Lists the sections of the PDF with `printed`: figures that are not folded, tables of papers and open tables."""
    sections = []
    for page in pages:
        if page["file"] not in PRINTED_PAGES:
            continue
        whole = page["file"] == PRINTED_PAGES[0]
        for section in page["sections"]:
            items = []
            for _, item in [*section["figures"], *section["tables"], *section["folds"]]:
                ours = [*section["figures"], *section["tables"]] if whole else []
                if item.place or (item.kind in PRINTED and any(item is other for _, other in ours)):
                    items.append((PRINTED[item.kind], item))
            if items:
                sections.append({**section, "printed": items})
    return sections


def find_shown(section: dict, grids: dict[str, Grid], figures: dict[str, Drawing]) -> list[Grid | Drawing]:
    """Selects the tables and figures of a section with something to show: a number of ours or of a paper."""
    items = find_items(section, grids, figures)
    return [item for item in items if not item.empty and (item.place or item.measured)]


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
