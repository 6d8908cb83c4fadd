"""Times: paired by round, stock BERT apart from ours, the work that they are set against, and the stage on toy data."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers.models.bert.modeling_bert import BertSelfAttention

from stages.attention.bert import OperatorBertForMaskedLM
from stages.attention.configuration import configuration
from stages.attention.counts import training_flops
from stages.attention.operators import OPERATORS
from stages.classification import training as finetuning
from stages.encoder_decoder.pairs import BEGIN, END, SIDES, Pairs
from stages.evidence import derived, measurements
from stages.files import observations
from stages.files.paths import TASK_FOLDER, TOKENIZER, TOKENS
from stages.masked_lm.corpus import Corpus
from stages.report import own_tables
from stages.schema.settings import PATH, load_settings
from stages.timing import peers, speed
from stages.timing import stage as timing
from stages.training import machine
from tests import toy
from tests.toy import run_of

STOCK = "implementation=trainer precision=float32 "


@pytest.fixture
def rows() -> pd.DataFrame:
    """Two rounds, of which the second is twice as slow for all; shared is a quarter faster in both."""
    made = []
    for operator, prefix, seconds in (("original", "", 4.0), ("shared", "", 3.0), ("original", STOCK, 8.0)):
        for number in (1, 2):
            made.append((operator, f"{prefix}round={number}", number, seconds * number))
    frame = pd.DataFrame(made, columns=["operator", "condition", "round", "value"])
    frame = frame.assign(stage="timing", metric="seconds_per_epoch", size="tiny", task="cola")
    return frame.reindex(columns=list(observations.COLUMNS)).astype(observations.TYPES)


@pytest.mark.parametrize(
    ("metric", "operator", "values"),
    [
        # times are compared within a round
        ("time_saved_percent", "shared", [25.0, 25.0]),
        # without the times of stock BERT
        ("seconds_per_epoch", "original", [4.0, 8.0]),
    ],
)
def test_times_compare_within_a_round_and_apart_from_stock_bert(rows, metric, operator, values):
    made = measurements.measurements(rows)
    assert made.query("metric == @metric and operator == @operator")["value"].tolist() == values


def test_the_table_shows_stock_bert_beside_ours(rows):
    grid = own_tables.build_table("training_speed", lambda _: derived.time_summaries(rows))
    shown = {group.label: group.lines[0].values[-1].text for group in grid.groups}
    assert shown == {
        "BERT-tiny original": "6.00",
        "BERT-tiny shared": "4.50",
        "BERT-tiny stock Hugging Face, float32": "12.00",
    }


def test_a_run_without_times_has_a_table_that_says_so(rows):
    grid = own_tables.build_table("training_speed", lambda _: derived.time_summaries(rows[:0]))
    assert grid.groups[0].lines[0].note


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_work_of_a_step_is_what_the_library_counts(operator):
    size, vocabulary, length = toy.TOY | {"layers": 2}, 50, 8
    # in training mode: the fused kernel is not counted
    model = OperatorBertForMaskedLM(configuration(operator, **size, vocab_size=vocabulary))
    with FlopCounterMode(display=False) as counter:
        model(torch.randint(vocabulary, (3, length))).logits.sum().backward()
    counted = counter.get_total_flops() / (3 * length)
    assert training_flops(operator, size, vocabulary, length, 1.0) == pytest.approx(counted, rel=0.02)


@pytest.fixture
def pipeline(tmp_path, monkeypatch):
    """data/tokens and data/tasks of the smallest kind, and settings that fit them."""
    settings = load_settings(Path(__file__).parents[1] / PATH)
    monkeypatch.chdir(tmp_path)
    toy.tokens_and_task(tmp_path / "data", "cola")
    pairs = tmp_path / "data" / "sentence_pairs" / "blog"
    pairs.mkdir(parents=True)
    sentences = tuple(np.array([BEGIN, 4 + i % 8, 5, END]) for i in range(12))
    Pairs(sentences, sentences).save(pairs / "train.safetensors")
    for side in SIDES:
        toy.word_tokenizer(pairs / f"{side}.json")
    translating = {"operators": ("original", "fixed"), "hidden": 16, "heads": 2, "intermediate": 16, "batch_size": 4}
    blog = settings.translation.protocols["blog"].model_copy(update=translating)
    size = settings.models["tiny"].model_copy(update=toy.TOY)
    recipe = settings.finetuning["kowsher2025"].model_copy(update={"maximum_length": 12, "batch_size": 8})
    return settings.model_copy(
        update={
            "operators": ("original", "shared"),
            "sizes": ("tiny",),
            "models": {"tiny": size},
            "pretraining": settings.pretraining.model_copy(update={"batch_size": 4}),
            "finetuning": {"kowsher2025": recipe},
            "translation": settings.translation.model_copy(update={"protocols": {"blog": blog}}),
            "timing": settings.timing.model_copy(update={"tasks": ("cola",), "repeats": 2, "steps": 1}),
        }
    )


@pytest.mark.parametrize("emulated", [False, True])
def test_the_stage_times_every_operator_and_stock_bert_where_no_precision_is_emulated(pipeline, monkeypatch, emulated):
    peaks = {"float32": 8e10, "bfloat16": 1e9 if emulated else 1.6e11}
    monkeypatch.setattr(timing.machine, "peak", peaks.__getitem__)
    timing.find_precisions.cache_clear()
    record = timing.main(pipeline)
    assert set(record["peak_flops"]["tiny"]) == {"float32", "bfloat16"}
    rows = observations.read([observations.FOLDER / "timing.csv"])
    assert (rows["value"] > 0).all()
    # every operator is timed in two rounds
    steps = rows[rows["metric"] == "seconds_per_step"]
    assert sorted(steps["operator"]) == ["fixed", "fixed", "original", "original"]
    assert set(steps["size"]) == set(steps["protocol"]) == {"blog"}
    others = rows.drop(steps.index)
    summaries = derived.time_summaries(others)
    ways = {("original", ""), ("shared", ""), ("original", "float32")}
    if not emulated:
        ways.add(("original", "bfloat16"))
    assert set(zip(summaries["operator"], summaries["stock"], strict=True)) == ways
    assert set(summaries["metric"]) == {"tokens_per_second", "share_of_peak", "seconds_per_epoch"}
    assert len(others) == 2 * len(summaries) == 2 * 3 * len(ways)


def test_rates_and_shares_of_the_peak_follow_from_the_seconds_of_a_step(pipeline, monkeypatch):
    peaks = {"float32": 8e10, "bfloat16": 1.6e11}
    monkeypatch.setattr(timing.machine, "peak", peaks.__getitem__)
    timing.find_precisions.cache_clear()
    monkeypatch.setattr(timing, "interleaved", lambda calls, rounds: {key: [peaks.get(key, 0.5)] for key in calls})
    rows, measured = timing.time_pretraining(pipeline, "tiny")
    assert measured == peaks
    values = {(row.operator, row.condition, row.metric): row.value for row in rows}
    rate = 4 * toy.LENGTH / 0.5
    work = training_flops("original", toy.TOY, toy.VOCABULARY, toy.LENGTH, pipeline.pretraining.mask_probability)
    for start, peak in (("", 8e10), (STOCK, 8e10), (STOCK.replace("float32", "bfloat16"), 1.6e11)):
        assert values["original", f"{start}round=1", "tokens_per_second"] == rate
        assert values["original", f"{start}round=1", "share_of_peak"] == pytest.approx(work * rate / peak)


def test_steps_that_are_timed_begin_again_after_the_last_step_of_the_recipe(pipeline, monkeypatch):
    model = speed.Pretraining(run_of(steps=4), Corpus.of(TOKENS))
    steps = []
    monkeypatch.setattr(model.trainer, "advance", steps.append)
    model.seconds(5)
    assert steps == [0, 1, 2, 3, 0, 1]


def test_the_peak_is_that_of_the_fastest_product_until_products_take_long(monkeypatch):
    seconds = iter([0.3, 0.01, 0.02, 0.02, 0.4, 0.2, 0.3, 0.3])
    monkeypatch.setattr(machine, "SIDES", {machine.device().type: (256, 512, 1024)})
    monkeypatch.setattr(machine, "clocked", lambda call: next(seconds))
    assert machine.peak("float32") == 2 * 256**3 / 0.01


@pytest.fixture
def asked(monkeypatch) -> dict:
    """The schedule that is asked of stock training, whose steps end after 10, 12, 14 and 17 seconds."""
    found = {}
    monkeypatch.setattr(peers, "train", lambda *_, **schedule: found.update(schedule) or [10.0, 12.0, 14.0, 17.0])
    return found


def test_a_step_of_stock_pretraining_takes_the_mean_of_the_steps_after_the_first(pipeline, asked):
    assert peers.Pretraining(run_of(), Corpus.of(TOKENS), TOKENIZER).seconds(3) == pytest.approx(7 / 3)
    assert asked["max_steps"] == 4


def test_stock_pretraining_computes_in_the_precision_asked_for_in_any_order(pipeline, monkeypatch):
    corpus = Corpus.of(TOKENS)
    seen, forward = [], BertSelfAttention.forward

    def watched(self, *arguments, **others):
        self.query.register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))
        return forward(self, *arguments, **others)

    monkeypatch.setattr(BertSelfAttention, "forward", watched)
    for precision in ("float32", "bfloat16", "float32"):
        seen.clear()
        peers.Pretraining(run_of(precision=precision), corpus, TOKENIZER).seconds(1)
        assert set(seen) == {getattr(torch, precision)}


def test_stock_fine_tuning_pads_every_example_to_the_maximum(pipeline):
    recipe = pipeline.finetuning["kowsher2025"]
    examples = finetuning.encode(TASK_FOLDER / "cola" / "train.parquet", TOKENIZER, recipe.maximum_length)
    data = peers.Finetuning("cola", recipe, toy.TOY, 20).pad(examples)
    assert {len(row["input_ids"]) for row in data} == {recipe.maximum_length}
    assert [sum(row["attention_mask"]) for row in data] == [len(ids) for ids in examples.ids]
    assert np.array_equal([row["label"] for row in data], examples.labels)


def test_an_epoch_of_stock_fine_tuning_is_computed_from_the_steps_after_the_first(pipeline, asked):
    recipe = pipeline.finetuning["kowsher2025"]
    examples = finetuning.encode(TASK_FOLDER / "cola" / "train.parquet", TOKENIZER, recipe.maximum_length)
    seconds = peers.Finetuning("cola", recipe, toy.TOY, 20).train(examples, 3)
    assert seconds == pytest.approx(7 / 3 * len(examples) / recipe.batch_size)
    assert asked["max_steps"] == 4
