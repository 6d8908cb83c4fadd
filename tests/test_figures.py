"""Figures: the theme, names of lines, interval plots, and the files, on made-up numbers and on the toy report."""

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from stages.report import answer_figure, difference_figures, drawing, intervals, line_names, looks, own_figures
from stages.report.looks import find_style
from stages.schema.operators import describe_operators

VARIANTS = {
    "original": ["original_tied_init", "original_self", "original_wide"],
    "pairwise": ["pairwise_identity", "pairwise_scaled"],
    "symmetric": ["symmetric_centred"],
}
# writes the SVG of a panel
DRAW = """
import sys
import pandas as pd
from stages.report import drawing
files = drawing.render_panels([("title", pd.DataFrame())], lambda axes, _: axes.plot([0, 1]), 3, 2)
sys.stdout.buffer.write(files["svg"])
"""


def list_lines(number: int, names: str = "operator {}"):
    """Returns a painter of lines that end at the same height."""

    def paint(axes, rows: pd.DataFrame) -> None:
        for place in range(number):
            axes.plot(rows["x"], rows["x"], label=names.format(place))

    return paint


def draw_one_panel(painter) -> Figure:
    """Draws a panel and names the lines."""
    figure = Figure(figsize=(5.8, 2.7), layout="constrained")
    painter(figure.subplots(), pd.DataFrame({"x": [0, 1]}))
    line_names.name_lines(figure)
    return figure


def make_comparisons(**columns) -> pd.DataFrame:
    """Makes comparisons with the original, with the columns of contrasts.csv."""
    rows = {
        "quantity": "score",
        "source": ["released", "reproduced", "reproduced"],
        "protocol": "courtois2024",
        "size": ["base", "tiny", "tiny"],
        "at": "glue_score",
        "arm": ["symmetric", "symmetric", "pairwise"],
        "estimate": [-3.0, -5.0, -8.0],
        "low": [-4.0, -100.0, np.nan],
        "high": [-2.0, 90.0, np.nan],
    }
    return pd.DataFrame({**rows, **columns})


def find(drawings: list[drawing.Drawing], name: str) -> drawing.Drawing:
    return {drawn.name: drawn for drawn in drawings}[name]


def test_every_operator_has_a_look_that_no_other_has():
    found = [find_style(operator) for operator in describe_operators()]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("operator", VARIANTS)
def test_a_variant_has_the_colour_of_its_operator_and_its_own_stroke(operator, monkeypatch):
    monkeypatch.setattr(looks, "PARENTS", dict.fromkeys(VARIANTS[operator], operator))
    found = [find_style(name) for name in [operator, *VARIANTS[operator]]]
    assert len({colour for colour, _ in found}) == 1
    assert len({stroke for _, stroke in found}) == len(found)


def test_few_lines_are_named_at_their_ends_and_no_two_names_overlap():
    figure = draw_one_panel(list_lines(4))
    assert not figure.legends
    figure.draw_without_rendering()
    boxes = sorted((text.get_window_extent() for text in figure.axes[0].texts), key=lambda box: box.y0)
    assert len(boxes) == 4
    for lower, upper in pairwise(boxes):
        assert lower.y1 <= upper.y0 + 1


def test_a_figure_has_equal_bytes_for_equal_numbers_and_panels_of_one_size(monkeypatch):
    sizes = []
    save = drawing.save_figure

    def save_and_measure(figure: Figure) -> dict[str, bytes]:
        files = save(figure)
        sizes.extend(tuple(np.round(axes.get_position().size, 6)) for axes in figure.axes)
        return files

    monkeypatch.setattr(drawing, "save_figure", save_and_measure)
    titles = ["a", "a title that is so long that it takes two lines, at least", "c"]
    groups = [(title, pd.DataFrame({"x": [0, 1]})) for title in titles]
    first = drawing.render_panels(groups, list_lines(2), 2.9, 2)
    assert first == drawing.render_panels(groups, list_lines(2), 2.9, 2)
    assert len(set(sizes)) == 1


