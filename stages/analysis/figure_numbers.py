"""The numbers that figures draw beside measured curves: what the text of Kowsher et al. reads off theirs."""

import pandas as pd

from stages.evidence import published

NUMBERS = "kowsher2025_naacl_text_and_figure_numbers"  # the same in both editions


def _printed() -> pd.Series:
    """The numbers of their texts and figures, by row and column of the table of data/published."""
    frame = published.table(NUMBERS)
    return frame.set_index(["row_key", "column_key"])["value"].astype(float)


def published_curve() -> pd.DataFrame:
    """Ends of the loss curve in Figure 2 of Kowsher et al., which is of shared, in the form of convergence.curves."""
    numbers = _printed()
    loss = [numbers["pretrain", "initial_loss"], numbers["pretrain", "final_loss"]]
    steps = [0, int(numbers["pretrain", "steps"])]
    frame = pd.DataFrame({"step": steps, "mean": loss, "minimum": loss, "maximum": loss})
    return frame.assign(source="published", quantity="loss", operator="shared", size="base", n=1)


def time_saved(run: pd.DataFrame) -> pd.DataFrame:
    """Per cent of time that an operator saves an epoch, by task: their Figure 3, and this run's where it was timed.

    Columns: source, quantity, operator, size, label, value, and n, the rounds whose mean a value of this run is.
    """
    numbers = _printed()
    printed = numbers[numbers.index.get_level_values(1) == "time_reduction"].reset_index()
    tasks = printed["row_key"].str.removeprefix("time.")
    printed = printed.assign(label=tasks, operator="shared", size="base", source="published")
    timed = run[run["metric"] == "time_saved_percent"].rename(columns={"task": "label"})
    rounds = timed.groupby(["operator", "size", "label"], sort=False)["value"]
    means = rounds.agg(value="mean", n="size").reset_index().assign(source="reproduced")
    frames = [printed, means] if len(means) else [printed]
    columns = ["source", "quantity", "operator", "size", "label", "value", "n"]
    return pd.concat(frames).assign(quantity="time_saved_percent").reindex(columns=columns)
