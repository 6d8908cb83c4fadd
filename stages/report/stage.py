"""Renders the report: published, recomputed and reproduced side by side.

Reads data/analysis/, data/audit/, data/runs/*.json, data/filtered/ledger.csv, data/tokens/index.json,
data/tasks/statistics.csv, data/sentence_pairs/ledger.csv, data/published/, the operators file, params.yaml and
reports/templates/. Writes reports/{report,claims,audit,appendix}.html, reports/report.tex,
reports/tables/NAME.{csv,tex}, reports/figures/NAME.{svg,pdf,csv}, reports/results.{parquet,md} and
reports/model_cards/OPERATOR-SIZE.md; if params.yaml asks for a PDF, reports/report.pdf.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from stages.files.paths import ANALYSIS, REPORTS
from stages.files.storage import make_temporary_sibling, write_atomically
from stages.report import all_tables, cards, figures, frames, html, latex, looks, pages
from stages.report.facts import describe_banner, gather_facts, gather_findings
from stages.report.figures import Drawing
from stages.report.tables import Grid, write_csv
from stages.report.text_templates import TEMPLATES, fill_sentence, fill_template, read_content
from stages.schema.settings import Settings

# name and content
File = tuple[str, str | bytes]


def main(settings: Settings) -> None:
    """Makes all tables and figures, and writes the report."""
    # a variant is drawn in the colour of its operator
    for name, variant in settings.variants.items():
        looks.PARENTS[name] = variant.operator
    read = frames.make_reader(settings)
    facts = {
        **gather_facts(settings),
        **gather_findings(settings, read),
        # shown where no verdict was found
        "nothing": read_content("sentences")["nothing"],
    }
    grids = all_tables.build_tables(settings, read)
    drawings = {}
    for name, entry in read_content("figures").items():
        drawings[name] = figures.draw_figure(name, figures.Entry(**entry), read, **facts)
    template = latex.make_environment(TEMPLATES).get_template("table.tex")
    write_folder("tables", list_files(grids, lambda grid: {"tex": template.render(grid=grid)}))
    write_folder("figures", list_files(drawings, lambda drawing: drawing.files))
    write_folder("model_cards", cards.render_cards(settings))
    write_pages(fill_context(settings, facts, grids, drawings))
    # a copy of all observations, and a text that describes the columns
    with make_temporary_sibling(REPORTS / "results.parquet") as path:
        shutil.copyfile(ANALYSIS / "results.parquet", path)
    write_atomically(REPORTS / "results.md", (TEMPLATES / "results.md").read_text(encoding="utf-8"))
    if settings.report.pdf:
        latex.compile_pdf()


def fill_context(
    settings: Settings,
    facts: dict[str, object],
    grids: dict[str, Grid],
    drawings: dict[str, Drawing],
) -> dict:
    """Gathers the values that report.html, report.tex and the templates that they include may name."""
    layout = read_content("sections")
    templates = read_content("sentences")["sentences"]
    sentences = [fill_template(template, **facts) for template in templates.values()]
    filled, not_run = pages.fill_pages(layout, grids, drawings, facts)
    return {
        **layout,
        **facts,
        "banner": describe_banner(settings),
        # the first screen: the picture, the picture for narrow screens, the table of its numbers, and texts
        "picture": drawings["first_screen"],
        "narrow": drawings["first_screen_narrow"],
        "numbers": grids["first_screen"],
        "answer": fill_sentence("answer", **facts),
        "sentences": [sentence for sentence in sentences if sentence],
        "picture_note": fill_sentence("picture_note", **facts),
        "pages": filled,
        "not_run": not_run,
    }


def write_folder(name: str, files: Iterable[File]) -> None:
    """Writes files into a folder of reports; old files are deleted."""
    with make_temporary_sibling(REPORTS / name) as folder:
        for file, content in files:
            write_atomically(folder / file, content)


def list_files(items: dict[str, Any], render: Callable[[Any], dict[str, str | bytes]]) -> Iterator[File]:
    """Yields the files of all tables or figures: NAME.csv, and what `render` returns by extension, as {"tex": ...}."""
    for name, item in items.items():
        yield f"{name}.csv", write_csv(item.csv)
        for extension, content in render(item).items():
            yield f"{name}.{extension}", content


def write_pages(context: dict) -> None:
    """Writes the pages, and the whole report in LaTeX."""
    template = html.make_environment(TEMPLATES).get_template("report.html")
    for page in context["pages"]:
        text = template.render(context, page=page, first=page is context["pages"][0])
        write_atomically(REPORTS / f"{page['file']}.html", text)
    document = latex.make_environment(TEMPLATES).get_template("report.tex")
    write_atomically(REPORTS / "report.tex", document.render(context))
