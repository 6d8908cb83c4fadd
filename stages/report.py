"""Renders the report: published, recomputed and reproduced side by side.

Reads data/analysis/, data/runs/*.json, data/filtered/ledger.csv, data/tokens/index.json, data/tasks/statistics.csv,
data/published/protocol.yaml, params.yaml, dvc.lock (for its digest) and reports/templates/. Writes reports/report.html,
reports/report.tex, reports/tables/NAME.{csv,tex}, reports/figures/NAME.{svg,pdf,csv}, reports/results.{parquet,md} and
reports/model_cards/OPERATOR-SIZE.md; where params.yaml asks for it, reports/report.pdf.
"""

import json
import shutil
from pathlib import Path

import pandas as pd
import yaml

from stages import command, observations
from stages.evidence import cells, deviations, published, scores, specifications
from stages.files import temporary_sibling, write_atomically
from stages.presentation import (
    cards,
    details,
    html,
    latex,
    milestones,
    overview,
    protocols,
    provenance,
    robustness,
    robustness_figures,
    speed,
    verdicts,
)
from stages.presentation.figures import Drawing, draw
from stages.presentation.paper_tables import from_cells
from stages.presentation.tables import Grid
from stages.settings import Settings, load_settings

ANALYSIS = Path("data/analysis")
LEDGER = Path("data/filtered/ledger.csv")
REPORTS = Path("reports")
TEMPLATES = REPORTS / "templates"
CHECKLIST = Path(protocols.__file__).with_name("checklist.yaml")
ERRATA = Path(deviations.__file__).with_name("errata.yaml")
KEYS = {name: "str" for name in ("stage", "metric", "protocol", "evaluated_on", "operator", "size")}


def tables(settings: Settings) -> dict[str, Grid]:
    """Every table of the report by name."""
    confidence, alpha = settings.analysis.confidence, settings.analysis.alpha
    filled = read("cells", dtype=cells.TYPES).fillna({"status": "", "metric": ""})
    grids = [from_cells(table, filled[filled["table"] == name]) for name, table in specifications.load()[0].items()]
    comparisons = read("comparisons")
    claims, checks = read("claims").fillna(""), read("audit").fillna("")
    grids += [
        overview.grid(overview.frame(summaries(), comparisons, settings), confidence),
        *(details.against_original(comparisons, source, confidence, alpha) for source in ("reproduced", "released")),
        verdicts.bootstrap(read("bootstrap"), confidence, settings.analysis.resamples),
        details.margins(settings.analysis.margins),
        verdicts.summary(claims),
        *(verdicts.claims(claims, paper) for paper in verdicts.PAPERS),
        verdicts.audit(checks, everything=False),
        verdicts.audit(checks, everything=True),
        verdicts.errata(yaml.safe_load(ERRATA.read_text(encoding="utf-8"))),
        *robustness_tables(),
        milestones.milestones(read("milestones")),
        speed.training_speed(read("speed")),
        *run_tables(settings),
    ]
    return {grid.name: grid for grid in grids}


def robustness_tables() -> list[Grid]:
    """Noise, transfer and probes of this run; without lines where params.yaml leaves a stage's models out."""
    return [
        robustness.noise(read("noise_curves"), read("noise_measures"), read("noise_tests")),
        robustness.transfer(read("transfer")),
        robustness.probes(read("probes")),
    ]


def run_tables(settings: Settings) -> list[Grid]:
    """What the run was made from, with which settings, and on what."""
    params, protocol = settings.model_dump(mode="json"), published.protocol()
    runs = provenance.records(observations.RUNS, stage_names(settings))
    checklist = yaml.safe_load(CHECKLIST.read_text(encoding="utf-8"))
    return [
        details.corpus(pd.read_csv(LEDGER)),
        details.tokens(json.loads(Path("data/tokens/index.json").read_text(encoding="utf-8"))),
        details.tasks(task_statistics()),
        *(protocols.settings(deviations.compare(params, protocol, name), name) for name in deviations.PROTOCOLS),
        *(protocols.unspecified(deviations.unspecified(params, protocol, name), name) for name in verdicts.PAPERS),
        protocols.checklist(checklist, facts(settings)),
        details.environment(provenance.facts(runs, Path("dvc.lock"))),
        details.stages(runs),
    ]


def facts(settings: Settings) -> dict[str, object]:
    """What the checklist says of this run."""
    return {
        "validation_documents": f"{settings.tokenization.validation_documents:,}",
        "source": overview.DATA[settings.data.source],
        "corpus_seed": settings.corpus.seed,
        "pretraining_seeds": len(settings.pretraining.seeds),
        "finetuning_seeds": " and ".join(str(len(settings.finetuning[name].seeds)) for name in settings.protocols),
        "confidence": f"{settings.analysis.confidence:.0%}",
    }


def read(name: str, **options) -> pd.DataFrame:
    return pd.read_csv(ANALYSIS / f"{name}.csv", **options)


def summaries() -> pd.DataFrame:
    return read("summaries", dtype=KEYS).fillna(dict.fromkeys(KEYS, ""))


