"""Renders the report: published, recomputed and reproduced side by side.

Reads data/analysis/, data/audit/, data/runs/*.json, data/filtered/ledger.csv, data/tokens/index.json,
data/tasks/statistics.csv, data/published/{protocol.yaml,settings.csv,studies.csv}, params.yaml, dvc.lock (for its
digest) and reports/templates/. Writes reports/{report,claims,audit,appendix}.html, reports/{report,supplement}.tex,
reports/tables/NAME.{csv,tex}, reports/figures/NAME.{svg,pdf,csv}, reports/results.{parquet,md} and
reports/model_cards/OPERATOR-SIZE.md; where params.yaml asks for them, reports/{report,supplement}.pdf.
"""

import json
import shutil
from functools import partial

import pandas as pd

from stages.evidence import cells, published, scores, specifications
from stages.evidence.baselines import LABELS, MOST_FREQUENT
from stages.files.paths import ANALYSIS, REPORTS, TOKENS
from stages.files.storage import temporary_sibling, write_atomically
from stages.report import (
    answer_figure,
    cards,
    deviations,
    drawing,
    first_screen,
    frames,
    html,
    inputs,
    latex,
    names,
    own_figures,
    own_tables,
    pages,
    paper_tables,
    robustness_figures,
    verdicts,
)
from stages.report.drawing import Drawing
from stages.report.figures import draw, shares
from stages.report.tables import Grid, csv_of
from stages.report.words import TEMPLATES, content, facts_of, sentence
from stages.schema.settings import Settings

PRINTED = ("report", "supplement")  # the main page, and what stands on the other pages


def tables(settings: Settings) -> dict[str, Grid]:
    """Builds every table of the report, by name."""
    filled = inputs.read("cells", dtype=cells.TYPES).fillna({"status": "", "metric": ""})
    claims, checks = inputs.read("claims").fillna(""), inputs.audited()  # an empty text is read as NaN
    specified, earlier = specifications.load()[0], next(iter(published.EDITIONS))
    of_papers = [(table,) for table in specified.values()]  # each by itself, and those of two editions also as one
    of_papers += [
        (table, specified[table.edition])
        for name, table in specified.items()
        if table.edition and name.startswith(earlier)
    ]
    grids = [
        *(paper_tables.paper_table(editions, filled, settings.sizes) for editions in of_papers),
        verdicts.claims(claims, checks),
        verdicts.audit(checks),
        *selected_tables(settings),
    ]
    return {grid.name: grid for grid in grids}


def selected_tables(settings: Settings) -> list[Grid]:
    """Builds the tables of our own, from the entries of tables.yaml; `settings` and `open` once for every source."""
    facts = facts_of(settings) | data_of(settings)
    read = frames.reader(settings)
    by_source = ("forms", "settings", "open")
    grids = [own_tables.table(name, read, **facts) for name in content("tables") if name not in by_source]
    for source, paper in published.PAPERS.items():
        code = "Authors' code, where the paper is silent" if source == "courtois2024" else "Setup that it follows"
        of_source = facts | {"paper": paper, "code_heading": code}
        for name, like in ((frames.of_settings(source), "settings"), (f"open_{source}", "open")):
            grids.append(own_tables.table(name, read, content("tables")[like] | {"frame": name}, **of_source))
    return grids


def data_of(settings: Settings) -> dict[str, object]:
    """Gathers what the texts of tables of our own name in addition to the fields of their rows."""
    index = json.loads((TOKENS / "index.json").read_text(encoding="utf-8"))
    read = inputs.select(frames.corpus(), fate="in")["documents"].sum()
    signatures = {text for record in inputs.records(["translation"]) for text in record.get("sacrebleu", ())}
    return {
        "sequence_length": index["sequence_length"],
        "vocabulary_size": index["vocabulary_size"],
        "documents_read": max(int(read), 1),  # texts divide by it
        "labels": LABELS,
        "signatures": sorted(signatures),  # that sacrebleu gave with the scores of this run's translations
        "strongest": float(inputs.read("noise_curves")["level"].max()),  # noise, a fraction
    }


