"""Renders the report: published, recomputed and reproduced side by side.

Reads data/analysis/, data/audit/, data/runs/*.json, data/filtered/ledger.csv, data/tokens/index.json,
data/tasks/statistics.csv, data/sentence_pairs/ledger.csv, data/published/{protocol.yaml,settings.csv,studies.csv}, the
operators file, params.yaml, dvc.lock (for its digest) and reports/templates/. Writes
reports/{report,claims,audit,appendix}.html, reports/report.tex, reports/tables/NAME.{csv,tex},
reports/figures/NAME.{svg,pdf,csv}, reports/results.{parquet,md} and reports/model_cards/OPERATOR-SIZE.md; if
params.yaml asks for a PDF, reports/report.pdf.
"""

import json
import shutil

import pandas as pd

from stages.evidence import published, scores, specifications
from stages.evidence.baselines import LABELS, MOST_FREQUENT
from stages.evidence.cells import PAPER_SIZES
from stages.evidence.fields import select_rows
from stages.files.paths import ANALYSIS, REPORTS, TOKENS
from stages.files.storage import make_temporary_sibling, write_atomically
from stages.report import (
    answer_figure,
    answers,
    cards,
    claims_and_audit,
    difference_figures,
    drawing,
    figures,
    first_screen,
    html,
    latex,
    looks,
    own_figures,
    own_tables,
    pages,
    paper_tables,
    read_results,
    robustness_figures,
    table_rows,
)
from stages.report.drawing import Drawing
from stages.report.tables import Grid, write_csv
from stages.report.text_templates import (
    TEMPLATES,
    describe_banner,
    fill_sentence,
    fill_template,
    gather_facts,
    read_content,
)
from stages.schema.settings import Settings

# entries of tables.yaml that are no tables, or a table for every source
SHARED_ENTRIES = ("forms", "settings", "open")


def build_tables(settings: Settings) -> dict[str, Grid]:
    """Builds every table of the report, by name."""
    cells = read_results.read_cells().fillna({"status": "", "metric": ""})
    checks = read_results.read_audit()
    grids = []
    specified = specifications.load()[0]
    # the stage parameters counts every size of params.yaml
    left_out = set(settings.models) - set(settings.sizes)
    earlier_edition = next(iter(published.EDITIONS))
    for table in specified.values():
        grids.append(paper_tables.build_paper_table((table,), cells, left_out))
        # two editions are one further table, with the lines of both
        if table.edition and table.name.startswith(earlier_edition):
            pair = (table, specified[table.edition])
            grids.append(paper_tables.build_paper_table(pair, cells, left_out))
    # claims and audit have pages of their own
    grids.append(claims_and_audit.build_claims(read_results.read_claims(), checks))
    grids.append(claims_and_audit.build_audit(checks))
    grids += build_own_tables(settings)
    return {grid.name: grid for grid in grids}


def build_own_tables(settings: Settings) -> list[Grid]:
    """Builds the tables that tables.yaml describes; the entries `settings` and `open` once for every source."""
    facts = {**gather_facts(settings), **gather_data()}
    read = table_rows.make_reader(settings)
    grids = []
    for name in read_content("tables"):
        if name not in SHARED_ENTRIES:
            grids.append(own_tables.build_table(name, read, **facts))
    for source, paper in published.PAPERS.items():
        facts["paper"] = paper
        for entry in ("settings", "open"):
            name = f"{entry}_{source}"
            described = {**read_content("tables")[entry], "frame": name}
            grids.append(own_tables.build_table(name, read, described, **facts))
    return grids


def gather_data() -> dict[str, object]:
    """Gathers values that our own tables' texts name beside the fields of a row."""
    index = json.loads((TOKENS / "index.json").read_text(encoding="utf-8"))
    documents = select_rows(table_rows.read_corpus(), fate="in")["documents"].sum()
    signatures = set()
    for record in read_results.read_records(["translation"]):
        signatures.update(record.get("sacrebleu", ()))
    return {
        "sequence_length": index["sequence_length"],
        "vocabulary_size": index["vocabulary_size"],
        # texts divide by the number of documents
        "documents_read": max(int(documents), 1),
        "labels": LABELS,
        "signatures": sorted(signatures),
        # the highest level of noise, a fraction
        "strongest": float(read_results.read_table("noise_curves")["level"].max()),
    }


