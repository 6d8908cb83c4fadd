"""How models stand noise, and how they travel between tasks: statistics over the observations of both stages.

Noise: the score by level, and a run's loss from clean to the strongest noise, area under the curve and slope. Each is
computed for every run and then summarised over the units of inference (stages.evidence.statistics). What is lost
is compared with `original` in contrasts.py: the score under noise would repeat what the clean score says.
"""

import pandas as pd

from stages.evidence import noise, statistics

CURVE = ["protocol", "size", "operator", "evaluated_on", "kind"]
RUN = ["pretraining_seed", "finetuning_seed"]


def levels(rows: pd.DataFrame) -> pd.DataFrame:
    """Accuracies of the stage `noise` by `kind` (noise, typos, ...) and `level`; `noise=0` is level 0 of every kind."""
    rows = rows[(rows["stage"] == "noise") & (rows["metric"] == "accuracy")]
    parts = rows["condition"].str.extract(r"^(?P<kind>[a-z_]+)=(?P<level>[\d.]+)$")
    rows = rows.assign(kind=parts["kind"], level=parts["level"].astype(float))
    clean = rows[(rows["kind"] == "noise") & (rows["level"] == 0)]
    others = [clean.assign(kind=kind) for kind in rows["kind"].unique() if kind != "noise"]
    return pd.concat([rows, *others], ignore_index=True)


def curves(rows: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Summarises the score (fields of `Summary`) for every curve (CURVE) and level. rows: as `levels` returns them."""
    return statistics.summaries(rows, [*CURVE, "level"], confidence)


def measures(rows: pd.DataFrame) -> pd.DataFrame:
    """Computes the numbers of `noise.summary`, one per row, for every curve and run. rows: as `levels` returns them."""
    return noise.measures(rows, [*CURVE, *RUN])


def summaries(rows: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Summarises each measure over the runs, for every curve. rows: as `measures` returns them."""
    return statistics.summaries(rows, [*CURVE, "measure"], confidence)


def transfer(rows: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Summarises every metric of the stage `cross_domain` by operator, task trained on and split tested on."""
    keys = ["protocol", "size", "operator", "task", "evaluated_on", "metric"]
    return statistics.summaries(rows[rows["stage"] == "cross_domain"], keys, confidence)


def probes(rows: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Summarises every probe of the stage `noise` by operator, split and `condition`: `layer=NUMBER`, or `model`."""
    rows = rows[(rows["stage"] == "noise") & rows["condition"].str.match(r"(layer=\d+|model)$", na=False)]
    return statistics.summaries(
        rows, ["protocol", "size", "operator", "evaluated_on", "condition", "metric"], confidence
    )
