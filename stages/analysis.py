"""Turns observations into cells, comparisons and curves, beside the published and the released numbers.

Reads data/observations/ (exactly the operators, sizes and protocols of params.yaml; files of others are left
alone), data/published/ and data/released/. Writes
data/analysis/{cells,comparisons,runs,summaries,curves}.csv, reports/metrics.json (for `dvc metrics show`) and
reports/plots/ (for `dvc plots show`).
"""

import json
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from stages import command, observations
from stages.evidence import cells, comparisons, published, released, scores, specifications
from stages.evidence import measurements as quantities
from stages.evidence.statistics import summarise
from stages.files import write_atomically
from stages.settings import Settings, load_settings

FOLDER = Path("data/analysis")
METRICS = Path("reports/metrics.json")
PLOTS = Path("reports/plots")
RUN_COLUMNS = ["protocol", "operator", "size", "evaluated_on", "pretraining_seed", "finetuning_seed", "value"]


def observed(settings: Settings) -> pd.DataFrame:
    """All observations of the stages that params.yaml asks for, in its order."""
    names = ["parameters"]
    names += [f"pretraining-{operator}-{size}" for size in settings.sizes for operator in settings.operators]
    names += [
        f"finetuning-{protocol}-{operator}-{size}"
        for protocol in settings.protocols
        for size in settings.sizes
        for operator in settings.operators
    ]
    return observations.read(observations.FOLDER / f"{name}.csv" for name in names)


def fill_tables(run: pd.DataFrame, raw: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """The cells of every table of the specification."""
    evidence = cells.Evidence(run, raw, settings.operators, settings.analysis.confidence)
    tables, _ = specifications.load()
    return pd.concat([cells.fill(table, published.table(name), evidence) for name, table in tables.items()])


def with_source(run: pd.DataFrame, raw: pd.DataFrame) -> pd.DataFrame:
    """Both, one below the other, with a first column that says which is which."""
    frames = [frame.assign(source=name) for name, frame in (("reproduced", run), ("released", raw)) if len(frame)]
    frame = pd.concat(frames)
    return frame[["source", *frame.columns.drop("source")]]


def summarised(run: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Statistics of every measured quantity, by operator and size. Scores as fractions."""
    keys = ["metric", "protocol", "evaluated_on", "operator", "size"]
    groups = run.groupby(keys, dropna=False, sort=False)
    return pd.DataFrame(
        [dict(zip(keys, values, strict=True)) | asdict(summarise(rows, confidence)) for values, rows in groups]
    )


def metrics(summaries: pd.DataFrame, settings: Settings) -> dict:
    """Operator -> size -> means: validation loss, and protocol -> GLUE score times 100.

    A run of fewer than all tasks has no GLUE score; its columns stand there instead.
    """
    result: dict = {}
    whole = set(summaries.loc[summaries["evaluated_on"] == scores.GLUE_SCORE, "protocol"])
    asked = summaries["operator"].isin(settings.operators) & summaries["size"].isin(settings.sizes)
    for row in summaries[asked].itertuples():
        entry = result.setdefault(row.operator, {}).setdefault(row.size, {})
        if row.metric == "final_validation_loss":
            entry["validation_loss"] = round(row.mean, 4)
        if row.metric == "score" and (row.protocol not in whole or row.evaluated_on == scores.GLUE_SCORE):
            entry.setdefault(row.protocol, {})[row.evaluated_on] = round(100 * row.mean, 2)
        if row.metric == "masked_lm_parameters":
            entry["parameters"] = int(row.mean)
    return result


def write_plots(run: pd.DataFrame, curves: pd.DataFrame) -> None:
    """Long form with a column `operator`: the loss by step, and the GLUE score of every run."""
    loss = curves.rename(columns={"mean": "validation_loss"})[["operator", "size", "step", "validation_loss"]]
    write_table(PLOTS / "pretraining_loss.csv", loss)
    whole = run[run["evaluated_on"] == scores.GLUE_SCORE].assign(glue_score=lambda rows: 100 * rows["value"])
    names = ["protocol", "operator", "size", "pretraining_seed", "finetuning_seed", "glue_score"]
    write_table(PLOTS / "glue.csv", whole[names])


def write_table(path: Path, frame: pd.DataFrame) -> None:
    """CSV with ten significant digits: enough for every statement, and equal on every machine."""
    write_atomically(path, frame.to_csv(index=False, lineterminator="\n", float_format="%.10g"))


def main() -> None:
    command.parser("analysis", __doc__).parse_args()
    settings = load_settings()
    confidence = settings.analysis.confidence
    with observations.provenance("analysis"):
        rows, raw_losses = observed(settings), released.validation_loss()
        run, raw = quantities.measurements(rows), quantities.measurements(released.glue())
        curves, summaries = quantities.curves(rows), summarised(run, confidence)
        compare = comparisons.against_original
        tables = {
            "cells": fill_tables(run, raw, settings),
            "comparisons": with_source(compare(run, confidence), compare(raw, confidence)),
            "runs": with_source(*(frame.loc[frame["metric"] == "score", RUN_COLUMNS] for frame in (run, raw))),
            "summaries": summaries,
            "curves": with_source(curves, quantities.curves(raw_losses)),
        }
        for name, frame in tables.items():
            write_table(FOLDER / f"{name}.csv", frame)
        write_plots(run, curves)
        write_atomically(METRICS, json.dumps(metrics(summaries, settings), indent=2) + "\n")


if __name__ == "__main__":
    command.run(main)
