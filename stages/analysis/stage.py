"""Turns observations into cells, comparisons, verdicts and curves, next to the published and the released numbers.

Reads data/observations/ (exactly the operators, sizes and protocols of params.yaml; files of others are left alone),
data/predictions/*.parquet, data/audit, data/tasks/, data/published/ and data/released/. Writes
data/analysis/results.parquet (all observations) and a CSV for every table and figure that the report draws,
reports/metrics.json (for `dvc metrics show`) and reports/plots/ (for `dvc plots show`). Measurements are the papers'
quantities, made of observations in the same columns (see evidence/derived.py).
"""

import json

import pandas as pd

from stages.analysis import (
    claim_scope,
    claims,
    contrasts,
    inputs,
    multibootstrap,
    robustness,
)
from stages.analysis.contrasts import RELEASED, REPRODUCED
from stages.benchmarks.glue import TASKS, validation_tables
from stages.evidence import (
    baselines,
    cells,
    convergence,
    derived,
    published,
    released,
    scores,
    specifications,
    survival,
    translation,
)
from stages.evidence import measurements as quantities
from stages.evidence.statistics import summaries
from stages.files.paths import ANALYSIS, AUDIT, REPORTS
from stages.files.storage import temporary_sibling, write_atomically, write_table
from stages.schema.settings import REFERENCE, Settings

METRICS = REPORTS / "metrics.json"
PLOTS = REPORTS / "plots"
TUNED = {"metric": "score", "stage": "finetuning"}
RUN_COLUMNS = ["protocol", "operator", "size", "evaluated_on", "pretraining_seed", "finetuning_seed", "value"]


def bootstrap(settings: Settings) -> pd.DataFrame:
    """Compares kept predictions with those of the original by column, as `multibootstrap.against_original` does."""
    frame, options = inputs.predictions(settings), settings.analysis
    labelled = {column: table for task in TASKS for column, table in validation_tables(task).items()}
    columns = sorted(frame["evaluated_on"].unique())
    truth = {column: pd.read_parquet(labelled[column]).set_index("example_id")["label"] for column in columns}
    return multibootstrap.against_original(frame, truth, options.resamples, options.seed, options.confidence)


