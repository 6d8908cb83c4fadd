"""How models stand noise, and how they travel between tasks: statistics over the observations of both stages.

Noise: the accuracy by level, and what a run loses from clean to the strongest noise, the area under its curve and its
slope. Each is computed for every run and then summarised over the units of inference (stages.evidence.statistics). What
is lost is compared with `original` in contrasts.py: the score under noise would repeat what the clean score says.

Observations have one number a row: stage, metric, value, operator, size, protocol, task (trained on), evaluated_on,
condition (such as `noise=0.1`, on the embeddings, or `typos=0.1`, in the text) and both seeds.
"""

import pandas as pd

from stages.evidence import baselines, derived, statistics

CURVE = ["protocol", "size", "operator", "evaluated_on", "kind"]
RUN = ["pretraining_seed", "finetuning_seed"]


def levels(rows: pd.DataFrame) -> pd.DataFrame:
    """Accuracies of the stage `noise` by `kind` (noise, typos, ...) and `level`; `noise=0` is level 0 of every kind.

    rows: observations; returned are those of accuracy, with these two columns, and copies of `noise=0` for other kinds.
    """
    rows = rows[(rows["stage"] == "noise") & (rows["metric"] == "accuracy")]
    parts = rows["condition"].str.extract(r"^(?P<kind>[a-z_]+)=(?P<level>[\d.]+)$")
    rows = rows.assign(kind=parts["kind"], level=parts["level"].astype(float))
    clean = rows[(rows["kind"] == "noise") & (rows["level"] == 0)]
    others = [clean.assign(kind=kind) for kind in rows["kind"].unique() if kind != "noise"]
    return pd.concat([rows, *others], ignore_index=True)


def tables(rows: pd.DataFrame, without_model: baselines.WithoutModel, confidence: float) -> dict[str, pd.DataFrame]:
    """Summarises noise, transfer between tasks, and probes (measures of attention inside a model) over the runs.

    Args:
        rows: observations.
        without_model: the scores of answers without a model, as `baselines.without_model` returns them.
        confidence: of the intervals, such as 0.95.

    Returns:
        By the name of its file, a table with the columns that it is grouped by and the fields of statistics.Summary.
        noise_curves has those of `baselines.add_baselines`, too.
    """
    noisy, transferred = levels(rows), rows[rows["stage"] == "cross_domain"]
    # probes are of a layer, or of the model as a whole
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