def stage_names(settings: Settings) -> list[str]:
    """The stage instances that this run consists of, in the order of the pipeline."""
    trained = [f"{operator}-{size}" for size in settings.sizes for operator in settings.operators]
    tuned = [f"{protocol}-{name}" for protocol in settings.protocols for name in trained]
    return [
        *("corpus", "filtering", "tokenization", "tasks", "parameters"),
        *(f"pretraining-{name}" for name in trained),
        *(f"{stage}-{name}" for stage in ("finetuning", "noise", "cross_domain") for name in tuned),
        *(f"{stage}-{name}" for stage in ("convergence", "question_answering") for name in trained),
        *("timing", "analysis"),
    ]


def task_statistics() -> pd.DataFrame:
    return pd.read_csv("data/tasks/statistics.csv")


def drawings() -> dict[str, Drawing]:
    """Every figure of the report by name."""
    runs = read("runs")
    runs = runs[runs["evaluated_on"] == scores.GLUE_SCORE].assign(score=lambda rows: 100 * rows["value"])
    frames = {
        "curves": read("curves"),
        "dots": runs.drop(columns=["evaluated_on", "value"]).assign(quantity=scores.GLUE_SCORE),
        "bars": pd.concat([read("bars"), details.shares(pd.read_csv(LEDGER))]),
    }
    made = [draw(figure, frames[figure.kind]) for figure in specifications.load()[1].values()]
    filled = read("cells", dtype=cells.TYPES)
    made += robustness_figures.noise(read("noise_curves"), filled)
    made += robustness_figures.transfer(read("transfer"), filled)
    return {drawing.name: drawing for drawing in made}


def named(figures: dict[str, Drawing], name: str) -> list[Drawing]:
    """A figure that the layout names, or those of every protocol and size: `NAME-PROTOCOL-SIZE`."""
    return [drawing for key, drawing in figures.items() if key.split("-")[0] == name]


def context(settings: Settings, grids: dict[str, Grid], figures: dict[str, Drawing]) -> dict:
    """What the templates are filled with."""
    layout = yaml.safe_load((TEMPLATES / "sections.yaml").read_text(encoding="utf-8"))
    values = {
        "confidence": f"{settings.analysis.confidence:.0%}",
        "alpha": settings.analysis.alpha,
        "pretraining_seeds": len(settings.pretraining.seeds),
        "gain": overview.released_gain(read("comparisons")),
    }
    sections = [
        section
        | {
            "text": [paragraph.format(**values) for paragraph in section["text"]],
            "tables": [grids[name] for name in section["tables"]],
            "figures": [drawing for name in section["figures"] for drawing in named(figures, name)],
        }
        for section in layout["sections"]
    ]
    compared = deviations.compare(settings.model_dump(mode="json"), published.protocol())
    return {
        "title": layout["title"],
        "question": layout["question"],
        "banner": overview.banner(settings),
        "description": [*overview.description(settings), *overview.verdicts(read("claims").fillna(""), read("audit"))],
        "cautions": overview.cautions(settings, compared, task_statistics()),
        "overview": grids["overview"],
        "sections": sections,
    }


def write(filled: dict, grids: dict[str, Grid], figures: dict[str, Drawing], settings: Settings) -> None:
    """All files; the folders of tables, figures and cards are replaced whole."""
    tex = latex.environment(TEMPLATES)
    with temporary_sibling(REPORTS / "tables") as folder:
        for name, grid in grids.items():
            write_atomically(folder / f"{name}.csv", grid.csv.to_csv(index=False, lineterminator="\n"))
            write_atomically(folder / f"{name}.tex", tex.get_template("table.tex").render(grid=grid))
    with temporary_sibling(REPORTS / "figures") as folder:
        for name, drawing in figures.items():
            write_atomically(folder / f"{name}.csv", drawing.csv.to_csv(index=False, lineterminator="\n"))
            for form, content in drawing.files.items():
                write_atomically(folder / f"{name}.{form}", content)
    with temporary_sibling(REPORTS / "model_cards") as folder:
        for name, card in cards.cards(TEMPLATES, settings, summaries()).items():
            write_atomically(folder / f"{name}.md", card)
    write_atomically(REPORTS / "report.html", html.render(TEMPLATES, filled))
    write_atomically(REPORTS / "report.tex", tex.get_template("report.tex").render(filled))
    with temporary_sibling(REPORTS / "results.parquet") as path:
        shutil.copyfile(ANALYSIS / "results.parquet", path)
    write_atomically(
        REPORTS / "results.md", cards.results_page(TEMPLATES, pd.read_parquet(ANALYSIS / "results.parquet"))
    )


def main() -> None:
    command.parser("report", __doc__).parse_args()
    settings = load_settings()
    grids, figures = tables(settings), drawings()
    write(context(settings, grids, figures), grids, figures, settings)
    if settings.report.pdf:
        latex.compile_pdf(REPORTS, "report")


if __name__ == "__main__":
    command.run(main)
