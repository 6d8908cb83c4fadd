"""The report's table and figures of translation and of the sequence tasks, by operator."""

from dataclasses import replace
from math import isnan

import pandas as pd
from matplotlib.axes import Axes

from stages.common.evidence.translation import STEPS
from stages.report import names
from stages.report.drawing import HEIGHT, WIDTH, Drawing, panels, style
from stages.report.tables import MISSING, Grid, Heading, Value, interval, mean_sd, number, plain

MEASURES = {  # heading, what it means, factor, decimals
    "peak_training_accuracy": ("Training accuracy", "of all positions, best epoch, %", 100, 2),
    "final_accuracy_ceiling": ("Its ceiling", "real tokens of all positions, %", 100, 2),
    "final_accuracy": ("Token accuracy", "validation split, last epoch, %", 100, 2),
    "final_perplexity": ("Perplexity", "per sub-word of the validation split", 1, 2),
    "greedy_bleu": ("BLEU, greedy", "of the scored split, by sacrebleu", 1, 1),
    "beam_bleu": ("BLEU, beam", "of the scored split", 1, 1),
    "copy_bleu": ("BLEU of a copy", "the source itself", 1, 1),
    "seconds_per_step": ("Time per step", "milliseconds", 1000, 1),
    "longer_step_percent": ("Longer steps", "than original's, %", 1, 0),
}
TASKS = {"recurrence": "error over the standard deviation", "copy": "share of wrong values"}
SHOWN = {  # of the figures by epoch: the label of the axis, and the factor
    "training_accuracy": ("training accuracy of all positions (%)", 100),
    "accuracy": ("accuracy of held-out tokens (%)", 100),
}
CEILING = "accuracy_ceiling"


def scores(summaries: pd.DataFrame, signatures: list[str]) -> Grid:
    """A line a protocol and operator, a column a measure; mean and standard deviation over the seeds.

    signatures: of sacrebleu, which say how BLEU was computed.
    """
    rows = summaries[summaries["metric"].isin(MEASURES)].drop(columns=["low", "high"])
    columns = {"label": (Heading("Protocol, operator"), str)}
    columns |= {name: (Heading(label, meaning), _score) for name, (label, meaning, _, _) in MEASURES.items()}
    notes = (
        "The training accuracy counts the padded positions of every target as errors, as the tutorial does that the "
        "blog post follows; no model can exceed the ceiling. Mean ± standard deviation over the seeds; of times, which "
        "the stage timing measures in turn, over its rounds.",
        "params.yaml says which split is scored. Perplexities of different vocabularies cannot "
        "be compared. A step takes a batch that is padded to its longest sentence."
        + (f" BLEU: {' or '.join(signatures)}." if signatures else ""),
    )
    order = {protocol: place for place, protocol in enumerate(dict.fromkeys(rows["protocol"]))}
    rows = rows.sort_values("protocol", key=lambda protocols: protocols.map(order), kind="stable")
    title = "Translation: accuracy, perplexity, BLEU and time by protocol and operator"
    return _grid(rows, columns, "translation_scores", title, (*notes, *_seeds(rows[~rows["metric"].isin(STEPS)])))


def sequences(summaries: pd.DataFrame, confidence: float) -> Grid:
    """A line an operator, a column a sequence task."""
    rows = summaries[summaries["metric"] == "error"]
    rows = rows.assign(metric=rows["protocol"], protocol="sequence tasks")
    columns = {"label": (Heading("Operator"), str)}
    columns |= {task: (Heading(task.capitalize(), meaning), _error) for task, meaning in TASKS.items()}
    notes = (
        f"Error on held-out sequences, mean over the seeds with its {confidence:.0%} interval, cut off at zero. The "
        "recurrence has fixed lags, which position alone tells; the copy asks for the value beside a key, wherever "
        "that stands. Among 12 positions an answer that does not look for the key is wrong in some 0.78 of all cases.",
    )
    title = "Sequence tasks: errors on a recurrence of fixed lags, and on a copy by content"
    return _grid(rows, columns, "sequence_tasks", title, (*notes, *_seeds(rows)))


def _seeds(rows: pd.DataFrame) -> list[str]:
    """How many seeds, each one training run, stand behind a mean; nothing without rows."""
    counts = sorted(set(rows["n"]))
    return [f"n = {' or '.join(map(str, counts))} seeds."] if counts else []


def _grid(rows: pd.DataFrame, columns: dict, name: str, title: str, notes: tuple[str, ...]) -> Grid:
    lines = []
    for (protocol, operator), here in rows.groupby(["protocol", "operator"], sort=False):
        label = names.operator(operator) if name == "sequence_tasks" else f"{protocol}, {names.operator(operator)}"
        lines.append({"label": label} | {row.metric: row for row in here.itertuples()})
    frame = pd.DataFrame(lines, columns=list(columns))
    made = plain(frame, columns, name=name, title=title, stage="translation", notes=notes)
    return replace(made, csv=rows)


def _score(row: object) -> Value:
    if not isinstance(row, tuple):
        return Value(MISSING)
    _, _, factor, decimals = MEASURES[row.metric]
    return mean_sd((factor * row.mean, factor * row.sd, decimals))


def _error(row: object) -> Value:
    if not isinstance(row, tuple):
        return Value(MISSING)
    ends = "" if isnan(row.low) else f"({interval(max(row.low, 0.0), row.high, 3)})"
    return Value(number(row.mean, 3), ends)


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
