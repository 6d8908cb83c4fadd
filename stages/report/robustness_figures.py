"""The report's figures of noise and transfer: one figure of each for every protocol and size of a run.

Noise: the score by level, a line per operator, next to what Kowsher et al. print (Table 5). Transfer: heat maps of the
accuracy by task trained on and tested on, next to their Table 6; the last row is what an answer without a model scores.
"""

from collections.abc import Callable
from functools import partial

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from stages.benchmarks.glue import COLUMN_OF
from stages.evidence import specifications
from stages.evidence.scores import MISMATCHED
from stages.report import names
from stages.report.drawing import CONSTANT, DASHED, HEAT, INK, WIDTH, Drawing, curve, drawing, style
from stages.report.inputs import select
from stages.report.words import alternative, content, say

NOISE, TRANSFER = "kowsher2025_naacl_table5_noise", "kowsher2025_naacl_table6_cross_domain"
FIGURES = {"noise_curves": ("noise", NOISE), "transfer_matrices": ("cross_domain", TRANSFER)}  # stage, published table
MODEL = ["protocol", "size"]
LOW, HIGH = 50.0, 100.0  # per cent, from the faintest to the strongest colour: a coin, and all answers right
STRONGEST = 0.6  # opacity; a number in the cell stays readable on a light and on a dark page
NOISE_CSV = ["source", *MODEL, "operator", "evaluated_on", "kind", "level", "mean", "minimum", "maximum", "n"]
TRANSFER_CSV = ["source", *MODEL, "operator", "trained", "evaluated_on", "mean", "sd", "n"]


def noise(curves: pd.DataFrame, cells: pd.DataFrame, constant: dict[str, float]) -> list[Drawing]:
    """Draws a figure of noise for every protocol and size of a run, or one of the published numbers alone.

    Args:
        curves: noise_curves of analysis: MODEL, operator, evaluated_on (a split), kind (of noise), level, and over n
            units (`unit`, such as pre-training seeds) mean, minimum and maximum; level and the latter are fractions.
        cells: of all published tables: table, row_key, column_key, published (a number or NaN).
        constant: split -> accuracy of a constant answer, in per cent, on the data of this run.
    """
    curves = curves.assign(source="reproduced", **{name: 100 * curves[name] for name in ("mean", "minimum", "maximum")})
    printed = _printed(cells, NOISE)
    level, tested = printed["row"].astype(float) / 100, printed["column"].replace(COLUMN_OF)
    printed = printed.assign(level=level, evaluated_on=tested, kind="noise")
    drawings = []
    for ends, run in _runs(curves):
        frame = pd.concat([printed, run]) if len(run) else printed
        kinds = list(dict.fromkeys(frame["kind"]))  # of noise: the rows' order is by kind, and then by level
        frame = frame.assign(level=100 * frame["level"], rank=frame["kind"].map(kinds.index))
        frame = frame.sort_values(["rank", "level"]).drop(columns="rank")
        span = frame.reindex(columns=["mean", "minimum", "maximum"]).stack()
        # without constants, 100.0 and 0.0 are the second argument that min and max need; they change no result
        scale = (min(span.min(), *constant.values(), 100.0) - 2, max(span.max(), *constant.values(), 0.0) + 2)
        paint = partial(_lines, constant=constant, scale=scale)
        panels = frame.groupby(["size", "kind", "evaluated_on"], sort=False)
        groups = [(_noise_title(*keys, rows), rows) for keys, rows in panels]
        units = [f"{n} {unit}" for n, unit in run[["n", "unit"]].drop_duplicates().itertuples(index=False)]
        csv = frame.reindex(columns=NOISE_CSV)
        drawings.append(_drawing("noise_curves", "Accuracy under noise", ends, groups, paint, 2.5, csv, units=units))
    return drawings


def transfer(means: pd.DataFrame, cells: pd.DataFrame) -> list[Drawing]:
    """Draws a figure of transfer for every protocol and size of a run, or one of the published numbers alone.

    Args:
        means: transfer of analysis: mean and sd, fractions, and n by MODEL, operator, task (trained on), evaluated_on
            and metric.
        cells: as for `noise`.
    """
    means = means.assign(source="reproduced", trained=means["task"])
    means[["mean", "sd"]] *= 100  # per cent, as the published ones
    printed = _printed(cells, TRANSFER)
    printed = printed.assign(evaluated_on=printed["row"].replace(COLUMN_OF), trained=printed["column"])
    drawings = []
    for ends, run in _runs(means):
        frame = printed
        if len(run):  # for every operator also what the more frequent answer scores, as if trained on "majority"
            majority = select(run, metric="majority_accuracy").drop_duplicates(["operator", "evaluated_on"])
            majority = majority.assign(trained="majority", sd=float("nan"), n=None)
            frame = pd.concat([printed, select(run, metric="accuracy"), majority])
        groups = [
            (f"{names.model(size, operator)}{', published' if source == 'published' else ''}", rows)
            for (source, size, operator), rows in frame.groupby(["source", "size", "operator"], sort=False)
        ]
        title, csv = "Accuracy (%) by the task trained on and the task tested on", frame.reindex(columns=TRANSFER_CSV)
        drawings.append(_drawing("transfer_matrices", title, ends, groups, _heat, 2.9, csv))
    return drawings


