"""Times: paired by round, the counted operations, the stage on toy data, and the benchmark beside stock BERT."""

import os
from functools import wraps
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import BertForMaskedLM

from stages.attention.bert import OperatorBertForMaskedLM
from stages.attention.configuration import make_configuration
from stages.attention.counts import count_training_operations
from stages.attention.operators import OPERATORS
from stages.classification import training as finetuning
from stages.encoder_decoder.pairs import BEGIN, END, SIDES, Pairs
from stages.evidence import derived, measurements
from stages.files import observations
from stages.files.paths import TASK_FOLDER, TOKENIZER, TOKENS
from stages.masked_lm.corpus import Corpus
from stages.report import own_tables
from stages.runner import pool
from stages.schema.settings import Settings
from stages.timing import speed
from stages.timing import stage as timing
from stages.tools import benchmarks, peers, stock
from stages.training import machine
from tests import toy
from tests.toy import make_run
from tests.toy_settings import edit_laptop

TINY = toy.TOY | {"positions": 64}
PEAKS = {"float32": 8e10, "bfloat16": 1.6e11}


@pytest.fixture
def rows() -> pd.DataFrame:
    """Two rounds, of which the second is twice as slow for all; shared is a quarter faster in both."""
    made = []
    for operator, seconds in (("original", 4.0), ("shared", 3.0)):
        for number in (1, 2):
            made.append((operator, f"round={number}", number, seconds * number))
    frame = pd.DataFrame(made, columns=["operator", "condition", "round", "value"])
    frame = frame.assign(stage="timing", metric="seconds_per_epoch", size="tiny", task="cola")
    return frame.reindex(columns=list(observations.COLUMNS)).astype(observations.TYPES)


@pytest.mark.parametrize(
    ("metric", "operator", "values"),
    [
        # times are compared within a round
        ("time_saved_percent", "shared", [25.0, 25.0]),
        ("seconds_per_epoch", "original", [4.0, 8.0]),
    ],
)
def test_times_compare_within_a_round(rows, metric, operator, values):
    made = measurements.compute_measurements(rows)
    assert made.query("metric == @metric and operator == @operator")["value"].tolist() == values


def test_the_table_shows_the_means_of_the_rounds(rows):
    grid = own_tables.build_table("training_speed", lambda _: derived.summarise_times(rows))
    shown = {group.label: group.lines[0].values[-1].text for group in grid.groups}
    assert shown == {"BERT-tiny original": "6.00", "BERT-tiny shared": "4.50"}


def test_a_run_without_times_has_a_table_that_says_so(rows):
    grid = own_tables.build_table("training_speed", lambda _: derived.summarise_times(rows[:0]))
    assert grid.groups[0].lines[0].note


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_work_of_a_step_is_what_the_library_counts(operator):
    size, vocabulary, length = toy.TOY | {"layers": 2}, 50, 8
    # in training mode: the fused kernel is not counted
    model = OperatorBertForMaskedLM(make_configuration(operator, **size, vocab_size=vocabulary))
    with FlopCounterMode(display=False) as counter:
        model(torch.randint(vocabulary, (3, length))).logits.sum().backward()
    counted = counter.get_total_flops() / (3 * length)
    assert count_training_operations(operator, size, vocabulary, length, 1.0) == pytest.approx(counted, rel=0.02)


@pytest.fixture
def pipeline(in_an_empty_folder):
    """data/tokens and data/tasks of the smallest kind, and fitting settings."""
    toy.write_tokens_and_task(Path("data"), "cola")
    pairs = Path("data/sentence_pairs/blog")
    pairs.mkdir(parents=True)
    sentences = tuple(np.array([BEGIN, 4 + i % 8, 5, END]) for i in range(12))
    Pairs(sentences, sentences).save(pairs / "train.safetensors")
    for side in SIDES:
        toy.write_word_tokenizer(pairs / f"{side}.json")
    params = edit_laptop(
        {
            "operators": ["original", "shared"],
            "models.tiny": TINY,
            "pretraining.batch_size": 4,
            "finetuning.kowsher2025.maximum_length": 12,
            "finetuning.kowsher2025.batch_size": 8,
            "translation.protocols.blog.operators": ["original", "fixed"],
            "timing.repeats": 2,
            "timing.steps": 1,
        }
    )
    del params["translation"]["protocols"]["draft"]
    return Settings.model_validate(params)


def test_the_stage_times_every_operator_in_every_round(pipeline, monkeypatch):
    monkeypatch.setattr(timing.machine, "measure_peak", PEAKS.__getitem__)
    assert timing.main(pipeline)["peak_flops"]["tiny"] == PEAKS
    rows = observations.read([observations.find_file("timing")])
    assert (rows["value"] > 0).all() and set(rows["condition"]) == {"round=1", "round=2"}
    steps = rows[rows["metric"] == "seconds_per_step"]
    assert sorted(steps["operator"]) == ["fixed", "fixed", "original", "original"]
    assert set(steps["size"]) == set(steps["protocol"]) == {"blog"}
    summaries = derived.summarise_times(rows.drop(steps.index))
    assert set(summaries["metric"]) == {"tokens_per_second", "share_of_peak", "seconds_per_epoch"}
    assert len(rows.drop(steps.index)) == 2 * len(summaries) == 2 * 3 * 2


