"""The figure of translation: accuracy by epoch, a line an operator."""

import pandas as pd
from matplotlib.axes import Axes

from stages.report import names
from stages.report.drawing import HEIGHT, WIDTH, Drawing, panels, style

SHOWN = {  # of the figures by epoch: the label of the axis, and the factor
    "training_accuracy": ("training accuracy of all positions (%)", 100),
    "accuracy": ("accuracy of held-out tokens (%)", 100),
}
CEILING = "accuracy_ceiling"


def drawings(frame: pd.DataFrame) -> list[Drawing]:
    """One figure: a panel a protocol and accuracy, a line an operator; dotted, the ceiling where there is one."""
    groups = [
        (f"{protocol}: {SHOWN[metric][0]}", rows[rows["metric"].isin((metric, CEILING))].assign(shown=metric))
        for protocol, rows in frame.groupby("protocol", sort=False)
        for metric in SHOWN
    ]
    if not groups:
        return []
    alternative = " ".join(f"{title}: {_ends(rows)}." for title, rows in groups)
    return [
        Drawing(
            name="translation_curves",
            place="",
            title="Accuracy of translation by epoch",
            stage="translation",
            alternative=alternative,
            notes=("Lines are means over the seeds, bands reach from the lowest to the highest.",),
            **panels(groups, _lines, WIDTH, HEIGHT),
            csv=frame,
        )
    ]


def _lines(axes: Axes, frame: pd.DataFrame) -> None:
    metric = frame["shown"].iloc[0]
    for operator, rows in frame[frame["metric"] == metric].groupby("operator", sort=False):
        colour, stroke = style(operator)
        low, high, mean = (SHOWN[metric][1] * rows[name] for name in ("minimum", "maximum", "mean"))
        axes.fill_between(rows["epoch"], low, high, color=colour, alpha=0.18, linewidth=0)
        axes.plot(rows["epoch"], mean, color=colour, linestyle=stroke, linewidth=1.4, label=names.operator(operator))
    ceiling = frame[frame["metric"] == CEILING]
    if metric == "training_accuracy":
        axes.axhline(100 * ceiling["mean"].mean(), color=style("original")[0], linestyle=":", label="ceiling")
    axes.set_xlabel("epoch")
    axes.xaxis.get_major_locator().set_params(integer=True)


def _ends(frame: pd.DataFrame) -> str:
    """The last value of every curve, in words."""
    metric = frame["shown"].iloc[0]
    last = frame[frame["metric"] == metric].groupby("operator", sort=False)["mean"].last()
    return ", ".join(f"{names.operator(operator)} ends at {100 * value:.1f}" for operator, value in last.items())