def _runs(frame: pd.DataFrame) -> list[tuple[tuple[str, str], pd.DataFrame]]:
    """Splits a run by protocol and size: ((ends of a figure's name and title), rows); without rows, one empty entry."""
    frame = frame[frame["evaluated_on"] != MISMATCHED]  # the papers have one column for MNLI
    beside = ", published (BERT-base) and of this run, BERT-{} by the recipe of {}"
    runs = [
        ((f"-{protocol}-{size}", beside.format(size, names.protocol(protocol))), rows)
        for (protocol, size), rows in frame.groupby(MODEL, sort=False)
    ]
    return runs or [(("", ""), frame)]


def _drawing(
    name: str,
    title: str,
    ends: tuple[str, str],
    groups: list[tuple[str, pd.DataFrame]],
    paint: Callable[[Axes, pd.DataFrame], None],
    height: float,
    csv: pd.DataFrame,
    **facts: object,
) -> Drawing:
    """Draws a figure of this run, or where `ends` are empty, of the published numbers alone.

    name: a key of FIGURES. ends: as `_runs` returns them. height: of a panel, in inches. facts: what the notes name.
    """
    stage, table = FIGURES[name]
    table = specifications.load()[0][table]
    notes = [say(note, **facts) for note in content("sentences")["notes"][name]]
    return drawing(
        f"{name}{ends[0]}",
        f"{title}{ends[1]}",
        stage,
        groups,
        paint,
        partial(alternative, name),
        (WIDTH, height),
        csv.astype({"n": "Int64"}),
        place=f"{table.source}, {table.number}",
        notes=tuple(filter(None, notes)),
        measured=bool(ends[0]),
    )


def _label(evaluated_on: str) -> str:
    """A task as the papers write it; MNLI's matched split, the only one here, as the task."""
    return names.task(evaluated_on).removesuffix("-m")


def _printed(cells: pd.DataFrame, name: str) -> pd.DataFrame:
    """The cells of a table, all of BERT-base, that print a number; operator, `row` and `column` are from their keys.

    `row`: a level of noise in per cent (`noise_40`) or a task tested on (`row_mnli`). `column`: a task (`mnli.shared`).
    """
    rows = select(cells[cells["published"].notna()], table=name)
    parts = rows["column_key"].str.extract(r"^(?:col_)?(?P<column>\w+)\.(?P<operator>\w+)$")
    row = rows["row_key"].str.removeprefix("noise_").str.removeprefix("row_")
    return parts.assign(source="published", size="base", row=row, mean=rows["published"])


def _noise_title(size: str, kind: str, evaluated_on: str, rows: pd.DataFrame) -> str:
    """Titles a panel, as in `MNLI, embeddings, published, BERT-base`."""
    published = "published, " if (rows["source"] == "published").all() else ""
    where = "embeddings" if kind == "noise" else kind.replace("_", " ")
    return f"{_label(evaluated_on)}, {where}, {published}BERT-{size}"


def _lines(axes: Axes, frame: pd.DataFrame, constant: dict[str, float], scale: tuple[float, float]) -> None:
    """Draws the score by level: reproduced as lines with a band, published as hollow markers; scale: limits of y."""
    for (source, operator), rows in frame.groupby(["source", "operator"], sort=False):
        if source == "reproduced":
            curve(axes, rows, operator, "level", marker=".")
            continue
        colour, stroke = style(operator)
        look = {"marker": "o", "markersize": 4, "markerfacecolor": "none", "linewidth": 0.6, "alpha": 0.8}
        name = f"{names.operator(operator)}, published"
        axes.plot(rows["level"], rows["mean"], color=colour, linestyle=stroke, label=name, **look)
    split = frame["evaluated_on"].iloc[0]
    if (frame["source"] == "reproduced").any() and split in constant:
        axes.axhline(constant[split], color=INK, linewidth=0.8, linestyle=DASHED, label=CONSTANT)
    axes.set_ylim(*scale)
    axes.set_xlabel("level of noise (%)")
    axes.set_ylabel("accuracy (%)")


def _heat(axes: Axes, frame: pd.DataFrame) -> None:
    """Draws an operator's matrix of mean (%) by `trained`, a task or, below a gap, `majority`, and `evaluated_on`."""
    tested = list(dict.fromkeys(frame["evaluated_on"]))
    order = {COLUMN_OF.get(task, task): task for task in dict.fromkeys(frame["trained"])}
    lines = [order.pop(split) for split in tested if split in order] + list(order.values())  # own task: on the diagonal
    places = {line: place + 0.25 * (line == "majority") for place, line in enumerate(lines)}
    for row in frame.itertuples():
        x, y = tested.index(row.evaluated_on), places[row.trained]
        share = min(max((row.mean - LOW) / (HIGH - LOW), 0.0), 1.0)
        itself = COLUMN_OF.get(row.trained, row.trained) == row.evaluated_on
        three = itself and row.trained == "mnli"  # of three classes: not on the scale of the colours, which is of two
        if not three:
            axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=HEAT, alpha=STRONGEST * share))
        if itself:
            frame_of = {"edgecolor": INK, "linewidth": 1, "linestyle": (0, (2, 2)) if three else "solid"}
            axes.add_patch(Rectangle((x - 0.46, y - 0.46), 0.92, 0.92, fill=False, **frame_of))
        axes.text(x, y, f"{row.mean:.1f}", ha="center", va="center")
    axes.set_xlim(-0.5, len(tested) - 0.5)
    axes.set_ylim(max(places.values()) + 0.5, -0.5)
    axes.set_xticks(range(len(tested)), [_label(split) for split in tested])
    axes.set_yticks(list(places.values()), [_label(line) for line in places])
    axes.set_xlabel("tested on")
    axes.set_ylabel("trained on")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.grid(visible=False)
