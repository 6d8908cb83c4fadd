"""Tables for readers, and their text in HTML and LaTeX."""

import io
from math import inf, nan

import jinja2
import pandas as pd
import pytest

from stages.evidence import cells, specifications
from stages.evidence.verdicts import Difference
from stages.report import cards, html, latex, own_tables
from stages.report.paper_tables import build_paper_table
from stages.report.tables import (
    choose_decimals,
    format_interval,
    format_number,
    format_signed,
    write_csv,
)
from tests.toy_evidence import fill_table, make_baselines, make_cell_sources, make_row

TABLES = specifications.load()


def make_grid(name: str, run: list[dict], left_out=(), **evidence):
    return build_paper_table((TABLES[name],), fill_table(name, run, **evidence), set(left_out))


def make_scored_runs(operator: str, size: str, *values: float) -> list[dict]:
    """Makes runs of one column with as many fine-tuning seeds as values, on two pre-training seeds."""
    model = {"metric": "score", "evaluated_on": "rte", "operator": operator, "size": size}
    rows = []
    for seed in (1, 2):
        for place, value in enumerate(values):
            rows.append(make_row(**model, value=value, pretraining_seed=seed, finetuning_seed=place))
    return rows


def list_lines(table, label: str) -> dict:
    group = next(group for group in table.groups if group.label == label)
    return {line.label.split(",")[0]: line for line in group.lines}


def make_column(table, line, label: str):
    return line.values[[heading.label for heading in table.headings].index(label)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (format_number(1234567, 0), "1,234,567"),
        (format_number(-0.004, 2), "0.00"),
        (format_number(nan, 2), "–"),
        (format_signed(0.006, 2), "+0.01"),
        (format_interval(-1, 2.25, 1), "−1.0 to 2.2"),
        (format_interval(-0.036, 9.3, 1), "−0.0 to 9.3"),
    ],
)
def test_numbers_and_intervals_in_print(text, expected):
    assert text == expected


@pytest.mark.parametrize(
    ("half", "decimals"),
    [(120, 0), (12, 0), (1.5, 1), (0.2, 2), (0.03, 3), (0.0004, 3), (0, 3), (nan, 3), (inf, 3)],
)
def test_decimals_follow_the_width_of_the_interval(half, decimals):
    assert choose_decimals(half, 3) == decimals


ENTRY = {
    "title": "Differences",
    "stage": "analysis",
    "frame": "rows",
    "first": "Model",
    "label": ["size operator", "protocol", "task"],
    "columns": [{"form": "starred", "decimals": 1, "each": ["protocol"], "meaning": "points"}],
    "notes": [{"of": ["n"], "text": "Seeds: {{ n }}."}, {"of": ["tests"], "text": "Comparisons: {{ tests }}."}],
}
DIFFERENCE = {
    "size": "tiny",
    "operator": "shared",
    "protocol": "courtois2024",
    "task": "rte",
    "estimate": 1.25,
    "low": 0.5,
    "high": 2.0,
    "n": 3,
    "n_reference": 3,
    "paired": True,
    "detectable": nan,
    "verdict": Difference.HIGHER,
    "tests": 0,
}


def test_our_own_table_names_fields_marks_significant_differences_and_leaves_out_notes_without_values():
    few = {"task": "qqp", "low": nan, "n": 5, "paired": False, "verdict": Difference.TOO_FEW}
    frame = pd.DataFrame([DIFFERENCE, DIFFERENCE | few])
    grid = own_tables.build_table("differences", lambda _: frame, ENTRY)
    # all rows have one protocol
    assert [group.label for group in grid.groups] == ["BERT-tiny shared, RTE", "BERT-tiny shared, QQP"]
    first, second = (group.lines[0].values[0] for group in grid.groups)
    assert first.whole == "+1.2* (0.5 to 2.0)"
    assert first.detail == f"n = 3 pairs; {Difference.HIGHER}:"
    assert second.whole == "+1.2"
    assert [heading.label for heading in grid.headings] == ["recipe of Courtois et al."]
    assert grid.notes == ("Seeds: 3 or 5.",)


def test_a_measured_row_of_the_paper_shows_mean_spread_and_seeds():
    table = make_grid("courtois2024_table3_glue", make_scored_runs("pairwise", "base", 0.5, 0.7))
    line = list_lines(table, "BERT-base pairwise")["reproduced"]
    value = make_column(table, line, "RTE")
    assert line.label == "reproduced, n = 2"
    assert (value.text, value.spread) == ("60.00", "± 0.00")
    assert make_column(table, line, "QQP").text == "–"
    published = list_lines(table, "BERT-base pairwise")["published"]
    assert make_column(table, published, "GLUE score").text == "79.36 (0.37)"
    assert "reproduced" not in list_lines(table, "BERT-base original")


@pytest.mark.parametrize(("value", "text"), [(0.5, "50.00°"), (0.7, "70.00")])
def test_a_score_at_chance_is_marked(value, text):
    constant = make_baselines(("most_frequent", "courtois2024", "rte", "score", 0.55, 0.6))
    run = make_scored_runs("pairwise", "base", value)
    table = make_grid("courtois2024_table3_glue", run, baselines=constant)
    assert make_column(table, list_lines(table, "BERT-base pairwise")["reproduced"], "RTE").text == text