def drawings(settings: Settings) -> dict[str, Drawing]:
    """Draws every figure of the report, by name."""
    runs = inputs.read("runs")  # scores, fractions, of this run and of the released results
    runs = runs[runs["evaluated_on"] == scores.GLUE_SCORE].assign(score=lambda rows: 100 * rows["value"])
    constant = partial(inputs.baseline_scores, MOST_FREQUENT)  # scores of a constant answer, on this run's data
    score = {name: constant("score", name).get(scores.GLUE_SCORE) for name in settings.protocols}
    runs["constant"] = runs["protocol"].map(score).where(runs["source"] == "reproduced").astype(float)
    frame_of = {
        "curves": inputs.read("curves"),
        "dots": runs.drop(columns=["evaluated_on", "value"]).assign(quantity=scores.GLUE_SCORE),
        "bars": pd.concat([inputs.read("bars"), shares(frames.corpus())]),
    }
    figures = [draw(figure, frame_of[figure.kind]) for figure in specifications.load()[1].values()]
    filled = inputs.read("cells", dtype=cells.TYPES)
    figures += robustness_figures.noise(inputs.read("noise_curves"), filled, constant("accuracy"))
    figures += robustness_figures.transfer(inputs.read("transfer"), filled)
    figures += own_figures.translation(inputs.read("translation_curves"))
    figures += own_figures.waiting(inputs.read("waiting"))
    figures.append(answer_figure.answer(inputs.summaries(), settings))
    return {figure.name: figure for figure in figures}


def context(settings: Settings, grids: dict[str, Grid], figures: dict[str, Drawing]) -> dict:
    """Gathers what the templates are filled with: what all pages share, and the pages.

    Args:
        settings, grids, figures: those of the run, every table by name, and every figure by name.
    """
    layout, summaries = content("sections"), inputs.summaries()
    matrix = first_screen.matrix(settings, summaries)
    filled = pages.pages(layout, grids, figures, texts(settings, matrix))
    tasks = inputs.task_statistics()
    subsets = sorted(tasks.loc[tasks["subset"], "task"].map(names.task).unique())
    differing = deviations.differing(frames.compared(settings, "courtois2024"))
    return layout | {
        "banner": sentence("banner", **first_screen.of_run(settings, summaries)),
        "matrix": matrix,
        "one_a_source": first_screen.one_a_source,
        "places": pages.places(filled),
        "sentences": first_screen.sentences(settings, summaries, inputs.audited()),
        "more": sentence("data", subsets=subsets, differing=differing, remark=settings.report.remark),
        "answer": figures["answer"],
        "pages": filled,
        "not_run": pages.not_run(layout, grids, figures),
    }


def texts(settings: Settings, matrix: list[dict]) -> dict[str, object]:
    """Gathers what the texts of the sections name: options of the analysis, and the answers that this run gives."""
    totals = frames.reader(settings)("audit_totals")
    return facts_of(settings) | {
        "answer": lambda column: first_screen.answer(column, matrix),
        "differs": sentence("differs", **first_screen.differing()),
        "studied": sentence("studied", rows=inputs.studies().to_dict("records")),
        "squad": sentence("squad", scores=first_screen.questions(inputs.read("cells", dtype=cells.TYPES))),
        "translated": sentence(
            "translated", rows=inputs.select(inputs.read("translation"), metric="beam_bleu").to_dict("records")
        ),
        "audited": sentence("audited", rows=totals.to_dict("records"), open=int(totals["not_decided"].sum())),
    }


def write(filled: dict, grids: dict[str, Grid], figures: dict[str, Drawing], settings: Settings) -> None:
    """Writes all files; the folders of tables, figures and cards are replaced as a whole.

    Args:
        filled: what the templates are filled with, as `context` returns it.
        grids, figures, settings: those of `context`.
    """
    tex = latex.environment(TEMPLATES)
    with temporary_sibling(REPORTS / "tables") as folder:
        for name, grid in grids.items():
            write_atomically(folder / f"{name}.csv", csv_of(grid.csv))
            write_atomically(folder / f"{name}.tex", tex.get_template("table.tex").render(grid=grid))
    drawing.write(REPORTS / "figures", figures.values())
    with temporary_sibling(REPORTS / "model_cards") as folder:
        for name, card in cards.cards(settings, inputs.summaries()).items():
            write_atomically(folder / f"{name}.md", card)
    for page in filled["pages"]:
        write_atomically(REPORTS / f"{page['file']}.html", html.render(TEMPLATES, filled | {"page": page}))
    for name in PRINTED:
        write_atomically(REPORTS / f"{name}.tex", tex.get_template(f"{name}.tex").render(filled))
    with temporary_sibling(REPORTS / "results.parquet") as path:
        shutil.copyfile(ANALYSIS / "results.parquet", path)
    write_atomically(REPORTS / "results.md", cards.results_page(pd.read_parquet(ANALYSIS / "results.parquet")))


def main(settings: Settings) -> None:
    """Makes all tables and figures, writes the report and, where params.yaml asks for it, its PDFs."""
    grids, figures = tables(settings), drawings(settings)
    write(context(settings, grids, figures), grids, figures, settings)
    if settings.report.pdf:
        for name in PRINTED:
            latex.compile_pdf(REPORTS, name)