def draw_figures(settings: Settings) -> dict[str, Drawing]:
    """Draws every figure of the report, by name."""
    cells = read_results.read_cells()
    frames = {
        "curves": read_results.read_table("curves"),
        "dots": read_dots(settings),
        "bars": pd.concat([read_results.read_table("bars"), figures.list_drop_shares(table_rows.read_corpus())]),
    }
    drawings = []
    for figure in specifications.load()[1].values():
        drawings.append(figures.draw_specified(figure, frames[figure.kind]))
    constant = read_results.read_baseline_scores(MOST_FREQUENT, "accuracy")
    drawings += robustness_figures.draw_noise(read_results.read_table("noise_curves"), cells, constant)
    drawings += robustness_figures.draw_transfer(read_results.read_table("transfer"), cells)
    # the operators of the papers and of this run, at the papers' largest size and the sizes of this run
    operators = list(dict.fromkeys([*read_content("sections")["operators"], *settings.operators]))
    sizes = list(dict.fromkeys([PAPER_SIZES[-1], *settings.sizes]))
    drawings.append(own_figures.draw_saved(read_results.read_summaries(), operators, sizes))
    contrasts = read_results.read_contrasts()
    drawings += difference_figures.draw_differences(contrasts)
    drawings.append(answer_figure.draw_answers(cells))
    drawings += own_figures.draw_translation(read_results.read_table("translation_curves"))
    return {figure.name: figure for figure in drawings}


def read_dots(settings: Settings) -> pd.DataFrame:
    """Reads the GLUE scores (times 100) of single runs; `constant` is the score of a constant answer."""
    runs = read_results.read_table("runs")
    runs = runs[runs["evaluated_on"] == scores.GLUE_SCORE]
    runs = runs.assign(score=100 * runs["value"], quantity=scores.GLUE_SCORE)
    constant = {}
    for protocol in settings.protocols:
        baseline = read_results.read_baseline_scores(MOST_FREQUENT, "score", protocol)
        constant[protocol] = baseline.get(scores.GLUE_SCORE)
    # the baseline is fitted to the data of this run
    of_this_run = runs["source"] == "reproduced"
    runs["constant"] = runs["protocol"].map(constant).where(of_this_run).astype(float)
    return runs.drop(columns=["evaluated_on", "value"])


def fill_context(settings: Settings, rows: list[dict], grids: dict[str, Grid], drawings: dict[str, Drawing]) -> dict:
    """Gathers the values that the templates name; `rows` are those of the first screen."""
    layout = read_content("sections")
    facts = {**gather_facts(settings), **answers.gather_facts(settings, rows)}
    sentences = [fill_template(sentence, **facts) for sentence in read_content("sentences")["sentences"].values()]
    filled, not_run = pages.fill_pages(layout, grids, drawings, facts)
    return {
        **layout,
        **facts,
        "banner": describe_banner(settings),
        "scales": first_screen.fit_columns(rows),
        "numbers": grids["first_screen"],
        "answer": fill_sentence("answer", **facts),
        "sentences": [sentence for sentence in sentences if sentence],
        "picture_note": fill_sentence("picture_note", **facts),
        "pages": filled,
        "not_run": not_run,
    }


def write_report(settings: Settings, context: dict, grids: dict[str, Grid], drawings: dict[str, Drawing]) -> None:
    """Writes all files of the report. Old tables, figures and cards are deleted."""
    tex = latex.make_environment(TEMPLATES)
    with make_temporary_sibling(REPORTS / "tables") as folder:
        for name, grid in grids.items():
            write_atomically(folder / f"{name}.csv", write_csv(grid.csv))
            write_atomically(folder / f"{name}.tex", tex.get_template("table.tex").render(grid=grid))
    drawing.write_figures(REPORTS / "figures", drawings.values())
    with make_temporary_sibling(REPORTS / "model_cards") as folder:
        for name, card in cards.render_cards(settings).items():
            write_atomically(folder / f"{name}.md", card)
    template = html.make_environment(TEMPLATES).get_template("report.html")
    for page in context["pages"]:
        write_atomically(REPORTS / f"{page['file']}.html", template.render({**context, "page": page}))
    write_atomically(REPORTS / "report.tex", tex.get_template("report.tex").render(context))
    with make_temporary_sibling(REPORTS / "results.parquet") as path:
        shutil.copyfile(ANALYSIS / "results.parquet", path)
    write_atomically(REPORTS / "results.md", (TEMPLATES / "results.md").read_text(encoding="utf-8"))


def main(settings: Settings) -> None:
    """Makes all tables and figures, writes the report and, if params.yaml asks for it, its PDF."""
    for name, variant in settings.variants.items():
        looks.PARENTS[name] = variant.operator
    rows = first_screen.build_rows(settings)
    grids = build_tables(settings)
    grids["first_screen"] = first_screen.list_numbers(rows)
    drawings = draw_figures(settings)
    write_report(settings, fill_context(settings, rows, grids, drawings), grids, drawings)
    if settings.report.pdf:
        latex.compile_pdf(REPORTS, "report")