def test_rates_and_shares_of_the_peak_follow_from_the_seconds_of_a_step(pipeline, monkeypatch):
    monkeypatch.setattr(timing.machine, "measure_peak", PEAKS.__getitem__)
    monkeypatch.setattr(
        timing,
        "call_in_turn",
        lambda calls, rounds: {key: [PEAKS.get(key, 1.0) / 2, PEAKS.get(key, 0.5)] for key in calls},
    )
    rows, measured = timing.time_pretraining(pipeline, "tiny")
    assert measured == PEAKS
    values = {(row.operator, row.condition, row.metric): row.value for row in rows}
    rate = 4 * toy.LENGTH / 0.5
    work = count_training_operations(
        "original", toy.TOY, toy.VOCABULARY, toy.LENGTH, pipeline.pretraining.mask_probability
    )
    assert values["original", "round=1", "tokens_per_second"] == rate
    assert values["original", "round=1", "share_of_peak"] == pytest.approx(work * rate / 8e10)


def test_steps_that_are_timed_begin_again_after_the_last_step_of_the_recipe(pipeline, monkeypatch):
    steps = []
    monkeypatch.setattr(speed.Trainer, "advance", lambda trainer, step: steps.append(step))
    speed.prepare_pretraining(make_run(steps=4), Corpus.open(TOKENS), 5)()
    assert steps == [0, 1, 2, 3, 0, 1]


def test_the_peak_is_that_of_the_fastest_product_until_products_take_long(monkeypatch):
    seconds = iter([0.3, 0.01, 0.02, 0.02, 0.4, 0.2, 0.3, 0.3])
    monkeypatch.setattr(machine, "SIDES", {machine.find_device().type: (256, 512, 1024)})
    monkeypatch.setattr(machine, "measure_seconds", lambda call: next(seconds))
    assert machine.measure_peak("float32") == 2 * 256**3 / 0.01


def describe(precision: str = "float32", steps: int = 1) -> peers.Training:
    return stock.describe_pretraining(make_run(precision=precision), Corpus.open(TOKENS), TOKENIZER, steps)


def test_stock_pretraining_masks_tokens_and_gets_no_attention_mask(pipeline, monkeypatch):
    inputs, forward = [], BertForMaskedLM.forward

    # Trainer passes the columns that the signature names
    @wraps(forward)
    def watched(self, **named):
        inputs.append(named)
        return forward(self, **named)

    monkeypatch.setattr(BertForMaskedLM, "forward", watched)
    peers.time_steps(describe(steps=2), 2)
    assert len(inputs) == 3
    assert all("attention_mask" not in named and "special_tokens_mask" not in named for named in inputs)
    special = [toy.SPECIAL[name] for name in ("[CLS]", "[SEP]")]
    labels = torch.cat([named["labels"] for named in inputs])
    assert not torch.isin(labels, torch.tensor(special)).any()
    assert any((named["labels"] != -100).any() for named in inputs)
    training = stock.describe_pretraining(make_run(micro_batch_size=2), Corpus.open(TOKENS), TOKENIZER, 1)
    assert training.batch_size * training.schedule["gradient_accumulation_steps"] == 4


def test_stock_fine_tuning_pads_every_example_to_the_maximum(pipeline):
    recipe = pipeline.finetuning["kowsher2025"]
    examples = finetuning.encode_table(TASK_FOLDER / "cola/train.parquet", TOKENIZER, recipe.maximum_length)
    training = stock.describe_finetuning("cola", recipe, toy.TOY, 20, examples, steps=3)
    # the steps take the first 4 x 8 of the examples, of which there are 24
    assert len(training.examples) == len(examples) == 24
    for row, ids, label in zip(training.examples, examples.ids, examples.labels, strict=True):
        assert len(row["input_ids"]) == recipe.maximum_length
        assert row["attention_mask"].sum() == len(ids)
        assert row["input_ids"][: len(ids)].tolist() == ids.tolist() and not row["input_ids"][len(ids) :].any()
        assert row["label"] == label
    assert len(training.configuration["id2label"]) == 2
    # otherwise the model sets the kind in its first step, and a compiled model is compiled again in the second
    assert training.configuration["problem_type"] == "single_label_classification"


def test_stock_bert_trains_in_a_process_without_our_settings(pipeline, monkeypatch):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    with pool.open_new_process() as process:
        assert process.submit(peers.time_steps, describe(), 1).result() > 0
        assert process.submit(os.getpid).result() != os.getpid()
        assert not process.submit(torch.are_deterministic_algorithms_enabled).result()
        assert process.submit(os.getenv, "CUBLAS_WORKSPACE_CONFIG").result() is None
        # a process that computes by this module reuses memory in another way than the C library does
        loaded = process.submit(eval, "'stages.training.machine' in __import__('sys').modules").result()
        assert not loaded


def test_the_benchmark_compares_medians_and_takes_the_ratio_within_a_round(pipeline, monkeypatch):
    ours, theirs = iter([9.0, 1.0, 4.0]), iter([2.0, 4.0])
    found = benchmarks.compare_in_turn("step", lambda: next(ours), lambda: next(theirs), "Trainer", rounds=2)
    assert found == {"work": "step", "ours, s": 2.5, "Trainer, s": 3.0, "speed-up": 1.5}
    monkeypatch.setattr(peers, "time_steps", lambda training, steps: 0.5)
    process = SimpleNamespace(submit=lambda function, *given: SimpleNamespace(result=lambda: function(*given)))
    table = benchmarks.compare_training(pipeline, "tiny", ("float32", "float32"), process, rounds=1)
    # an epoch of stock BERT has 24 examples in batches of 8
    assert table["Trainer, s"].tolist() == [0.5, 0.5 * 24 / 8]
