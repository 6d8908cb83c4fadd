"""The report's figures of noise and transfer: one figure of each for every protocol and size of a run.

Noise: the score by level, a line an operator, beside what Kowsher et al. print (Table 5). Transfer: heat maps of the
accuracy by task trained on and tested on, beside their Table 6, above what answers without a model score.
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
FIGURES = {"noise_curves": ("noise", NOISE), "transfer_matrices": ("cross_domain", TRANSFER)}  # stage, table beside it
SIZE = "base"  # of the published models
MODEL = ["protocol", "size"]
LOW, HIGH = 50.0, 100.0  # per cent, from the faintest to the strongest colour: a coin, and all answers right
THREE_CLASSES = ("mnli",)  # tasks whose accuracy on themselves is over three classes
PRIORS = ("majority",)
STRONGEST = 0.6  # opacity; a number in the cell stays readable on a light and on a dark page
NOISE_CSV = ["source", *MODEL, "operator", "evaluated_on", "kind", "level", "mean", "minimum", "maximum", "n"]
TRANSFER_CSV = ["source", *MODEL, "operator", "trained", "evaluated_on", "mean", "sd", "n"]


def noise(curves: pd.DataFrame, cells: pd.DataFrame, constant: dict[str, float]) -> list[Drawing]:
    """Draws the figure of noise, for every protocol and size of a run.

    Args:
        curves: as robustness.curves gives them, scores as fractions.
        cells: of all published tables.
        constant: split -> accuracy of a constant answer, in per cent, on the data of this run.
    """
    curves = curves.assign(source="reproduced", **{name: 100 * curves[name] for name in ("mean", "minimum", "maximum")})
    printed = _printed(cells, NOISE)
    level, tested = printed["row"].astype(float) / 100, printed["column"].replace(COLUMN_OF)
    printed = printed.assign(level=level, evaluated_on=tested, kind="noise")
    drawings = []
    for ends, run in _runs(curves):
        frame = _in_order(pd.concat([printed, run]) if len(run) else printed)
        span = frame.reindex(columns=["mean", "minimum", "maximum"]).stack()
        scale = (min(span.min(), *constant.values(), 100.0) - 2, max(span.max(), *constant.values(), 0.0) + 2)
        paint = partial(_lines, constant=constant, scale=scale)
        panels = frame.groupby(["size", "kind", "evaluated_on"], sort=False)
        groups = [(_noise_title(*keys, rows), rows) for keys, rows in panels]
        units = [f"{n} {unit}" for n, unit in run[["n", "unit"]].drop_duplicates().itertuples(index=False)]
        csv = frame.reindex(columns=NOISE_CSV)
        drawings.append(_drawing("noise_curves", "Accuracy under noise", ends, groups, paint, 2.5, csv, units=units))
    return drawings


def transfer(means: pd.DataFrame, cells: pd.DataFrame) -> list[Drawing]:
    """Draws the figure of transfer, for every protocol and size of a run.

    Args:
        means: as robustness.transfer gives them, scores as fractions.
        cells: of all published tables.
    """
    means = means.assign(source="reproduced", mean=100 * means["mean"], trained=means["task"])
    printed = _printed(cells, TRANSFER)
    printed = printed.assign(evaluated_on=printed["row"].replace(COLUMN_OF), trained=printed["column"])
    drawings = []
    for ends, run in _runs(means):
        frame = pd.concat([printed, _with_priors(run)]) if len(run) else printed
        groups = [
            (f"{names.model(size, operator)}{', published' if source == 'published' else ''}", rows)
            for (source, size, operator), rows in frame.groupby(["source", "size", "operator"], sort=False)
        ]
        title, csv = "Accuracy (%) by the task trained on and the task tested on", frame.reindex(columns=TRANSFER_CSV)
        drawings.append(_drawing("transfer_matrices", title, ends, groups, _heat, 2.9, csv))
    return drawings


def _runs(frame: pd.DataFrame) -> list[tuple[tuple[str, str], pd.DataFrame]]:
    """Of every protocol and size the ends of the name and of the title, and the rows; without any, one without rows."""
    frame = frame[frame["evaluated_on"] != MISMATCHED]
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
    """A figure of this run, or without one of the published numbers alone, beside the table that it goes with.

    ends: of the name and of the title, as `_runs` gives them. height: of a panel. facts: what the notes name.
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
    """A task as the papers write it."""
    return names.task(evaluated_on).removesuffix("-m")


def _printed(cells: pd.DataFrame, name: str) -> pd.DataFrame:
    """The printed cells of a table: source, size, operator and mean, with the task of its row or level, and column."""
    rows = select(cells[cells["published"].notna()], table=name)
    parts = rows["column_key"].str.extract(r"^(?:col_)?(?P<column>\w+)\.(?P<operator>\w+)$")
    row = rows["row_key"].str.removeprefix("noise_").str.removeprefix("row_")
    return parts.assign(source="published", size=SIZE, row=row, mean=rows["published"])


def _with_priors(run: pd.DataFrame) -> pd.DataFrame:
    """Accuracies, and for every operator below them what the more frequent answer scores."""
    majority = select(run, metric="majority_accuracy").drop_duplicates(["operator", "evaluated_on"])
    return pd.concat([select(run, metric="accuracy"), majority.assign(trained="majority", sd=float("nan"), n=None)])


def _in_order(frame: pd.DataFrame) -> pd.DataFrame:
    """By kind of noise, each in the order of the frame, and by level; levels in per cent."""
    kinds = list(dict.fromkeys(frame["kind"]))
    frame = frame.assign(level=100 * frame["level"], rank=frame["kind"].map(kinds.index))
    return frame.sort_values(["rank", "level"]).drop(columns="rank")


def _noise_title(size: str, kind: str, evaluated_on: str, rows: pd.DataFrame) -> str:
    published = "published, " if (rows["source"] == "published").all() else ""
    where = "embeddings" if kind == "noise" else kind.replace("_", " ")
    return f"{_label(evaluated_on)}, {where}, {published}BERT-{size}"


def _lines(axes: Axes, frame: pd.DataFrame, constant: dict[str, float], scale: tuple[float, float]) -> None:
    """Score by level: reproduced as lines with a band, published as hollow markers on a thin line."""
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
    """One operator's matrix, its numbers in the cells; answers without a model below a gap."""
    tested = list(dict.fromkeys(frame["evaluated_on"]))
    order = {COLUMN_OF.get(task, task): task for task in dict.fromkeys(frame["trained"])}
    lines = [order.pop(split) for split in tested if split in order] + list(order.values())
    places = {line: place + 0.25 * (line in PRIORS) for place, line in enumerate(lines)}
    for row in frame.itertuples():
        x, y = tested.index(row.evaluated_on), places[row.trained]
        share = min(max((row.mean - LOW) / (HIGH - LOW), 0.0), 1.0)
        itself = COLUMN_OF.get(row.trained, row.trained) == row.evaluated_on
        three = itself and row.trained in THREE_CLASSES
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
