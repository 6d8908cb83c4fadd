"""From observations of translation to quantities and to tables and figures of the report."""

from dataclasses import asdict

import pandas as pd
import pytest

from stages.evidence import measurements, translation
from stages.files.observations import COLUMNS, TYPES, Observation
from stages.report import own_tables
from tests.toy_evidence import list_texts

BY_EPOCH = {
    "training_accuracy": (0.2, 0.31, 0.3),
    "accuracy_ceiling": (0.4, 0.4, 0.4),
    "accuracy": (0.3, 0.5, 0.7),
    "perplexity": (9.0, 5.0, 3.0),
}
# by operator: BLEU, and the errors on the recurrence and on the copy
MEASURED = {
    "original": (30.0, 0.1, 0.02),
    "hadamard": (20.0, 0.12, 0.1),
    "fixed": (5.0, 0.11, 0.8),
}


def make_frame(rows: list[Observation]) -> pd.DataFrame:
    records = [asdict(row) for row in rows]
    return pd.DataFrame(records, columns=list(COLUMNS)).astype(TYPES)


def observe() -> pd.DataFrame:
    """Makes rows of three seeds that differ a little."""
    rows = []
    for operator, (bleu, recurrence, copy) in MEASURED.items():
        for seed in (1, 2, 3):
            run = {"stage": "translation", "operator": operator, "pretraining_seed": seed}
            whole = {**run, "protocol": "blog", "size": "blog", "task": "translation"}
            rows.append(Observation(metric="beam_bleu", value=bleu + seed / 5, **whole))
            for metric, values in BY_EPOCH.items():
                for epoch, value in enumerate(values, 1):
                    measured = value * (1 + seed / 1000)
                    rows.append(Observation(condition=f"epoch={epoch}", metric=metric, value=measured, **whole))
            for task, error in (("recurrence", recurrence), ("copy", copy)):
                own = {**run, "protocol": "sequences", "size": "sequences", "task": task}
                rows.append(Observation(metric="error", value=error + seed / 500, **own))
    return make_frame(rows)


def make_table(name: str, frame: pd.DataFrame):
    return own_tables.build_table(name, lambda _: frame, confidence="95%", signatures=["nrefs:1|case:mixed"])


def test_a_run_counts_by_its_best_and_by_its_last_epoch():
    made = measurements.compute_measurements(observe())
    made = made[made["operator"] == "hadamard"]
    made = made[made["pretraining_seed"] == 1]
    one = made.set_index(["metric", "task"])["value"].to_dict()
    assert one["peak_training_accuracy", "translation"] == pytest.approx(0.31 * 1.001)
    assert one["final_training_accuracy", "translation"] == pytest.approx(0.3 * 1.001)
    assert one["final_perplexity", "translation"] == pytest.approx(3.0 * 1.001)
    assert one["beam_bleu", "translation"] == pytest.approx(20.2)
    assert one["error", "copy"] == pytest.approx(0.102)


def test_the_last_epoch_is_that_of_the_protocol():
    rows = observe()
    shorter = rows[rows["condition"] == "epoch=1"].assign(protocol="draft", size="draft")
    made = measurements.compute_measurements(pd.concat([rows, shorter]))
    final = made[made["metric"] == "final_perplexity"].groupby("protocol")["value"].min()
    assert final.to_dict() == pytest.approx({"blog": 3.003, "draft": 9.009})


def test_a_step_is_compared_with_the_step_of_the_original_in_the_same_round():
    rows = []
    for operator, value in (("original", 0.1), ("over_parameters", 0.13)):
        # all steps of the second round take twice as long
        for number in (1, 2):
            run = {"stage": "timing", "size": "draft", "protocol": "draft", "operator": operator}
            row = Observation(condition=f"round={number}", metric="seconds_per_step", value=number * value, **run)
            rows.append(row)
    measured = measurements.compute_measurements(make_frame(rows))
    summaries = translation.summarise_measurements(measured, 0.95)
    longer = summaries[summaries["metric"] == "longer_step_percent"].set_index("operator")
    assert longer["mean"].to_dict() == pytest.approx({"over_parameters": 30})
    assert longer["sd"].to_dict() == pytest.approx({"over_parameters": 0})
    grid = make_table("translation_scores", summaries)
    assert [group.label for group in grid.groups] == ["draft, original", "draft, attention over parameters"]
    assert list_texts(grid)[1][-2:] == ["195.0", "30"]


def test_the_tables_show_every_operator_with_its_spread_over_seeds():
    measured = measurements.compute_measurements(observe())
    summaries = translation.summarise_measurements(measured, 0.95)
    grid = make_table("translation_scores", summaries)
    texts = list_texts(grid)[0]
    assert [texts[column] for column in (0, 1, 4, 5)] == ["31.06", "40.08", "–", "30.4"]
    assert grid.groups[0].lines[0].values[5].spread == "± 0.2"
    errors = make_table("sequence_tasks", summaries)
    copies = [texts[1] for texts in list_texts(errors)]
    assert copies == ["0.024", "0.104", "0.804"]


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
    grid = make_table("sentence_pairs", ledger)
    assert [heading.label for heading in grid.headings] == ["Split", "Read", "Kept", "Dropped, over long"]
    assert list_texts(grid) == [["train", "10", "8", "2"], ["test", "5", "5", "–"]]
    assert make_table("sentence_pairs", ledger[:0]).groups[0].lines[0].note
