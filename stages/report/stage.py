"""Renders the report: published, recomputed and reproduced side by side.

Reads data/analysis/, data/audit/, data/runs/*.json, data/filtered/ledger.csv, data/tokens/index.json,
data/tasks/statistics.csv, data/published/protocol.yaml, params.yaml, dvc.lock (for its digest) and reports/templates/.
Writes reports/{report,claims,audit,appendix}.html, reports/report.tex, reports/tables/NAME.{csv,tex},
reports/figures/NAME.{svg,pdf,csv}, reports/results.{parquet,md} and reports/model_cards/OPERATOR-SIZE.md; where
params.yaml asks for it, reports/report.pdf.
"""

import json
import shutil
from pathlib import Path

import pandas as pd
import yaml

from stages.common.evidence import cells, published, scores, specifications, statistics
from stages.plumbing import observations
from stages.plumbing.files import (
    ANALYSIS,
    LEDGER,
    REPORTS,
    TOKENS,
    temporary_sibling,
    write_atomically,
)
from stages.plumbing.settings import Settings
from stages.report import (
    answer_figure,
    answers,
    cards,
    data_tables,
    details,
    deviations,
    html,
    inputs,
    latex,
    milestones,
    open_items,
    overview,
    pages,
    paper_tables,
    protocols,
    provenance,
    robustness,
    robustness_figures,
    speed,
    translation,
    verdicts,
)
from stages.report.drawing import Drawing
from stages.report.figures import draw
from stages.report.spreadsheets import csv_of
from stages.report.tables import Grid

TEMPLATES = REPORTS / "templates"
CHECKLIST = Path(protocols.__file__).with_name("checklist.yaml")


def tables(settings: Settings) -> dict[str, Grid]:
    """Every table of the report by name."""
    confidence, alpha = settings.analysis.confidence, settings.analysis.alpha
    filled = inputs.read("cells", dtype=cells.TYPES).fillna({"status": "", "metric": ""})
    comparisons = inputs.read("comparisons")
    claims, checks = inputs.read("claims").fillna(""), inputs.audited()
    grids = [
        *published_tables(filled, settings),
        overview.grid(overview.frame(inputs.summaries(), comparisons, settings), confidence),
        details.against_original(comparisons, confidence, alpha),
        details.loss_differences(inputs.read("losses"), confidence, alpha),
        verdicts.multibootstrap(inputs.read("multibootstrap"), confidence, settings.analysis.resamples),
        details.margins(settings.analysis.margins),
        verdicts.summary(inputs.read("tally")),
        verdicts.claims(claims, checks),
        verdicts.audit(checks),
        *robustness_tables(),
        milestones.milestones(inputs.read("milestones")),
        milestones.tests(inputs.read("milestone_tests"), confidence, alpha),
        speed.training_speed(inputs.read("speed")),
        translation.scores(inputs.read("translation"), inputs.signatures()),
        translation.sequences(inputs.read("translation"), confidence),
        *run_tables(settings),
    ]
    return {grid.name: grid for grid in grids}


def published_tables(filled: pd.DataFrame, settings: Settings) -> list[Grid]:
    """The papers' tables: each by itself, and those of a paper's two editions also as one."""
    specified = specifications.load()[0]
    parts = {name: filled[filled["table"] == name] for name in specified}
    grids = [paper_tables.from_cells(table, parts[name], settings.sizes) for name, table in specified.items()]
    for name, table in specified.items():
        if table.edition in specified and paper_tables.is_earlier(name):
            pair = (table, specified[table.edition]), (parts[name], parts[table.edition])
            grids.append(paper_tables.editions(*pair, settings.sizes))
    return grids


def robustness_tables() -> list[Grid]:
    """Noise, transfer and probes of this run; without lines where params.yaml leaves a stage's models out."""
    return [
        robustness.noise(inputs.read("noise_curves"), inputs.read("noise_measures"), inputs.read("noise_tests")),
        robustness.noise_lost(inputs.read("noise_curves"), inputs.read("noise_measures")),
        robustness.transfer(inputs.read("transfer")),
        robustness.probes(inputs.read("probes")),
    ]


def run_tables(settings: Settings) -> list[Grid]:
    """What the run was made from, with which settings, and on what."""
    params, protocol = settings.model_dump(mode="json"), published.protocol()
    runs = provenance.records(observations.RUNS, inputs.stage_names(settings))
    beside = compared(settings)
    checklist = yaml.safe_load(CHECKLIST.read_text(encoding="utf-8"))
    return [
        data_tables.corpus(pd.read_csv(LEDGER)),
        data_tables.tokens(json.loads((TOKENS / "index.json").read_text(encoding="utf-8"))),
        data_tables.tasks(inputs.task_statistics()),
        data_tables.baselines(inputs.read("baselines"), settings.protocols[0]),
        data_tables.sentence_pairs(inputs.pairs_ledger()),
        *(protocols.settings(frame, name) for name, frame in beside.items()),
        protocols.own_settings(deviations.own(params)),
        *(protocols.unspecified(open_items.unspecified(params, protocol, name), name) for name in verdicts.PAPERS),
        protocols.checklist(checklist, facts(settings, beside)),
        details.environment(provenance.facts(runs, Path("dvc.lock"))),
        details.stages(runs),
    ]


def compared(settings: Settings) -> dict[str, pd.DataFrame]:
    """The settings beside each paper's, by source; with what the filter found of the corpus, where it left a record."""
    filtered = provenance.records(observations.RUNS, ["filtering"])
    unknown = filtered[0].get("unknown") if filtered else None
    params, protocol = settings.model_dump(mode="json"), published.protocol()
    return {source: deviations.compare(params, protocol, source, unknown) for source in deviations.SOURCES}


