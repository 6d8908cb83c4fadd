"""The report's figures of noise and transfer: one figure of each for every protocol and size of a run.

Noise: the score by level, a line per operator, next to the accuracies of Kowsher et al. (Table 5). Transfer: heat maps
of the accuracy by task trained on and task tested on, next to Table 6; the last row is the accuracy of an answer
without a model.
"""

from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap

from stages.benchmarks.glue import COLUMN_OF
from stages.evidence import specifications
from stages.evidence.fields import select_rows
from stages.evidence.scores import MISMATCHED
from stages.report import names
from stages.report.drawing import (
    CONSTANT,
    WIDTH,
    Drawing,
    Groups,
    Painter,
    draw_curve,
    draw_figure,
    draw_reference,
    find_limits,
)
from stages.report.line_names import SMALL
from stages.report.looks import HEAT, find_style
from stages.report.text_templates import read_content

NOISE = "kowsher2025_naacl_table5_noise"
TRANSFER = "kowsher2025_naacl_table6_cross_domain"
# title, stage that measures, published table, and height of a panel in inches
FIGURES = {
    "noise_curves": ("Accuracy under noise", "noise", NOISE, 2.0),
    "transfer_matrices": (
        "Accuracy (%) by the task trained on and the task tested on",
        "cross_domain",
        TRANSFER,
        2.4,
    ),
}
MODEL = ["protocol", "size"]
# per cent without colour and with full opacity, on which no number would be readable: 100 has half the opacity
LOW, HIGH = 50.0, 150.0
# the row of a heat map for the more frequent answer
MAJORITY = "majority"
NOISE_CSV = ["source", *MODEL, "operator", "evaluated_on", "level", "mean", "minimum", "maximum", "n"]
TRANSFER_CSV = ["source", *MODEL, "operator", "trained", "evaluated_on", "mean", "sd", "n"]


def draw_noise(curves: pd.DataFrame, cells: pd.DataFrame, constant: dict[str, float]) -> list[Drawing]:
    """Draws the accuracy under growing noise, a panel per task and size.

    There is a figure for every protocol (fine-tuning recipe) and size of the run, with the published numbers beside;
    without a run, a figure of the published numbers.

    Args:
        curves: a row per protocol, size, operator, evaluated_on (a split) and level: mean, minimum and
            maximum accuracy over n units. Level and accuracies are fractions.
        cells: the cells of all published tables: table, row_key, column_key, published (a number or NaN).
        constant: the accuracy of a constant answer on the data of this run, in per cent, by split.
    """
    curves = curves.assign(source="reproduced")
    curves[["mean", "minimum", "maximum", "level"]] *= 100
    printed = read_printed(cells, NOISE)
    printed["level"] = printed["row"].astype(float)
    printed["evaluated_on"] = printed["column"].replace(COLUMN_OF)
    drawings = []
    for model, run in split_runs(curves):
        frame = pd.concat([printed, run]) if len(run) else printed
        frame = frame.sort_values("level", kind="stable")
        groups = []
        for keys, rows in frame.groupby(["size", "evaluated_on"], sort=False):
            groups.append((_title_noise(*keys, rows), rows))
        numbers = frame.reindex(columns=["mean", "minimum", "maximum"]).astype(float)
        values = [*constant.values(), *numbers.stack()]
        painter = partial(_paint_noise, constant=constant, scale=find_limits(values))
        csv = frame.reindex(columns=NOISE_CSV)
        drawings.append(_draw("noise_curves", model, groups, painter, csv))
    return drawings


def draw_transfer(means: pd.DataFrame, cells: pd.DataFrame) -> list[Drawing]:
    """Draws the accuracy of models that are trained on one task and tested on another, as a matrix per operator.

    There is a figure for every protocol (fine-tuning recipe) and size of the run, with the published matrices beside;
    without a run, a figure of the published matrices. In matrices of this run, a last row has the accuracy of always
    giving the more frequent answer.

    Args:
        means: a row per protocol, size, operator, task (trained on), evaluated_on and metric: mean, sd (fractions) and
            n.
        cells: the cells of all published tables: table, row_key, column_key, published (a number or NaN).
    """
    means = means.assign(source="reproduced", trained=means["task"])
    means[["mean", "sd"]] *= 100
    printed = read_printed(cells, TRANSFER)
    printed["evaluated_on"] = printed["row"].replace(COLUMN_OF)
    printed["trained"] = printed["column"]
    drawings = []
    for model, run in split_runs(means):
        frame = printed
        if len(run):
            majority = select_rows(run, metric="majority_accuracy").drop_duplicates(["operator", "evaluated_on"])
            majority = majority.assign(trained=MAJORITY, sd=float("nan"), n=None)
            frame = pd.concat([printed, select_rows(run, metric="accuracy"), majority])
        groups = []
        for (source, size, operator), rows in frame.groupby(["source", "size", "operator"], sort=False):
            end = ", published" if source == "published" else ""
            groups.append((f"{names.name_model(size, operator)}{end}", rows))
        csv = frame.reindex(columns=TRANSFER_CSV)
        drawings.append(_draw("transfer_matrices", model, groups, _paint_matrix, csv))
    return drawings


def split_runs(frame: pd.DataFrame) -> list[tuple[tuple[str, str] | None, pd.DataFrame]]:
    """Splits the rows of a run by protocol (fine-tuning recipe) and size.

    The mismatched split of MNLI is left out, because the papers have a single column for MNLI.

    Returns:
        A list of ((protocol, size), rows); without rows, one entry with `None` for the model, for a figure of published
        numbers only.
    """
    frame = frame[frame["evaluated_on"] != MISMATCHED]
    if frame.empty:
        return [(None, frame)]
    return list(frame.groupby(MODEL, sort=False))


