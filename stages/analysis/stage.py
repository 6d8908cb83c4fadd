"""Turns observations into cells, comparisons, verdicts and curves, next to the published and the released numbers.

Reads data/observations/ (exactly the operators, sizes and protocols of params.yaml), data/audit, data/tasks/,
data/published/ and data/released/. Writes data/analysis/results.parquet (all observations) and a CSV for every table
and figure that the report draws, reports/metrics.json (for `dvc metrics show`) and reports/plots/ (for `dvc plots
show`). Measurements are the papers' quantities, made of observations in the same columns (see evidence/fields.py).
"""

import json

import pandas as pd

from stages.analysis import claims, contrasts, inputs, robustness
from stages.analysis.contrasts import RELEASED, THIS_RUN
from stages.evidence import (
    baselines,
    cells,
    convergence,
    derived,
    measurements,
    published,
    released,
    scores,
    specifications,
    translation,
)
from stages.evidence.fields import select_rows, stack_frames
from stages.evidence.statistics import summarise_groups
from stages.files.paths import ANALYSIS, AUDIT, REPORTS
from stages.files.storage import make_temporary_sibling, write_atomically, write_table
from stages.schema.settings import REFERENCE, Settings

METRICS = REPORTS / "metrics.json"
PLOTS = REPORTS / "plots"
FINETUNED_SCORES = {"metric": "score", "stage": "finetuning"}
RUN_COLUMNS = ["protocol", "operator", "size", "evaluated_on", "pretraining_seed", "finetuning_seed", "value"]


def main(settings: Settings) -> dict:
    """Writes every table of the analysis, the metrics and the plots; adds nothing to the record of the stage."""
    rows = inputs.read_observations(settings)
    run = measurements.compute_measurements(rows, settings.analysis.levels)
    curves = convergence.summarise_curves(rows, run)
    tables = build_tables(rows, run, curves, settings)
    for name, frame in tables.items():
        write_table(ANALYSIS / f"{name}.csv", frame)
    with make_temporary_sibling(ANALYSIS / "results.parquet") as path:
        rows.to_parquet(path, index=False)
    write_plots(run, curves)
    metrics = collect_metrics(tables["summaries"], tables["contrasts"], settings)
    write_atomically(METRICS, json.dumps(metrics, indent=2) + "\n")
    return {}


def build_tables(
    rows: pd.DataFrame, run: pd.DataFrame, curves: pd.DataFrame, settings: Settings
) -> dict[str, pd.DataFrame]:
    """Builds all tables, by the name of the CSV file, from observations, measurements and curves of this run.

    `contrasts` compares operators with the original; `cells` compares this run with the printed numbers.
    """
    options = settings.analysis
    confidence = options.confidence
    scores_of_baselines = baselines.collect_scores(rows, confidence)
    without_model = baselines.map_scores(scores_of_baselines)
    # The released results pass through the same functions as this run, so that both are comparable.
    raw_rows = released.read_observations()
    raw = measurements.compute_measurements(raw_rows)
    raw_curves = convergence.summarise_curves(raw_rows, raw)
    compared = contrasts.make_contrasts(
        {
            THIS_RUN: contrasts.collect_quantities(rows, run, without_model),
            RELEASED: contrasts.collect_quantities(raw_rows, raw, {}),
        },
        confidence,
        options.alpha,
        options.pairs,
    )
    generated = settings.generated
    of_cells = cells.CellSources(run, raw, settings.operators, settings.sizes, options, not generated, without_model)
    # A check without a value in a column has an empty text there.
    checks = pd.read_csv(AUDIT, keep_default_na=False)
    ledger = claims.build_ledger(
        published.read_claims(),
        claims.load_rules(),
        claims.ClaimSources(checks, compared, run, raw, generated),
    )
    return {
        "cells": pd.concat(cells.fill_cells(table, of_cells) for table in specifications.load().values()),
        "baselines": scores_of_baselines,
        "contrasts": compared,
        "contrast_columns": contrasts.describe_columns(),
        "runs": join_sources(
            select_rows(run, **FINETUNED_SCORES)[RUN_COLUMNS],
            select_rows(raw, **FINETUNED_SCORES)[RUN_COLUMNS],
        ),
        "summaries": baselines.add_baselines(summarise_run(run, confidence), without_model, "mean"),
        "milestones": join_sources(
            convergence.estimate_milestones(run, curves, confidence),
            convergence.estimate_milestones(raw, raw_curves, confidence),
        ),
        "curves": pd.concat([join_sources(curves, raw_curves), published.read_shared_curve()]),
        "bars": published.read_times_saved(run),
        **robustness.make_tables(rows, without_model, confidence),
        "speed": derived.summarise_times(rows),
        "translation": translation.summarise_measurements(run, confidence),
        "translation_curves": translation.average_curves(rows),
        "claims": ledger,
    }