def facts(settings: Settings, beside: dict[str, pd.DataFrame]) -> dict[str, object]:
    """What the checklist says of this run. beside: of `compared`."""
    return {
        "differences": "; ".join(
            f"{deviations.differing(frame)} from {verdicts.PAPERS[source]}" for source, frame in beside.items()
        ),
        "generated": "yes" if settings.data.source == "embedded" else "does not apply",
        "validation_documents": f"{settings.tokenization.validation_documents:,}",
        "source": overview.DATA[settings.data.source],
        "corpus_seed": settings.corpus.seed,
        "pretraining_seeds": len(settings.pretraining.seeds),
        "finetuning_seeds": " and ".join(str(len(settings.finetuning[name].seeds)) for name in settings.protocols),
        "confidence": f"{settings.analysis.confidence:.0%}",
    }


def drawings(settings: Settings) -> dict[str, Drawing]:
    """Every figure of the report by name."""
    runs = inputs.read("runs")
    runs = runs[runs["evaluated_on"] == scores.GLUE_SCORE].assign(score=lambda rows: 100 * rows["value"])
    score = {name: inputs.constant_answers("score", name).get(scores.GLUE_SCORE) for name in settings.protocols}
    runs["constant"] = runs["protocol"].map(score).where(runs["source"] == "reproduced").astype(float)
    frames = {
        "curves": inputs.read("curves"),
        "dots": runs.drop(columns=["evaluated_on", "value"]).assign(quantity=scores.GLUE_SCORE),
        "bars": pd.concat([inputs.read("bars"), data_tables.shares(pd.read_csv(LEDGER))]),
    }
    made = [draw(figure, frames[figure.kind]) for figure in specifications.load()[1].values()]
    filled = inputs.read("cells", dtype=cells.TYPES)
    made += robustness_figures.noise(inputs.read("noise_curves"), filled, inputs.constant_answers("accuracy"))
    made += robustness_figures.transfer(inputs.read("transfer"), filled)
    made += translation.curves(inputs.read("translation_curves"))
    made += milestones.waiting(inputs.read("waiting"))
    described = pages.layout(TEMPLATES)["operators"]
    made.append(answer_figure.drawing(described, inputs.summaries(), inputs.read("comparisons"), settings))
    return {drawing.name: drawing for drawing in made}


def context(settings: Settings, grids: dict[str, Grid], figures: dict[str, Drawing]) -> dict:
    """What the templates are filled with: what all pages share, and the pages."""
    content = pages.layout(TEMPLATES)
    counted, comparisons, checks = inputs.summaries(), inputs.read("comparisons"), inputs.audited()
    values = {
        "confidence": f"{settings.analysis.confidence:.0%}",
        "alpha": settings.analysis.alpha,
        "pretraining_seeds": len(settings.pretraining.seeds),
        "fewest": statistics.FEWEST,
        "remark": f"How this run was planned: {settings.report.remark}" if settings.report.remark else "",
    }
    below = {name: drawing for name, drawing in figures.items() if name != "answer"}  # which the first screen has
    made = pages.pages(content, grids, below, values)
    return {
        "title": content["title"],
        "question": content["question"],
        "sources": content["sources"],
        "banner": overview.banner(settings),
        "description": overview.description(settings, tuned=(counted["stage"] == "finetuning").any()),
        "cautions": overview.cautions(settings, compared(settings)["courtois2024"], inputs.task_statistics(), counted),
        "answers": answers.operators(content["operators"], counted, comparisons, checks, settings.analysis.confidence),
        "run": answers.this_run(settings, counted, comparisons),
        "findings": answers.findings(content["findings"], checks),
        "answer": figures["answer"],
        "pages": made,
        "not_run": pages.not_run(made, content, grids, below),
    }


def write(filled: dict, grids: dict[str, Grid], figures: dict[str, Drawing], settings: Settings) -> None:
    """All files; the folders of tables, figures and cards are replaced whole."""
    tex = latex.environment(TEMPLATES)
    with temporary_sibling(REPORTS / "tables") as folder:
        for name, grid in grids.items():
            write_atomically(folder / f"{name}.csv", csv_of(grid.csv))
            write_atomically(folder / f"{name}.tex", tex.get_template("table.tex").render(grid=grid))
    with temporary_sibling(REPORTS / "figures") as folder:
        for name, drawing in figures.items():
            write_atomically(folder / f"{name}.csv", csv_of(drawing.csv))
            for form, content in drawing.files.items():
                write_atomically(folder / f"{name}.{form}", content)
    with temporary_sibling(REPORTS / "model_cards") as folder:
        for name, card in cards.cards(TEMPLATES, settings, inputs.summaries()).items():
            write_atomically(folder / f"{name}.md", card)
    for page in filled["pages"]:
        write_atomically(REPORTS / f"{page['file']}.html", html.render(TEMPLATES, filled | {"page": page}))
    write_atomically(REPORTS / "report.tex", tex.get_template("report.tex").render(filled))
    with temporary_sibling(REPORTS / "results.parquet") as path:
        shutil.copyfile(ANALYSIS / "results.parquet", path)
    write_atomically(
        REPORTS / "results.md", cards.results_page(TEMPLATES, pd.read_parquet(ANALYSIS / "results.parquet"))
    )


def main(settings: Settings) -> None:
    grids, figures = tables(settings), drawings(settings)
    write(context(settings, grids, figures), grids, figures, settings)
    if settings.report.pdf:
        latex.compile_pdf(REPORTS, "report")