def read_printed(cells: pd.DataFrame, table: str) -> pd.DataFrame:
    """Selects the cells of a table, all of BERT-base, that print a number.

    Returns:
        source, size, operator, mean (the printed number), `row` and `column`, both from the keys. `row`: a level of
        noise in per cent (`noise_40`) or a task tested on (`row_mnli`). `column`: a task (`mnli.shared`).
    """
    rows = select_rows(cells[cells["published"].notna()], table=table)
    parts = rows["column_key"].str.extract(r"^(?:col_)?(?P<column>\w+)\.(?P<operator>\w+)$")
    row = rows["row_key"].str.removeprefix("noise_").str.removeprefix("row_")
    return parts.assign(source="published", size="base", row=row, mean=rows["published"])


def _draw(name: str, model: tuple[str, str] | None, groups: Groups, painter: Painter, csv: pd.DataFrame) -> Drawing:
    """Draws a figure of one model of this run, or of the published numbers only.

    Args:
        name: the kind of figure, such as `noise`.
        model: protocol and size, or None for the published numbers.
        groups: title and rows of each panel.
        painter: draws the rows of a panel into axes.
        csv: the numbers that are drawn.
    """
    title, stage, table, height = FIGURES[name]
    if model:
        protocol, size = model
        title += (
            f", published (BERT-base) and of this run, BERT-{size} by the recipe of {names.name_protocol(protocol)}"
        )
    specified = specifications.load()[0][table]
    return draw_figure(
        "-".join([name, *(model or ())]),
        title,
        stage,
        groups,
        painter,
        name,
        (WIDTH, height),
        csv.astype({"n": "Int64"}),
        place=f"{specified.source}, {specified.number}",
        notes=tuple(read_content("sentences")["notes"][name]),
        measured=model is not None,
    )


def _name_split(evaluated_on: str) -> str:
    """Names a split as the papers do; the matched split of MNLI, the only MNLI split here, is `MNLI`."""
    return names.name_task(evaluated_on).removesuffix("-m")


def _title_noise(size: str, evaluated_on: str, rows: pd.DataFrame) -> str:
    """Titles a panel, as in `MNLI, embeddings, published, BERT-base`."""
    parts = [_name_split(evaluated_on), "embeddings"]
    if (rows["source"] == "published").all():
        parts.append("published")
    return ", ".join([*parts, f"BERT-{size}"])


def _paint_noise(axes: Axes, frame: pd.DataFrame, constant: dict[str, float], scale: tuple[float, float]) -> None:
    """Draws a panel: accuracy by level of noise, this run as lines with a band, published as lines of hollow marks.

    Args:
        axes: the panel.
        frame: source, operator, evaluated_on (one split), level, and mean, minimum and maximum accuracy, in per cent.
        constant: the accuracy of a constant answer by split, drawn as a further line beside results of this run.
        scale: the ends of the vertical axis.
    """
    for (source, operator), rows in frame.groupby(["source", "operator"], sort=False):
        if source == "reproduced":
            draw_curve(axes, rows, operator, "level", marker=".", clip_on=False)
            continue
        colour, stroke = find_style(operator)
        axes.plot(
            rows["level"],
            rows["mean"],
            color=colour,
            linestyle=stroke,
            label=names.name_operator(operator),
            marker="o",
            markersize=4,
            markerfacecolor="none",
            linewidth=1,
            clip_on=False,
        )
    split = frame["evaluated_on"].iloc[0]
    if (frame["source"] == "reproduced").any() and split in constant:
        draw_reference(axes, constant[split], CONSTANT)
    axes.set_ylim(*scale)
    axes.set_xlabel("level of noise (%)")
    axes.set_ylabel("accuracy (%)")


def _paint_matrix(axes: Axes, frame: pd.DataFrame) -> None:
    """Draws the accuracies (%) of an operator as a matrix: a row per task of training, a column per tested split.

    A task tested on itself stands on the diagonal. The darker a field, the higher the number.
    """
    tested = list(dict.fromkeys(frame["evaluated_on"]))
    places = {split: place for place, split in enumerate(tested)}
    matrix = frame.pivot(index="trained", columns="evaluated_on", values="mean")
    # the task that is tested on itself stands on the diagonal, and the answer without a model last
    trained = sorted(matrix.index, key=lambda task: places.get(COLUMN_OF.get(task, task), len(tested)))
    matrix = matrix.loc[trained, tested]
    opacity = ((matrix - LOW) / (HIGH - LOW)).clip(0, 1).fillna(0)
    axes.pcolormesh(matrix, cmap=ListedColormap([HEAT]), alpha=opacity.to_numpy())
    for (y, x), value in np.ndenumerate(matrix.to_numpy()):
        if not np.isnan(value):
            axes.text(x + 0.5, y + 0.5, f"{value:.1f}", ha="center", va="center", fontsize=SMALL)
    axes.invert_yaxis()
    axes.set_xticks(np.arange(len(tested)) + 0.5, [_name_split(split) for split in tested])
    axes.set_yticks(np.arange(len(trained)) + 0.5, [_name_split(task) for task in trained])
    axes.set_xlabel("tested on")
    axes.set_ylabel("trained on")
    axes.grid(visible=False)
