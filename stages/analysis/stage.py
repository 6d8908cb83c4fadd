"""Turns observations into cells, comparisons, verdicts and curves, next to the published and the released numbers.

Reads data/observations/ (exactly the operators, sizes and protocols of params.yaml), data/audit, data/tasks/,
data/published/ and data/released/. Writes data/analysis/results.parquet (all observations) and a CSV for every table
and figure that the report draws, reports/metrics.json (for `dvc metrics show`) and reports/plots/ (for `dvc plots
show`). Measurements are the papers' quantities, made of observations in the same columns (see evidence/fields.py).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from stages.analysis import claims, contrasts, inputs, robustness
from stages.evidence import baselines, cells, convergence, derived, measurements, published, released, translation
from stages.evidence.fields import RELEASED, THIS_RUN, select_rows, stack_frames
from stages.evidence.scores import GLUE_SCORE
from stages.evidence.statistics import summarise_groups
from stages.files.paths import ANALYSIS, AUDIT, REPORTS
from stages.files.storage import make_temporary_sibling, write_atomically, write_table
from stages.schema.settings import REFERENCE, Settings

PLOTS = REPORTS / "plots"
# The tables of a topic by the name of the CSV file.
Tables = dict[str, pd.DataFrame]


@dataclass(frozen=True)
class Source:
    """Observations of this run or of the released results, and the measurements and curves made of the observations.

    `baselines` has the scores of baselines, such as a constant answer.
    """

    rows: pd.DataFrame
    measured: pd.DataFrame
    curves: pd.DataFrame
    baselines: pd.DataFrame


def main(settings: Settings) -> dict:
    """Writes every table of the analysis, the metrics and the plots; adds nothing to the record of the stage."""
    options = settings.analysis
    run = measure_source(inputs.read_observations(settings), options.levels, options.confidence)
    # The released results pass through the same functions as this run, so that both are comparable.
    theirs = measure_source(released.read_observations(), convergence.LEVELS, options.confidence)
    tables = {
        **judge_differences_and_claims(run, theirs, settings),
        **summarise_measurements(run, theirs, options.confidence),
    }
    for name, frame in tables.items():
        write_table(ANALYSIS / f"{name}.csv", frame)
    with make_temporary_sibling(ANALYSIS / "results.parquet") as path:
        run.rows.to_parquet(path, index=False)
    metrics = collect_metrics(tables["summaries"], tables["contrasts"], settings)
    write_atomically(REPORTS / "metrics.json", json.dumps(metrics, indent=2) + "\n")
    write_plots(run)
    return {}


def measure_source(rows: pd.DataFrame, levels: Sequence[float], confidence: float) -> Source:
    """Makes measurements, curves and baseline scores of observations; `levels` are losses of milestones."""
    measured = measurements.compute_measurements(rows, levels)
    return Source(
        rows=rows,
        measured=measured,
        curves=convergence.summarise_curves(rows, measured),
        baselines=baselines.collect_baselines(rows, confidence),
    )


def judge_differences_and_claims(run: Source, theirs: Source, settings: Settings) -> Tables:
    """Judges operators against the original, this run against the printed numbers, and the claims of the papers.

    `theirs` are the released results.
    """
    options = settings.analysis
    quantities = {}
    for name, source in ((THIS_RUN, run), (RELEASED, theirs)):
        quantities[name] = contrasts.collect_quantities(source.rows, source.measured, source.baselines)
    compared = contrasts.make_contrasts(quantities, options.confidence, options.alpha, options.pairs)
    cell_sources = cells.CellSources(
        run=run.measured,
        released=theirs.measured,
        operators=settings.operators,
        sizes=settings.sizes,
        options=options,
        comparable=not settings.generated,
        baselines=run.baselines,
    )
    # A check without a value in a column has an empty text there.
    checks = pd.read_csv(AUDIT, keep_default_na=False)
    claim_sources = claims.ClaimSources(checks, compared, run.measured, theirs.measured, settings.generated)
    return {
        "contrasts": compared,
        "contrast_columns": contrasts.describe_columns(),
        "cells": cells.fill_tables(cell_sources),
        "claims": claims.build_ledger(published.read_claims(), claim_sources),
    }


def summarise_measurements(run: Source, theirs: Source, confidence: float) -> Tables:
    """Summarises the measurements of all stages over runs; only scores and steps have released results (`theirs`)."""
    summaries = summarise_runs(run.measured, confidence)
    milestones = [convergence.estimate_milestones(side.measured, side.curves, confidence) for side in (run, theirs)]
    return {
        "runs": join_sources(select_scores(run), select_scores(theirs)),
        "summaries": baselines.add_baselines(summaries, run.baselines, "mean"),
        "baselines": run.baselines,
        # by step of pre-training
        "curves": pd.concat([join_sources(run.curves, theirs.curves), published.read_shared_curve()]),
        "milestones": join_sources(*milestones),
        **robustness.make_tables(run.rows, run.baselines, confidence),
        "bars": published.read_times_saved(run.measured),
        "speed": derived.summarise_times(run.rows),
        "translation": translation.summarise_measurements(run.measured, confidence),
        "translation_curves": translation.average_curves(run.rows),
    }


def select_scores(source: Source) -> pd.DataFrame:
    """Selects the scores after fine-tuning, as fractions, with a row per run and column of the GLUE tables."""
    scores = select_rows(source.measured, metric="score", stage="finetuning")
    return scores[["protocol", "operator", "size", "evaluated_on", "pretraining_seed", "finetuning_seed", "value"]]


def join_sources(run: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """Puts the rows of this run above the rows of the released results (`theirs`), with the source as first column."""
    frame = stack_frames([run.assign(source=THIS_RUN), theirs.assign(source=RELEASED)])
    return frame[["source", *frame.columns.drop("source")]]


def summarise_runs(run: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Summarises parameters, losses and scores (fractions) over runs, with the fields of statistics.Summary."""
    keys = ["stage", "metric", "protocol", "evaluated_on", "operator", "size"]
    rows = select_rows(run, stage=["parameters", "pretraining", "finetuning"])
    # Without counts that are further split by condition, and without times to milestones that some runs never reach.
    left_out = ("feed_forward_weights", *convergence.NAMES)
    rows = rows[~rows["metric"].isin(left_out)]
    return summarise_groups(rows, keys, confidence).drop(columns=["minimum", "maximum"])


