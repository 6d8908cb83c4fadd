"""Words beside verdicts in our own tables: why verdict and interval differ, and how large the family of tests is."""

import pandas as pd
import pytest

from stages.report import own_tables, read_results, table_rows
from tests.toy_evidence import list_texts

ROW = {
    "quantity": "loss",
    "source": "reproduced",
    "size": "tiny",
    "at": "validation_loss",
    "arm": "shared",
    "reference": "original",
    "estimate": 0.2,
    "n": 3,
    "detectable": 0.4,
}
CONTAINS_ZERO = "although the interval contains zero"


def build_losses(*changes: dict) -> tuple[list[str], str]:
    """Builds the table of losses from rows with `changes`; returns the cells of verdicts, and all notes."""
    frame = pd.DataFrame([ROW | change for change in changes])
    grid = own_tables.build_table("loss_differences", lambda _: frame, simultaneous="simultaneous 95 %")
    [place] = [number for number, heading in enumerate(grid.headings) if heading.label == "Verdict"]
    return [group.lines[0].values[place].whole for group in grid.groups], " ".join(grid.notes)


def test_only_a_row_that_holm_shows_beside_an_interval_with_zero_says_so():
    inside = {"low": -0.1, "high": 0.5, "p_holm": 0.03, "verdict": "different", "direction": "higher", "tests": 2}
    outside = inside | {"low": 0.1}
    verdicts, notes = build_losses(inside, outside)
    assert CONTAINS_ZERO in verdicts[0]
    assert verdicts[1] == "different"
    assert "Holm's method is sharper" in notes
    verdicts, notes = build_losses(outside, inside | {"verdict": "inconclusive", "direction": ""})
    assert verdicts == ["different", "inconclusive"]
    assert "Holm's method is sharper" not in notes


@pytest.mark.parametrize(("tests", "words"), [(1, "covers 1 comparison,"), (4, "covers 4 comparisons,"), (0, "")])
def test_a_table_names_the_size_of_the_family_that_an_added_operator_enlarges(tests, words):
    row = {"low": 0.1, "high": 0.5, "p_holm": 0.03, "verdict": "different", "direction": "higher", "tests": tests}
    _, notes = build_losses(row)
    assert words in notes
    assert ("added operator" in notes) == bool(words)


def test_every_study_of_an_operator_has_a_mark_and_stands_beside_the_others():
    studies = read_results.read_studies()
    grid = own_tables.build_table("studies", lambda _: table_rows.read_studies())
    assert len(grid.groups) == len(studies)
    labels = [group.label for group in grid.groups]
    # every operator is one block of rows
    assert len(list(dict.fromkeys(labels))) == sum(a != b for a, b in zip(labels, ["", *labels], strict=False))
    marks = {"sooner": "▼", "lower": "▼", "later": "▲", "higher": "▲", "undecided": "○"}
    rows = table_rows.read_studies()
    assert [texts[1][0] for texts in list_texts(grid)] == [marks[verdict] for verdict in rows["verdict"]]
    for group, row in zip(grid.groups, rows.itertuples(), strict=True):
        study, verdict, *_ = group.lines[0].values
        assert f"({row.study})" in study.whole
        contains_zero = row.low <= 0 <= row.high
        decided = row.verdict != "undecided"
        # an interval that contradicts the verdict comes with the reason
        assert bool(verdict.spread) == (contains_zero == decided)
