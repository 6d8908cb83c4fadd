"""The report's table and figures of translation and of the sequence tasks, by operator."""

from dataclasses import replace

import pandas as pd
from matplotlib.axes import Axes

from stages.report.drawing import HEIGHT, WIDTH, Drawing, panels, style
from stages.report.tables import Grid, Heading, mean_sd, plain

MEASURES = {  # heading, what it means, factor, decimals
    "peak_training_accuracy": ("Training accuracy", "of all positions, best epoch, %", 100, 2),
    "final_accuracy_ceiling": ("Its ceiling", "real tokens of all positions, %", 100, 2),
    "final_accuracy": ("Token accuracy", "held-out sentences, last epoch, %", 100, 2),
    "final_perplexity": ("Perplexity", "a held-out sub-word", 1, 2),
    "greedy_bleu": ("BLEU, greedy", "by sacrebleu", 1, 1),
    "beam_bleu": ("BLEU, beam", "by sacrebleu", 1, 1),
    "copy_bleu": ("BLEU of a copy", "the source itself", 1, 1),
}
TASKS = {"recurrence": "error over the standard deviation", "copy": "share of wrong values"}
SHOWN = {  # of the figures by epoch: the label of the axis, and the factor
    "training_accuracy": ("training accuracy of all positions (%)", 100),
    "accuracy": ("accuracy of held-out tokens (%)", 100),
}
CEILING = "accuracy_ceiling"


def scores(summaries: pd.DataFrame) -> Grid:
    """A line a protocol and operator, a column a measure; mean and standard deviation over the seeds."""
    rows = summaries[summaries["metric"].isin(MEASURES)]
    columns = {"label": (Heading("Protocol, operator"), str)}
    columns |= {name: (Heading(label, meaning), mean_sd) for name, (label, meaning, _, _) in MEASURES.items()}
    notes = (
        "The training accuracy counts the padded positions of every target as errors, as the tutorial does that the "
        "blog post follows; no model can exceed the ceiling. Mean ± standard deviation over the seeds.",
    )
    return _grid(rows, columns, "translation_scores", "Translation, by operator", notes)


def sequences(summaries: pd.DataFrame) -> Grid:
    """A line an operator, a column a sequence task."""
    rows = summaries[summaries["metric"] == "error"]
    rows = rows.assign(metric=rows["protocol"], protocol="sequence tasks")
    columns = {"label": (Heading("Operator"), str)}
    columns |= {task: (Heading(task.capitalize(), meaning), mean_sd) for task, meaning in TASKS.items()}
    notes = (
        "Error on held-out sequences, mean ± standard deviation over the seeds. The recurrence has fixed lags, which "
        "position alone tells; the copy asks for the value beside a key, wherever that stands.",
    )
    return _grid(rows, columns, "sequence_tasks", "A recurrence of fixed lags, and a copy by content", notes)


def _grid(rows: pd.DataFrame, columns: dict, name: str, title: str, notes: tuple[str, ...]) -> Grid:
    lines = []
    for (protocol, operator), here in rows.groupby(["protocol", "operator"], sort=False):
        label = operator if name == "sequence_tasks" else f"{protocol}, {operator}"
        lines.append({"label": label} | {row.metric: _scaled(row) for row in here.itertuples()})
    frame = pd.DataFrame(lines, columns=list(columns))
    made = plain(frame, columns, name=name, title=title, stage="translation", notes=notes)
    return replace(made, csv=rows)


def _scaled(row) -> tuple[float, float, int]:
    _, _, factor, decimals = MEASURES.get(row.metric, ("", "", 1, 3))
    return factor * row.mean, factor * row.sd, decimals


def curves(frame: pd.DataFrame) -> list[Drawing]:
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
        axes.plot(rows["epoch"], mean, color=colour, linestyle=stroke, linewidth=1.4, label=operator)
    ceiling = frame[frame["metric"] == CEILING]
    if metric == "training_accuracy":
        axes.axhline(100 * ceiling["mean"].mean(), color=style("original")[0], linestyle=":", label="ceiling")
    axes.set_xlabel("epoch")
    axes.xaxis.get_major_locator().set_params(integer=True)


def _ends(frame: pd.DataFrame) -> str:
    """The last value of every curve, in words."""
    metric = frame["shown"].iloc[0]
    last = frame[frame["metric"] == metric].groupby("operator", sort=False)["mean"].last()
    return ", ".join(f"{operator} ends at {100 * value:.1f}" for operator, value in last.items())
