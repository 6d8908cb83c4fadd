"""Renders the report: published, recomputed and reproduced side by side.

Reads data/analysis/, data/runs/*.json, data/filtered/ledger.csv, data/tokens/index.json,
data/tasks/statistics.csv, data/published/protocol.yaml, params.yaml, dvc.lock (for its digest) and
reports/templates/. Writes reports/report.html, reports/report.tex, reports/tables/NAME.{csv,tex} and
reports/figures/NAME.{svg,pdf,csv}.
"""

import json
from pathlib import Path

import pandas as pd
import yaml

from stages import command, observations
from stages.evidence import cells, deviations, published, scores, specifications
from stages.files import temporary_sibling, write_atomically
from stages.presentation import details, html, latex, overview, provenance
from stages.presentation.figures import Drawing, draw
from stages.presentation.tables import Grid, from_cells
from stages.settings import Settings, load_settings

ANALYSIS = Path("data/analysis")
REPORTS = Path("reports")
TEMPLATES = REPORTS / "templates"
KEYS = {name: "str" for name in ("metric", "protocol", "evaluated_on", "operator", "size")}


def tables(settings: Settings) -> dict[str, Grid]:
    """Every table of the report by name."""
    confidence = settings.analysis.confidence
    filled = pd.read_csv(ANALYSIS / "cells.csv", dtype=cells.TYPES, keep_default_na=True)
    filled = filled.fillna({"status": ""})
    grids = [from_cells(table, filled[filled["table"] == name]) for name, table in specifications.load()[0].items()]
    summaries = pd.read_csv(ANALYSIS / "summaries.csv", dtype=KEYS).fillna(dict.fromkeys(KEYS, ""))
    comparisons = pd.read_csv(ANALYSIS / "comparisons.csv")
    runs = provenance.records(observations.RUNS, stage_names(settings))
    grids += [
        overview.grid(overview.frame(summaries, comparisons, settings), confidence),
        *(
            details.against_original(comparisons, source, confidence, settings.analysis.alpha)
            for source in ("reproduced", "released")
        ),
        details.corpus(pd.read_csv("data/filtered/ledger.csv")),
        details.tokens(json.loads(Path("data/tokens/index.json").read_text(encoding="utf-8"))),
        details.tasks(task_statistics()),
        details.deviations(settings_compared(settings)),
        details.environment(provenance.facts(runs, Path("dvc.lock"))),
        details.stages(runs),
    ]
    return {grid.name: grid for grid in grids}


def stage_names(settings: Settings) -> list[str]:
    """The stage instances that this run consists of, in the order of the pipeline."""
    trained = [f"{operator}-{size}" for size in settings.sizes for operator in settings.operators]
    return [
        *("corpus", "filtering", "tokenization", "tasks", "parameters"),
        *(f"pretraining-{name}" for name in trained),
        *(f"finetuning-{protocol}-{name}" for protocol in settings.protocols for name in trained),
        "analysis",
    ]


def task_statistics() -> pd.DataFrame:
    return pd.read_csv("data/tasks/statistics.csv")


def settings_compared(settings: Settings) -> pd.DataFrame:
    return deviations.compare(settings.model_dump(mode="json"), published.protocol())


def drawings() -> dict[str, Drawing]:
    """Every figure of the report by name."""
    runs = pd.read_csv(ANALYSIS / "runs.csv")
    runs = runs[runs["evaluated_on"] == scores.GLUE_SCORE].assign(score=lambda rows: 100 * rows["value"])
    frames = {
        "curves": pd.read_csv(ANALYSIS / "curves.csv"),
        "dots": runs.drop(columns=["evaluated_on", "value"]),
    }
    return {name: draw(figure, frames[figure.kind]) for name, figure in specifications.load()[1].items()}


def context(settings: Settings, grids: dict[str, Grid], figures: dict[str, Drawing]) -> dict:
    """What the templates are filled with."""
    layout = yaml.safe_load((TEMPLATES / "sections.yaml").read_text(encoding="utf-8"))
    values = {
        "confidence": f"{settings.analysis.confidence:.0%}",
        "alpha": settings.analysis.alpha,
        "pretraining_seeds": len(settings.pretraining.seeds),
    }
    sections = [
        section
        | {
            "text": [paragraph.format(**values) for paragraph in section["text"]],
            "tables": [grids[name] for name in section["tables"]],
            "figures": [figures[name] for name in section["figures"]],
        }
        for section in layout["sections"]
    ]
    return {
        "title": layout["title"],
        "question": layout["question"],
        "banner": overview.banner(settings),
        "description": overview.description(settings),
        "cautions": overview.cautions(settings, settings_compared(settings), task_statistics()),
        "overview": grids["overview"],
        "sections": sections,
    }


def write(filled: dict, grids: dict[str, Grid], figures: dict[str, Drawing]) -> None:
    """All files; the folders of tables and figures are replaced whole."""
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
    write_atomically(REPORTS / "report.html", html.render(TEMPLATES, filled))
    write_atomically(REPORTS / "report.tex", tex.get_template("report.tex").render(filled))


def main() -> None:
    command.parser("report", __doc__).parse_args()
    settings = load_settings()
    grids, figures = tables(settings), drawings()
    write(context(settings, grids, figures), grids, figures)


if __name__ == "__main__":
    command.run(main)