def join_sources(run: pd.DataFrame, raw: pd.DataFrame) -> pd.DataFrame:
    """Puts the rows of this run above the rows of the released results (`raw`), with the source as first column."""
    frame = stack_frames([run.assign(source=THIS_RUN), raw.assign(source=RELEASED)])
    return frame[["source", *frame.columns.drop("source")]]


def summarise_run(run: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Summarises parameters, losses and scores (fractions) over runs, with the fields of statistics.Summary."""
    keys = ["stage", "metric", "protocol", "evaluated_on", "operator", "size"]
    rows = run[run["stage"].isin(("parameters", "pretraining", "finetuning"))]
    # Without counts that are further split by condition, and without times to milestones that some runs never reach.
    left_out = ("feed_forward_weights", *convergence.NAMES)
    rows = rows[~rows["metric"].isin(left_out)]
    return summarise_groups(rows, keys, confidence).drop(columns=["minimum", "maximum"])


def collect_metrics(means: pd.DataFrame, compared: pd.DataFrame, settings: Settings) -> dict:
    """Collects the numbers that `dvc metrics show` shows: operator, size, then loss, parameters and scores by protocol.

    Without all tasks, the scores of the tasks stand in place of the GLUE score (times 100). Next to a mean NAME stands
    NAME_against_original: the `verdict`, and `difference`, `low` and `high` if known.
    """
    result: dict = {}
    with_glue_score = set(means.loc[means["evaluated_on"] == scores.GLUE_SCORE, "protocol"])
    asked = means["operator"].isin(settings.operators) & means["size"].isin(settings.sizes)
    for row in means[asked].itertuples():
        entry = result.setdefault(row.operator, {}).setdefault(row.size, {})
        if row.metric == "final_validation_loss":
            entry[contrasts.FINAL_LOSS] = round(row.mean, 4)
        if row.metric == "masked_lm_parameters":
            entry["parameters"] = int(row.mean)
        if row.metric == "score" and (row.protocol not in with_glue_score or row.evaluated_on == scores.GLUE_SCORE):
            entry.setdefault(row.protocol, {})[row.evaluated_on] = round(100 * row.mean, 2)
    against_original = (compared["source"] == THIS_RUN) & (compared["reference"] == REFERENCE)
    for row in compared[against_original].itertuples():
        entry = result.get(row.arm, {}).get(row.size, {})
        if row.quantity == contrasts.SCORE:
            entry = entry.get(row.protocol, {})
        if row.at in entry:
            numbers = {"difference": row.estimate, "low": row.low, "high": row.high}
            known = {name: round(value, 4) for name, value in numbers.items() if pd.notna(value)}
            entry[f"{row.at}_against_original"] = {**known, "verdict": row.verdict}
    return result


def write_plots(run: pd.DataFrame, curves: pd.DataFrame) -> None:
    """Writes the CSV files that `dvc plots` shows: the mean loss by step, and the GLUE score of every run."""
    loss = curves[curves["quantity"] == "loss"].rename(columns={"mean": "validation_loss"})
    write_table(PLOTS / "pretraining_loss.csv", loss[["operator", "size", "step", "validation_loss"]])
    whole = select_rows(run, **FINETUNED_SCORES | {"evaluated_on": scores.GLUE_SCORE})
    whole = whole.assign(glue_score=100 * whole["value"])
    names = ["protocol", "operator", "size", "pretraining_seed", "finetuning_seed", "glue_score"]
    write_table(PLOTS / "glue.csv", whole[names])