def collect_metrics(means: pd.DataFrame, compared: pd.DataFrame, settings: Settings) -> dict:
    """Collects the numbers that `dvc metrics show` shows, from summaries over runs (`means`) and comparisons.

    Scores of single tasks are shown only without a GLUE score, which needs all tasks. NAME_against_original has the
    `verdict` on the mean NAME, and `difference`, `low` and `high` if known.
    """
    # {"shared": {"base": {"validation_loss": 1.8, "parameters": 95337218, "courtois2024": {"glue_score": 79.1}}}}
    result: dict = {}
    with_glue_score = set(select_rows(means, evaluated_on=GLUE_SCORE)["protocol"])
    for row in select_rows(means, operator=settings.operators, size=settings.sizes).itertuples():
        entry = result.setdefault(row.operator, {}).setdefault(row.size, {})
        if row.metric == "final_validation_loss":
            entry[contrasts.FINAL_LOSS] = round(row.mean, 4)
        if row.metric == "masked_lm_parameters":
            entry["parameters"] = int(row.mean)
        is_shown = row.evaluated_on == GLUE_SCORE or row.protocol not in with_glue_score
        if row.metric == "score" and is_shown:
            entry.setdefault(row.protocol, {})[row.evaluated_on] = round(100 * row.mean, 2)
    for row in select_rows(compared, source=THIS_RUN, reference=REFERENCE).itertuples():
        entry = result.get(row.arm, {}).get(row.size, {})
        if row.quantity == "score":
            entry = entry.get(row.protocol, {})
        # Only comparisons of a number that is shown above.
        if row.at in entry:
            numbers = {"difference": row.estimate, "low": row.low, "high": row.high}
            known = {name: round(value, 4) for name, value in numbers.items() if pd.notna(value)}
            entry[f"{row.at}_against_original"] = {**known, "verdict": row.verdict}
    return result


def write_plots(run: Source) -> None:
    """Writes the CSV files that `dvc plots` shows: the mean loss by step, and the GLUE score of every run."""
    loss = select_rows(run.curves, quantity="loss").rename(columns={"mean": "validation_loss"})
    write_table(PLOTS / "pretraining_loss.csv", loss[["operator", "size", "step", "validation_loss"]])
    whole = select_rows(select_scores(run), evaluated_on=GLUE_SCORE).drop(columns=["evaluated_on"])
    whole["glue_score"] = 100 * whole.pop("value")
    write_table(PLOTS / "glue.csv", whole)
