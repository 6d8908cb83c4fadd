"""Robustness under noise, and transfer between tasks: statistics over the observations of both stages."""

import pandas as pd

from stages.evidence import baselines, derived
from stages.evidence.statistics import summarise_groups

CURVE = [
    "protocol",
    "size",
    "operator",
    "evaluated_on",
    "kind",
]
RUN = [
    "pretraining_seed",
    "finetuning_seed",
]
KIND_AND_LEVEL = r"^(?P<kind>[a-z_]+)=(?P<level>[\d.]+)$"
PROBED = r"(layer=\d+|model)$"


def select_noise_levels(rows: pd.DataFrame) -> pd.DataFrame:
    """Selects accuracies under noise from observations, with the kind of noise and the level as columns.

    The condition `typos=0.4` gives `kind` typos and `level` 0.4. The kind `noise` is noise on embeddings, every other
    kind is noise in the text. The clean accuracy, measured once as `noise=0`, becomes level 0 of each kind.
    """
    rows = rows[(rows["stage"] == "noise") & (rows["metric"] == "accuracy")]
    parts = rows["condition"].str.extract(KIND_AND_LEVEL)
    rows = rows.assign(
        kind=parts["kind"],
        level=parts["level"].astype(float),
    )
    clean = rows[(rows["kind"] == "noise") & (rows["level"] == 0)]
    frames = [rows]
    for kind in rows["kind"].unique():
        if kind != "noise":
            frames.append(clean.assign(kind=kind))
    return pd.concat(frames, ignore_index=True)


def make_tables(
    rows: pd.DataFrame, without_model: baselines.WithoutModel, confidence: float
) -> dict[str, pd.DataFrame]:
    """Summarises noise, transfer between tasks, and probes of attention over runs.

    Args:
        rows: observations: a row per measured number.
        without_model: the scores of answers without a model, such as a constant answer.
        confidence: of the intervals, such as 0.95.

    Returns:
        A table by the name of the file, with the columns that group the runs, and `mean`, `sd`, `n` and interval.
    """
    noisy = select_noise_levels(rows)
    curves = summarise_groups(noisy, [*CURVE, "level"], confidence)
    # `add_baselines` selects the score of a baseline by the metric.
    curves = baselines.add_baselines(curves.assign(metric="accuracy"), without_model, "mean")
    measures = derived.measure_curves(noisy, [*CURVE, *RUN])
    transferred = rows[rows["stage"] == "cross_domain"]
    # The stage noise also probes attention, under conditions such as `layer=2`.
    probes = rows["condition"].str.match(PROBED, na=False)
    probed = rows[(rows["stage"] == "noise") & probes]
    place = [
        "protocol",
        "size",
        "operator",
    ]
    return {
        "noise_curves": curves.drop(columns="metric"),
        "noise_measures": summarise_groups(measures, [*CURVE, "measure"], confidence),
        "transfer": summarise_groups(transferred, [*place, "task", "evaluated_on", "metric"], confidence),
        "probes": summarise_groups(probed, [*place, "evaluated_on", "condition", "metric"], confidence),
    }
