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

from stages.common.evidence import arms, baselines, cells, published, scores, specifications
from stages.plumbing import observations
from stages.plumbing.files import (
    ANALYSIS,
    AUDIT,
    LEDGER,
    REPORTS,
    SENTENCE_PAIRS,
    STATISTICS,
    TOKENS,
    temporary_sibling,
    write_atomically,
)
from stages.plumbing.settings import Settings
from stages.report import (
    answers,
    cards,
    details,
    deviations,
    html,
    latex,
    milestones,
    overview,
    pages,
    paper_tables,
    plateau,
    plateau_figures,
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
ERRATA = Path(deviations.__file__).with_name("errata.yaml")
KEYS = {name: "str" for name in ("stage", "metric", "protocol", "evaluated_on", "operator", "size")}


def tables(settings: Settings) -> dict[str, Grid]:
    """Every table of the report by name."""
    confidence, alpha = settings.analysis.confidence, settings.analysis.alpha
    filled = read("cells", dtype=cells.TYPES).fillna({"status": "", "metric": ""})
    comparisons = read("comparisons")
    claims, checks = read("claims").fillna(""), audited()
    grids = [
        *published_tables(filled, settings),
        overview.grid(without_arms(overview.frame(summaries(), comparisons, settings)), confidence),
        details.against_original(comparisons, confidence, alpha),
        details.loss_differences(read("losses"), confidence, alpha),
        verdicts.multibootstrap(read("multibootstrap"), confidence, settings.analysis.resamples),
        details.margins(settings.analysis.margins),
        verdicts.summary(read("tally")),
        verdicts.claims(claims, checks),
        verdicts.audit(checks),
        verdicts.errata(yaml.safe_load(ERRATA.read_text(encoding="utf-8"))),
        *robustness_tables(),
        milestones.milestones(read("milestones")),
        milestones.tests(read("milestone_tests"), confidence, alpha),
        *plateau.comparisons(plateau_tests(), confidence, alpha),
        plateau.arms(read("plateau_arms")),
        speed.training_speed(read("speed")),
        translation.scores(read("translation"), signatures(settings)),
        translation.sequences(read("translation"), confidence),
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
        robustness.noise(read("noise_curves"), read("noise_measures"), read("noise_tests")),
        robustness.noise_lost(read("noise_curves"), read("noise_measures")),
        robustness.transfer(read("transfer")),
        robustness.probes(read("probes")),
    ]


def run_tables(settings: Settings) -> list[Grid]:
    """What the run was made from, with which settings, and on what."""
    params, protocol = settings.model_dump(mode="json"), published.protocol()
    runs = provenance.records(observations.RUNS, stage_names(settings))
    beside = compared(settings)
    checklist = yaml.safe_load(CHECKLIST.read_text(encoding="utf-8"))
    return [
        details.corpus(pd.read_csv(LEDGER)),
        details.tokens(json.loads((TOKENS / "index.json").read_text(encoding="utf-8"))),
        details.tasks(task_statistics()),
        details.sentence_pairs(pairs_ledger()),
        *(protocols.settings(frame, name) for name, frame in beside.items()),
        protocols.own_settings(deviations.own(params)),
        *(protocols.unspecified(deviations.unspecified(params, protocol, name), name) for name in verdicts.PAPERS),
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


def read(name: str, **options) -> pd.DataFrame:
    """One table that the stage analysis left, by its name."""
    return pd.read_csv(ANALYSIS / f"{name}.csv", **options)


def without_arms(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows without those arms of a study of the plateau that start, or learn, otherwise."""
    return arms.without_arms(frame, read("plateau_arms"))


def pairs_ledger() -> pd.DataFrame:
    """What became of every sentence pair; empty where a study has left translation out."""
    path = SENTENCE_PAIRS / "ledger.csv"
    return (
        pd.read_csv(path) if path.exists() else pd.DataFrame(columns=["protocol", "split", "fate", "reason", "pairs"])
    )


def signatures(settings: Settings) -> list[str]:
    """The signatures that sacrebleu gave with the scores of this run's translations."""
    names = [f"translation-{operator}" for operator in settings.translation.operators]
    found = provenance.records(observations.RUNS, names)
    return sorted({signature for record in found for signature in record.get("sacrebleu", ())})


def plateau_tests() -> pd.DataFrame:
    """The comparisons of the study of the plateau, with empty text where there is no single place."""
    return read("plateau_tests", dtype=plateau.TEXTS).fillna({"place": ""})


def audited() -> pd.DataFrame:
    """The checks of the published numbers, as the stage audit left them."""
    return pd.read_csv(AUDIT, keep_default_na=False)


def summaries() -> pd.DataFrame:
    """The summaries of this run's scores, with empty text for keys that do not apply."""
    return read("summaries", dtype=KEYS).fillna(dict.fromkeys(KEYS, ""))


def stage_names(settings: Settings) -> list[str]:
    """The stage instances that this run consists of, in the order of the pipeline."""
    trained = [f"{operator}-{size}" for size in settings.sizes for operator in settings.operators]
    tuned = [f"{protocol}-{name}" for protocol in settings.protocols for name in trained]
    return [
        *("corpus", "filtering", "tokenization", "tasks", "baselines", "parameters"),
        *(f"pretraining-{name}" for name in trained),
        *(f"{stage}-{name}" for stage in ("finetuning", "noise", "cross_domain") for name in tuned),
        *(f"{stage}-{name}" for stage in ("convergence", "question_answering") for name in trained),
        "sentence_pairs",
        *(f"translation-{operator}" for operator in settings.translation.operators),
        *("timing", "audit", "analysis"),
    ]


def task_statistics() -> pd.DataFrame:
    """How many examples every split of every task has, as the stage tasks left it."""
    return pd.read_csv(STATISTICS)


def drawings(settings: Settings) -> dict[str, Drawing]:
    """Every figure of the report by name."""
    runs = read("runs")
    runs = runs[runs["evaluated_on"] == scores.GLUE_SCORE].assign(score=lambda rows: 100 * rows["value"])
    constant = {protocol: constant_answers("score", protocol).get(scores.GLUE_SCORE) for protocol in settings.protocols}
    runs["constant"] = runs["protocol"].map(constant).where(runs["source"] == "reproduced").astype(float)
    frames = {
        "curves": read("curves"),
        "dots": runs.drop(columns=["evaluated_on", "value"]).assign(quantity=scores.GLUE_SCORE),
        "bars": pd.concat([read("bars"), details.shares(pd.read_csv(LEDGER))]),
    }
    made = [draw(figure, frames[figure.kind]) for figure in specifications.load()[1].values()]
    filled = read("cells", dtype=cells.TYPES)
    made += robustness_figures.noise(read("noise_curves"), filled, constant_answers("accuracy"))
    made += robustness_figures.transfer(read("transfer"), filled)
    made += translation.curves(read("translation_curves"))
    made += milestones.waiting(read("waiting"))
    made += plateau_figures.drawings(read("plateau_arms"), read("plateau_waiting"), read("plateau_probes"))
    described = pages.layout(TEMPLATES)["operators"]
    made.append(answers.drawing(described, summaries(), read("comparisons"), settings))
    return {drawing.name: drawing for drawing in made}


def constant_answers(metric: str, protocol: str = "") -> dict[str, float]:
    """Split -> score of a constant answer, in per cent."""
    rows = read("baselines").fillna({"protocol": ""})
    rows = rows[(rows["operator"] == baselines.MOST_FREQUENT) & (rows["metric"] == metric)]
    rows = rows[rows["protocol"] == protocol]
    return {row.evaluated_on: 100 * row.value for row in rows.itertuples()}


def context(settings: Settings, grids: dict[str, Grid], figures: dict[str, Drawing]) -> dict:
    """What the templates are filled with: what all pages share, and the pages."""
    content = pages.layout(TEMPLATES)
    counted, comparisons, checks = summaries(), read("comparisons"), audited()
    study = plateau_tests(), read("plateau_arms"), settings.analysis.confidence
    values = {
        "plateau": plateau.answer(*study),
        "initializer_range": settings.pretraining.initializer_range,
        "plateau_loss": settings.analysis.plateau_loss,
        "confidence": f"{settings.analysis.confidence:.0%}",
        "alpha": settings.analysis.alpha,
        "pretraining_seeds": len(settings.pretraining.seeds),
    }
    made = pages.pages(content, grids, figures, values)
    return {
        "title": content["title"],
        "question": content["question"],
        "sources": content["sources"],
        "banner": overview.banner(settings),
        "description": overview.description(settings, tuned=(counted["stage"] == "finetuning").any()),
        "cautions": overview.cautions(settings, compared(settings)["courtois2024"], task_statistics()),
        "answers": answers.operators(content["operators"], counted, comparisons, checks, settings.analysis.confidence),
        "run": [*plateau.sentences(*study), *answers.this_run(settings, counted, comparisons)],
        "findings": answers.findings(content["findings"], checks),
        "answer": figures["answer"],
        "pages": made,
        "not_run": pages.not_run(made, content, grids, figures),
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
        for name, card in cards.cards(TEMPLATES, settings, summaries()).items():
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