def draw_elsewhere(folder: Path, **variables: str) -> bytes:
    """Returns the SVG of DRAW by another process that runs in `folder` with these environment variables."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])} | variables
    done = subprocess.run([sys.executable, "-c", DRAW], cwd=folder, env=environment, capture_output=True)
    assert not done.returncode, done.stderr
    return done.stdout


def test_nothing_that_a_user_sets_for_matplotlib_decides_a_figure(tmp_path):
    expected = draw_elsewhere(tmp_path)
    assert b"</text>" in expected
    # in the working directory
    (tmp_path / "matplotlibrc").write_text("font.size: 14\nlines.linewidth: 7\ntext.usetex: True\nsvg.fonttype: path\n")
    # as a notebook hands on to commands, with a module that this environment lacks
    variables = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    assert draw_elsewhere(tmp_path, SOURCE_DATE_EPOCH="86400", LC_ALL="C", **variables) == expected


def test_an_interval_beyond_the_scale_ends_in_arrows():
    rows = make_comparisons()
    low, high = intervals.find_scale(rows, zero=True)
    assert -100 < low < -8
    assert 0 < high < 90
    figure = Figure()
    axes = figure.subplots()
    rows = rows.assign(operator=rows["arm"], row=rows["arm"], mark=rows["source"])
    intervals.paint_rows(axes, rows, intervals.choose_marks(rows), (low, high))
    shapes = [line.get_marker() for line in axes.lines]
    assert (shapes.count("<"), shapes.count(">"), shapes.count("o")) == (1, 1, 3)


def test_released_results_are_filled_this_run_is_hollow_and_larger_models_have_larger_marks():
    rows = make_comparisons(source=["released", "released", "reproduced"], size=["small", "base", "tiny"])
    marks = intervals.choose_marks(rows.assign(mark=rows["size"]))
    assert [marks[size].hollow for size in ("small", "base", "tiny")] == [False, False, True]
    assert marks["small"].size < marks["base"].size


def test_differences_are_drawn_with_all_their_numbers():
    drawn = difference_figures.draw_differences(make_comparisons())
    scores = find(drawn, "score_differences")
    assert scores.csv["estimate"].tolist() == [-3, -5, -8]
    assert "symmetric −3.00 [−4.00 to −2.00]" in scores.alternative
    for name in ("task_differences", "loss_differences_plot", "noise_differences"):
        assert find(drawn, name).empty


def test_the_mismatched_split_and_the_whole_score_are_no_task_of_noise_or_scores():
    lost = make_comparisons(quantity="lost_noise", at=["sst2", "mnli_mm", "sst2"])
    noise = find(difference_figures.draw_differences(lost), "noise_differences")
    assert noise.csv["at"].tolist() == ["sst2", "sst2"]
    tasks = make_comparisons(at=["glue_score", "sst2", "cola"])
    assert set(find(difference_figures.draw_differences(tasks), "task_differences").csv["at"]) == {
        "sst2",
        "cola",
    }


def test_averages_and_answers_without_a_model_are_no_mark():
    cells = pd.DataFrame(
        {
            "table": answer_figure.TABLE,
            "row_key": ["base.shared.single", "tiny.shared.triviaqa", "tiny.shared.single", "baseline.most_frequent"],
            "column_key": ["squad1_f1", "squad2_em", "avg_em", "squad1_f1"],
            "published": [89.5, np.nan, np.nan, np.nan],
            "reproduced": [np.nan, 37.0, 36.0, 7.0],
            "interval_low": np.nan,
            "interval_high": np.nan,
        }
    )
    rows = answer_figure.list_answers(cells)
    assert rows[["title", "mark", "estimate"]].to_numpy().tolist() == [
        ["SQuAD 1.1", "F1, published", 89.5],
        ["SQuAD 2.0 after TriviaQA", "exact match, this run", 37.0],
    ]


def test_the_parameters_saved_are_those_of_the_operators_and_sizes_asked_for():
    summaries = pd.DataFrame(
        {
            "metric": "saved_percent",
            "operator": ["original", "shared", "shared", "hadamard"],
            "size": ["base", "base", "mini", "base"],
            "mean": [0.0, 12.9, 1.5, 0.1],
        }
    )
    drawn = own_figures.draw_saved(summaries, ["original", "shared"], ["base", "tiny"])
    assert drawn.csv[["operator", "size", "value"]].to_numpy().tolist() == [["shared", "base", 12.9]]
