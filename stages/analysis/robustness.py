"""How models stand noise, and how they travel between tasks: statistics over the observations of both stages.

Noise: the accuracy by level, and what a run loses from clean to the strongest noise, the area under its curve and its
slope. Each is computed for every run and then summarised over the units of inference (stages.evidence.statistics). What
is lost is compared with `original` in contrasts.py: the score under noise would repeat what the clean score says.
"""

import pandas as pd

from stages.evidence import baselines, derived, statistics

CURVE = ["protocol", "size", "operator", "evaluated_on", "kind"]
RUN = ["pretraining_seed", "finetuning_seed"]


def levels(rows: pd.DataFrame) -> pd.DataFrame:
    """Accuracies by `kind` of noise (noise: on embeddings; typos, ...: in the text) and `level`; all have `noise=0`."""
    rows = rows[(rows["stage"] == "noise") & (rows["metric"] == "accuracy")]
    parts = rows["condition"].str.extract(r"^(?P<kind>[a-z_]+)=(?P<level>[\d.]+)$")
    rows = rows.assign(kind=parts["kind"], level=parts["level"].astype(float))
    clean = rows[(rows["kind"] == "noise") & (rows["level"] == 0)]
    others = [clean.assign(kind=kind) for kind in rows["kind"].unique() if kind != "noise"]
    return pd.concat([rows, *others], ignore_index=True)


def tables(rows: pd.DataFrame, without_model: baselines.WithoutModel, confidence: float) -> dict[str, pd.DataFrame]:
    """Summarises noise, transfer between tasks, and probes (of attention, in a layer or the whole model) over runs.

    Args:
        rows: observations.
        without_model: the scores of answers without a model, as `baselines.without_model` returns them.
        confidence: of the intervals, such as 0.95.

    Returns:
        By the name of its file, a table of the columns that it is grouped by and the fields of statistics.Summary.
    """
    noisy, transferred = levels(rows), rows[rows["stage"] == "cross_domain"]
    probed = rows[(rows["stage"] == "noise") & rows["condition"].str.match(r"(layer=\d+|model)$", na=False)]
    place = ["protocol", "size", "operator"]
    curves = statistics.summaries(noisy, [*CURVE, "level"], confidence).assign(metric="accuracy")  # for add_baselines
    measures = derived.curve_measures(noisy, [*CURVE, *RUN])
    return {
        "noise_curves": baselines.add_baselines(curves, without_model, "mean").drop(columns="metric"),
        "noise_measures": statistics.summaries(measures, [*CURVE, "measure"], confidence),
        "transfer": statistics.summaries(transferred, [*place, "task", "evaluated_on", "metric"], confidence),
        "probes": statistics.summaries(probed, [*place, "evaluated_on", "condition", "metric"], confidence),
    }
