"""Figures: the theme, the four kinds on made-up numbers, and the files."""

import html
import re
from functools import partial

import numpy as np
import pandas as pd

from stages.report import looks, painting
from stages.report.figures import Drawing, Entry, draw_figure
from stages.report.looks import find_mark, find_style
from stages.report.text_templates import read_content
from stages.schema.operators import describe_operators
from tests.processes import run

VARIANTS = ("original_tied_init", "original_self", "original_wide")
# writes the SVG of a figure
DRAW = """
import sys
import pandas as pd
from stages.report.figures import Entry, draw_figure
rows = pd.DataFrame({"source": "reproduced", "operator": "shared", "size": "tiny", "estimate": [1.0]})
entry = Entry(title="t", stage="s", frame="f", kind="interval")
sys.stdout.buffer.write(draw_figure("f", entry, lambda _: rows).files["svg"])
"""
INTERVALS = pd.DataFrame(
    {
        "source": ["published", "released", "reproduced", "reproduced"],
        "size": ["base", "base", "tiny", "tiny"],
        "operator": ["symmetric", "symmetric", "symmetric", "pairwise"],
        "estimate": [-3.5, -3.0, -5.0, -8.0],
        "low": [np.nan, -4.0, -60.0, -9.0],
        "high": [np.nan, -2.0, 50.0, -7.0],
        "place": ["Courtois et al. 2024, Table 3", "", "", ""],
    }
)


def draw(kind: str, rows: pd.DataFrame, **keys) -> Drawing:
    """Draws a figure of these rows."""
    return draw_figure("f", Entry(title="t", stage="s", frame="f", kind=kind, **keys), lambda _: rows)


def draw_svg(kind: str, rows: pd.DataFrame, **keys) -> str:
    return draw(kind, rows, **keys).files["svg"].decode()


def list_titles(drawn: Drawing) -> list[str]:
    """Lists the hover texts of the marks."""
    return re.findall("<title>(.*?)</title>", html.unescape(drawn.files["svg"].decode()))


def test_every_operator_has_a_look_that_no_other_has():
    found = [find_style(operator) for operator in describe_operators()]
    assert len(set(found)) == len(found)


def test_a_variant_has_the_colour_of_its_operator_and_its_own_stroke(monkeypatch):
    monkeypatch.setattr(looks, "PARENTS", dict.fromkeys(VARIANTS, "original"))
    found = [find_style(name) for name in ("original", *VARIANTS)]
    assert len({colour for colour, _ in found}) == 1
    assert len({stroke for _, stroke in found}) == len(found)


def test_only_marks_of_this_run_have_the_colour_of_their_operator_and_are_hollow():
    marks = {source: find_mark(source, "shared") for source in ("published", "released", "study", "reproduced")}
    coloured = [source for source, mark in marks.items() if mark["color"] == find_style("shared")[0]]
    assert coloured == ["reproduced"]
    assert [source for source, mark in marks.items() if mark["markerfacecolor"] == looks.PAPER] == ["reproduced"]


def test_nothing_that_a_user_sets_for_matplotlib_decides_a_figure(tmp_path):
    draw_elsewhere = partial(run, tmp_path, "python", "-c", DRAW)
    expected = draw_elsewhere()
    assert "</text>" in expected
    # in the working directory
    (tmp_path / "matplotlibrc").write_text("font.size: 14\nlines.linewidth: 7\ntext.usetex: True\nsvg.fonttype: path\n")
    # as a notebook hands on to commands, with a module that this environment lacks
    backend = "module://matplotlib_inline.backend_inline"
    assert draw_elsewhere(SOURCE_DATE_EPOCH="86400", LC_ALL="C", MPLBACKEND=backend) == expected


def test_a_mark_has_its_numbers_and_place_on_hover_and_equal_numbers_give_equal_bytes():
    drawn = draw("interval", INTERVALS, zero=True)
    assert list_titles(drawn) == [
        "symmetric, printed by its paper: −3.50 (Courtois et al. 2024, Table 3)",
        "symmetric, released results: −3.0 (−4.0 to −2.0)",
        "symmetric, this run: −5 (−60 to 50)",
        "pairwise, this run: −8.0 (−9.0 to −7.0)",
    ]
    assert drawn.alternative == "; ".join(list_titles(drawn))
    assert drawn.files == draw("interval", INTERVALS, zero=True).files


def test_intervals_wider_than_the_metric_are_left_out_or_fold_the_figure():
    drawn = draw("interval", INTERVALS, range=100)
    assert (drawn.folded, len(list_titles(drawn)), len(drawn.csv)) == ("", 3, 4)
    assert drawn.notes == ("Left out: 1 intervals of this run, wider than the range of the metric.",)
    assert draw("interval", INTERVALS.iloc[:3], range=100).folded
    assert not draw("interval", INTERVALS).notes


def test_panels_are_titled_by_the_fields_that_differ():
    rows = INTERVALS.assign(protocol="courtois2024", at=["sst2", "sst2", "rte", "rte"])
    svg = draw_svg("interval", rows, facets=["at", "protocol"])
    assert re.findall(r">(SST-2|RTE)</text>", svg) == ["SST-2", "RTE"]
    assert "Courtois" not in re.sub("<title>.*?</title>", "", svg)


def test_a_panel_of_models_without_a_size_is_titled_by_its_source():
    rows = INTERVALS.assign(source="study", size=["", "base", "tiny", "tiny"])
    svg = draw_svg("interval", rows, facets=["size"])
    assert {"BERT-base", "BERT-tiny", "our study"} <= set(re.findall(">([^<]*)</text>", svg))


def test_curves_are_named_below_the_panels_whose_axes_are_equal_on_request():
    steps = {"source": "reproduced", "size": ["mini"] * 2 + ["tiny"] * 4, "step": [1, 2] * 3}
    operators = ["original"] * 4 + ["pairwise_scaled"] * 2
    rows = pd.DataFrame({**steps, "operator": operators, "estimate": [3.0, 1.0, 2.0, 1.0, 2.0, 1.0]})
    svg = draw_svg("curve", rows, facets=["size"], x="step", share=True)
    for name in ("original", "pairwise with S from N(0, 1/d)"):
        assert svg.count(f">{name}</text>") == 1
    # only the left panel labels the axis of both
    assert re.findall(r">(\d\.\d)</text>", svg) == ["1.0", "1.5", "2.0", "2.5", "3.0"]


def test_bars_and_matrices_hold_their_numbers():
    rows = pd.DataFrame({"source": "reproduced", "operator": "shared", "reason": ["a", "b"], "estimate": [12.94, 0.5]})
    bars = draw_svg("bar", rows, row=["reason"])
    heat = draw_svg("heat", rows.assign(reason="a", tested=["a", "b"]), row=["reason"], x="tested")
    for svg in (bars, heat):
        assert ">12.9</text>" in svg and ">0.5</text>" in svg


def test_a_figure_without_rows_is_empty():
    drawn = draw("interval", INTERVALS, where={"operator": "shared"})
    assert (drawn.empty, drawn.measured) == (True, False)


def test_every_entry_has_a_kind_and_known_keys():
    for entry in read_content("figures").values():
        assert Entry(**entry).kind in painting.PAINTERS