def ledger_of_claims(run: pd.DataFrame, raw: pd.DataFrame, checks: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """Judges the claims by what this run can speak of, and returns the ledger of `claims.ledger`.

    Args:
        run, raw: measurements of this run, with what `baselines.add_baselines` adds, and of the released results.
        checks: of the published numbers, as the stage `audit` writes them, with empty texts for what is missing.
        settings: sizes, data source, protocols of translation, and the options of the analysis.
    """
    options = settings.analysis
    content = claims.rules()
    protocols = {name: protocol.model_dump() for name, protocol in settings.translation.protocols.items()}
    scope = claim_scope.Scope(
        sizes=settings.sizes,
        comparable=not settings.data.generated,
        confidence=options.confidence,
        alpha=options.alpha,
        differing=claim_scope.differing_keys(content["translation"], protocols),
    )
    return claims.ledger(published.claims(), content, checks, raw, run, scope)


def with_source(run: pd.DataFrame, raw: pd.DataFrame) -> pd.DataFrame:
    """Puts the rows of this run above those of the released results (`raw`); a first column `source` tells which."""
    frames = [frame.assign(source=name) for name, frame in ((REPRODUCED, run), (RELEASED, raw))]
    frame = pd.concat([part for part in frames if len(part)] or frames)  # an empty one would change columns' types
    return frame[["source", *frame.columns.drop("source")]]


def summary_table(run: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Statistics of parameters, losses and scores (fractions): `keys`, and statistics.Summary without extremes."""
    keys = ["stage", "metric", "protocol", "evaluated_on", "operator", "size"]
    rows = run[run["stage"].isin(("parameters", "pretraining", "finetuning"))]
    # without counts that are further split by condition, and times to milestones, as some runs may never get there
    rows = rows[~rows["metric"].isin(("feed_forward_weights", *convergence.NAMES))]
    return summaries(rows, keys, confidence).drop(columns=["minimum", "maximum"])


def metrics(means: pd.DataFrame, comparisons: pd.DataFrame, settings: Settings) -> dict:
    """Collects what `dvc metrics show` shows.

    Args:
        means, comparisons: as `summary_table` and `contrasts.table` return them; `at` of the latter is NAME below.
        settings: operators and sizes of the run.

    Returns:
        Operator -> size -> means: `validation_loss`, `parameters`, and protocol -> `glue_score`, times 100. A run of
        fewer than all tasks has no GLUE score; its columns stand there instead. Next to NAME stands
        NAME_against_original: the `verdict`, and `difference`, `low` and `high` where they are known.
    """
    result: dict = {}
    with_glue_score = set(means.loc[means["evaluated_on"] == scores.GLUE_SCORE, "protocol"])
    asked = means["operator"].isin(settings.operators) & means["size"].isin(settings.sizes)
    for row in means[asked].itertuples():
        entry = result.setdefault(row.operator, {}).setdefault(row.size, {})
        if row.metric == "final_validation_loss":
            entry[contrasts.FINAL_LOSS] = round(row.mean, 4)
        if row.metric == "score" and (row.protocol not in with_glue_score or row.evaluated_on == scores.GLUE_SCORE):
            entry.setdefault(row.protocol, {})[row.evaluated_on] = round(100 * row.mean, 2)
        if row.metric == "masked_lm_parameters":
            entry["parameters"] = int(row.mean)
    compared = comparisons[(comparisons["source"] == REPRODUCED) & (comparisons["reference"] == REFERENCE)]
    for row in compared.itertuples():
        entry = result.get(row.arm, {}).get(row.size, {})
        entry = entry.get(row.protocol, {}) if row.quantity == contrasts.SCORE else entry
        if row.at in entry:
            numbers = {"difference": row.estimate, "low": row.low, "high": row.high}
            rounded = {name: round(value, 4) for name, value in numbers.items() if pd.notna(value)}
            entry[f"{row.at}_against_original"] = rounded | {"verdict": row.verdict}
    return result


def write_plots(run: pd.DataFrame, curves: pd.DataFrame) -> None:
    """Writes the CSV files of `dvc plots`: the loss by step (in `curves`, over runs), and the GLUE score by run."""
    loss = curves[curves["quantity"] == "loss"].rename(columns={"mean": "validation_loss"})
    write_table(PLOTS / "pretraining_loss.csv", loss[["operator", "size", "step", "validation_loss"]])
    whole = derived.matching(run, TUNED | {"evaluated_on": scores.GLUE_SCORE})
    names = ["protocol", "operator", "size", "pretraining_seed", "finetuning_seed", "glue_score"]
    write_table(PLOTS / "glue.csv", whole.assign(glue_score=100 * whole["value"])[names])


def main(settings: Settings) -> dict:
    """Writes every table of the analysis, the metrics and the plots; adds nothing to the record of the stage."""
    options = settings.analysis
    rows = inputs.observed(settings)
    raw_rows = released.observations()
    run, raw = quantities.measurements(rows, options.levels), quantities.measurements(raw_rows)
    run_curves, raw_curves = convergence.curves(rows, run), convergence.curves(raw_rows, raw)
    references = baselines.references(rows, options.confidence)
    without_model = baselines.without_model(references)
    means = baselines.add_baselines(summary_table(run, options.confidence), without_model, "mean")
    run_with_baselines = baselines.add_baselines(run, without_model)
    sources = {
        REPRODUCED: contrasts.quantities(rows, run_with_baselines, without_model),
        RELEASED: contrasts.quantities(raw_rows, raw, {}),
    }
    comparable = not settings.data.generated
    evidence = cells.Evidence(run, raw, settings.operators, settings.sizes, options, comparable, without_model)
    ledger = ledger_of_claims(run_with_baselines, raw, pd.read_csv(AUDIT, keep_default_na=False), settings)
    arms = ["size", "milestone", "operator"]  # one curve each, of the share of runs that have yet to get there
    tables = {
        "cells": pd.concat([cells.fill(table, evidence) for table in specifications.load()[0].values()]),
        "baselines": references,
        "contrasts": contrasts.table(sources, options.confidence, options.alpha, options.pairs),
        "contrast_columns": contrasts.column_meanings(),
        "multibootstrap": bootstrap(settings),
        "runs": with_source(*(derived.matching(measured, TUNED)[RUN_COLUMNS] for measured in (run, raw))),
        "summaries": means,
        "milestones": with_source(
            convergence.milestones(run, run_curves, options.confidence),
            convergence.milestones(raw, raw_curves, options.confidence),
        ),
        "waiting": with_source(*(survival.curves(convergence.milestone_events(of), arms) for of in (run, raw))),
        "curves": pd.concat([with_source(run_curves, raw_curves), published.shared_curve()]),
        "bars": published.times_saved(run),
        **robustness.tables(rows, without_model, options.confidence),
        "speed": derived.time_summaries(rows),
        "translation": translation.summaries(run, options.confidence),
        "translation_curves": translation.curves(rows),
        "claims": ledger,
        "tally": claims.tally(ledger),
    }
    for name, frame in tables.items():
        write_table(ANALYSIS / f"{name}.csv", frame)
    with temporary_sibling(ANALYSIS / "results.parquet") as path:
        rows.to_parquet(path, index=False)
    write_plots(run, run_curves)
    write_atomically(METRICS, json.dumps(metrics(means, tables["contrasts"], settings), indent=2) + "\n")
    return {}
