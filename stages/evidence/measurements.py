"""From observations to the papers' quantities: GLUE columns and scores, counts, savings, final losses.

Input: rows of observations (or released rows in the same form). Output: rows of the same form, one number a
run, from which the cells of every table are selected.
"""

import pandas as pd

from stages.evidence import scores

FIELDS = [
    "stage",
    "protocol",
    "operator",
    "size",
    "evaluated_on",
    "condition",
    "metric",
    "pretraining_seed",
    "finetuning_seed",
    "value",
]


def measurements(rows: pd.DataFrame) -> pd.DataFrame:
    """Counts, savings, GLUE columns and scores, and the final validation loss of every run."""
    columns = scores.column_scores(rows)
    counts = rows[rows["stage"] == "parameters"]
    parts = [counts, savings(counts), final_loss(rows), scores.glue_scores(columns), columns]
    return pd.concat([part.reindex(columns=FIELDS) for part in parts if len(part)], ignore_index=True)


def savings(counts: pd.DataFrame) -> pd.DataFrame:
    """Per cent of the masked-LM model's parameters that an operator saves against `original`, by size."""
    counts = counts[counts["metric"] == "masked_lm_parameters"]
    original = counts[counts["operator"] == "original"].set_index("size")["value"]
    whole = counts["size"].map(original).astype(float)
    return counts.assign(metric="saved_percent", value=100 * (1 - counts["value"] / whole))


def validation_loss(rows: pd.DataFrame) -> pd.DataFrame:
    """Validation losses of pre-training with their `step` as a number."""
    rows = rows[(rows["stage"] == "pretraining") & (rows["metric"] == "validation_loss")]
    return rows.assign(step=rows["condition"].str.removeprefix("step=").astype(int))


def final_loss(rows: pd.DataFrame) -> pd.DataFrame:
    """The validation loss after the last step of every pre-training run."""
    rows = validation_loss(rows)
    last = rows.groupby(["operator", "size", "pretraining_seed"])["step"].transform("max")
    return rows[rows["step"] == last].assign(metric="final_validation_loss", condition=None)


def curves(rows: pd.DataFrame) -> pd.DataFrame:
    """Validation loss by operator, size and step: mean, minimum, maximum and n over pre-training seeds."""
    groups = validation_loss(rows).groupby(["operator", "size", "step"], sort=False)["value"]
    return groups.agg(mean="mean", minimum="min", maximum="max", n="count").reset_index()