def test_counts_of_other_sizes_are_left_out_unless_the_paper_prints_them():
    run = []
    for size in ("base", "mini", "tiny"):
        run.append(make_row(stage="parameters", protocol=None, metric="masked_lm_parameters", size=size, value=9.0))
    table = make_grid("courtois2024_table2_model_parameters", run, left_out=("base", "mini"))
    shown = set(table.csv["row"].str.partition(".")[0])
    assert shown == {"small", "base", "tiny"}


def test_counts_are_called_counted_and_formulas_are_formulas():
    run = [make_row(stage="parameters", protocol=None, metric="attention_parameters", size="base", value=1771776)]
    table = make_grid("courtois2024_table1_attention_param_formulas", run)
    own = list_lines(table, "original")
    assert make_column(table, own["counted"], "Counted, BERT-base").text == "1,771,776"
    assert make_column(table, own["published"], "As a formula").kind == "formula"


def test_the_csv_has_one_line_a_cell_with_published_and_reproduced_values():
    table = make_grid("courtois2024_table3_glue", make_scored_runs("original", "tiny", 0.5))
    assert len(table.csv) == 70
    assert not table.csv.duplicated(["row", "column"]).any()


def make_both_editions(end: str):
    pair = tuple(TABLES[f"{edition}_{end}"] for edition in ("kowsher2024_arxiv", "kowsher2025_naacl"))
    return build_paper_table(pair, pd.concat([cells.fill_cells(table, make_cell_sources([])) for table in pair]), set())


HOSTILE = (
    "=1+1",
    '=HYPERLINK("x")',
    "+0.66; Welch p = 0.015",
    "-0.72 points",
    "@SUM(A1)",
    "\t=1",
    "-1+1",
    "+cmd|' /C calc'!A0",
    "＝1+1",
    "＠SUM(A1)",
)
PLAIN = ("-0.056", "+0.3", "-", "-1.5e-05", "87.6k", "1=1", "a-b", "", "+12%", "'a'", "-70,000")


def test_a_spreadsheet_takes_no_text_of_a_table_for_a_formula_and_every_number_stands():
    frame = pd.DataFrame({"text": [*HOSTILE, *PLAIN], "value": -1.5, "n": pd.array([1] * 20 + [None], dtype="Int64")})
    back = pd.read_csv(
        io.StringIO(write_csv(frame)), dtype={"text": "str", "n": "Int64"}, keep_default_na=False, na_values={"n": ""}
    )
    assert back["text"].tolist() == [*(f"'{text}" for text in HOSTILE), *PLAIN]
    assert (back["value"] == -1.5).all()


def test_characters_that_steer_a_terminal_or_hide_text_are_shown_in_every_format(tmp_path):
    text, shown = "a\x1b[31m\0\u202eb", r"a\x1b[31m\x00\u202eb"
    (tmp_path / "page.html").write_text("{{ text }}")
    assert html.make_environment(tmp_path).get_template("page.html").render(text=text) == shown
    assert cards.escape(cards.Code(text)) == shown
    assert cards.escape(text) == shown.replace("\\", r"\\").replace("[", r"\[")
    assert write_csv(pd.DataFrame({"text": [text]})) == f"text\n{shown}\n"


def test_editions_that_differ_stand_one_below_the_other_with_the_differences_marked():
    table = make_both_editions("table1_glue")
    group = next(group for group in table.groups if group.label == "BERT-base shared")
    earlier, later = group.lines
    assert (earlier.label, later.label) == ("published, arXiv 2024", "published, NAACL 2025")
    assert [make_column(table, line, "QNLI").text for line in group.lines] == ["89.02 †", "88.02 †"]
    assert [make_column(table, line, "MRPC").text for line in group.lines] == ["88.14", "88.14"]
    assert len(table.csv) == 2 * 40


def test_editions_that_print_the_same_have_one_line():
    table = make_both_editions("table4_model_parameters")
    assert {line.label for group in table.groups for line in group.lines} == {"published"}


def test_latex_escapes_all_that_is_special_in_it():
    escaped = latex.escape(r"50% & $x_1^2 #{~}\<>|")
    assert escaped == (
        r"50\% \& \$x\_1\textasciicircum{}2 \#\{\textasciitilde{}\}\textbackslash{}\textless{}\textgreater{}\textbar{}"
    )
    assert latex.escape("− ± 50.00° é 漢\n") == r"$-$ $\pm$~50.00$^\circ$ é U+6F22 "


def test_a_missing_value_is_an_error_in_both_forms(tmp_path):
    (tmp_path / "t.tex").write_text("<< nothing >>")
    (tmp_path / "report.html").write_text("{{ nothing }}")
    with pytest.raises(jinja2.UndefinedError):
        latex.make_environment(tmp_path).get_template("t.tex").render()
    with pytest.raises(jinja2.UndefinedError):
        html.make_environment(tmp_path).get_template("report.html").render()


def test_html_escapes_every_value(tmp_path):
    (tmp_path / "report.html").write_text("{{ value }} {{ value | formula }}")
    made = html.make_environment(tmp_path).get_template("report.html").render(value='<b>h^2"')
    assert made == "&lt;b&gt;h^2&#34; &lt;b&gt;h<sup>2</sup>&#34;"


@pytest.mark.parametrize(
    ("text", "in_html", "in_latex"),
    [
        ("O(h^2/n)", "O(h<sup>2</sup>/n)", r"O(h\textsuperscript{2}/n)"),
        ("W_q", "W<sub>q</sub>", r"W\textsubscript{q}"),
    ],
)
def test_formulas_raise_and_lower_the_character_behind_a_mark(text, in_html, in_latex):
    assert html.format_formula(text) == in_html
    assert latex.format_formula(text) == in_latex
