"""The numbers that figures draw next to measured curves: what the text of Kowsher et al. reads off its own figures."""

import pandas as pd

from stages.evidence import published

NUMBERS = "kowsher2025_naacl_text_and_figure_numbers"  # the same in both editions


def _printed() -> pd.Series:
    """The numbers of the text and figures of Kowsher et al., by `row_key` and `column_key`."""
    frame = published.table(NUMBERS)
    return frame.set_index(["row_key", "column_key"])["value"].astype(float)


def published_curve() -> pd.DataFrame:
    """Both ends of the loss curve of `shared` in Figure 2 of Kowsher et al., in the form of `convergence.curves`."""
    numbers = _printed()
    loss = [numbers["pretrain", "initial_loss"], numbers["pretrain", "final_loss"]]
    steps = [0, int(numbers["pretrain", "steps"])]
    frame = pd.DataFrame({"step": steps, "mean": loss, "minimum": loss, "maximum": loss})
    return frame.assign(source="published", quantity="loss", operator="shared", size="base", n=1)


def time_saved(run: pd.DataFrame) -> pd.DataFrame:
    """Per cent of an epoch's time that an operator saves against the original, by task.

    As Figure 3 of Kowsher et al. prints it, and as this run measured it, where it did. Columns: source, quantity,
    operator, size, label (the task), value, and n, the rounds whose mean a value of this run is; NaN for printed ones.
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
