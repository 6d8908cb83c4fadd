"""From observations of translation to its quantities and its part of the report."""

from dataclasses import asdict

import pandas as pd
import pytest

from stages.evidence import measurements, translation
from stages.files.observations import COLUMNS, TYPES, Observation
from stages.report import own_figures, own_tables

BY_EPOCH = {
    "training_accuracy": (0.2, 0.31, 0.3),
    "accuracy_ceiling": (0.4, 0.4, 0.4),
    "accuracy": (0.3, 0.5, 0.7),
    "perplexity": (9.0, 5.0, 3.0),
    "training_loss": (3.0, 2.0, 1.0),
}


def frame_of(rows: list[Observation]) -> pd.DataFrame:
    return pd.DataFrame([asdict(row) for row in rows], columns=list(COLUMNS)).astype(TYPES)


def observed(bleu: dict[str, float], errors: dict[str, tuple[float, float]]) -> pd.DataFrame:
    """Rows of three seeds that differ a little; errors: on the recurrence and on the copy."""
    rows = []
    for seed in (1, 2, 3):
        for operator, score in bleu.items():
            run = {"stage": "translation", "operator": operator, "pretraining_seed": seed}
            whole = {**run, "protocol": "blog", "size": "blog", "task": "translation"}
            for metric, values in BY_EPOCH.items():
                for epoch, value in enumerate(values, 1):
                    at = {"condition": f"epoch={epoch}", "metric": metric, "value": value * (1 + seed / 1e3)}
                    rows.append(Observation(**whole, **at))
            rows.append(Observation(metric="beam_bleu", value=score + seed / 5, **whole))
            own = {**run, "protocol": "sequences", "size": "sequences"}
            for task, error in zip(("recurrence", "copy"), errors[operator], strict=True):
                rows.append(Observation(metric="error", task=task, value=error + seed / 500, **own))
    return frame_of(rows)


def table(name: str, frame: pd.DataFrame):
    return own_tables.build_table(name, lambda _: frame, confidence="95%", signatures=["nrefs:1|case:mixed"])


ERRORS = {"original": (0.1, 0.02), "hadamard": (0.12, 0.1), "fixed": (0.11, 0.8)}
BLEU = {"original": 30.0, "hadamard": 20.0, "fixed": 5.0}


def test_a_run_counts_by_its_best_and_by_its_last_epoch():
    made = measurements.measurements(observed(BLEU, ERRORS))
    of_run = (made["operator"] == "hadamard") & (made["pretraining_seed"] == 1)
    one = made[of_run].set_index(["metric", "task"])["value"]
    assert one["peak_training_accuracy", "translation"] == pytest.approx(0.31 * 1.001)
    assert one["final_training_accuracy", "translation"] == pytest.approx(0.3 * 1.001)
    assert one["final_perplexity", "translation"] == pytest.approx(3.0 * 1.001)
    assert one["beam_bleu", "translation"] == pytest.approx(20.2)
    assert one["error", "copy"] == pytest.approx(0.102)
    assert made["condition"].isna().all()


def times(seconds: dict[str, float]) -> pd.DataFrame:
    """Times of a step in two rounds, of which the second is twice as slow for all."""
    timed = {"stage": "timing", "size": "draft", "protocol": "draft", "metric": "seconds_per_step"}
    rows = []
    for operator, value in seconds.items():
        for number in (1, 2):
            rows.append(Observation(operator=operator, condition=f"round={number}", value=number * value, **timed))
    return frame_of(rows)


def test_a_longer_step_is_told_against_the_originals_of_the_same_round():
    measured = measurements.measurements(times({"original": 0.1, "over_parameters": 0.13}))
    summaries = translation.summaries(measured, 0.95).set_index(["operator", "metric"])
    assert summaries.loc[("over_parameters", "longer_step_percent"), "mean"] == pytest.approx(30)
    assert summaries.loc[("over_parameters", "longer_step_percent"), "sd"] == pytest.approx(0)
    assert ("original", "longer_step_percent") not in summaries.index
    [first, second] = table("translation_scores", summaries.reset_index()).groups
    assert first.label == "draft, original"
    assert second.label == "draft, attention over parameters"
    assert [value.text for value in second.lines[0].values[-2:]] == ["195.0", "30"]


def test_the_tables_show_every_operator_with_its_spread_over_seeds():
    summaries = translation.summaries(measurements.measurements(observed(BLEU, ERRORS)), 0.95)
    [line] = table("translation_scores", summaries).groups[0].lines
    texts = [value.text for value in line.values]
    assert (texts[0], texts[1], texts[4], texts[5]) == ("31.06", "40.08", "–", "30.4")
    assert line.values[5].spread == "± 0.2"
    copies = {group.label: group.lines[0].values[1].text for group in table("sequence_tasks", summaries).groups}
    assert copies == {"original": "0.024", "hadamard": "0.104", "fixed": "0.804"}


def test_the_figure_says_where_every_curve_ends():
    [drawing] = own_figures.draw_translation(translation.curves(observed(BLEU, ERRORS)))
    assert "original ends at 70.1" in drawing.alternative
    assert len(drawing.csv) == 3 * 4 * 3
    assert own_figures.draw_translation(translation.curves(observed({}, {}))) == []


def test_every_sentence_pair_of_the_ledger_stands_in_the_report():
    ledger = pd.DataFrame(
        [
            ("blog", "train", "in", None, 10),
            ("blog", "train", "kept", None, 8),
            ("blog", "train", "dropped", "over_long", 2),
            ("blog", "test", "in", None, 5),
            ("blog", "test", "kept", None, 5),
        ],
        columns=["protocol", "split", "fate", "reason", "pairs"],
    )
    grid = table("sentence_pairs", ledger)
    assert [heading.label for heading in grid.headings] == ["Split", "In", "Kept", "Dropped: over long"]
    assert [[value.text for value in group.lines[0].values] for group in grid.groups] == [
        ["train", "10", "8", "2"],
        ["test", "5", "5", "–"],
    ]
    assert table("sentence_pairs", ledger[:0]).groups[0].lines[0].note
