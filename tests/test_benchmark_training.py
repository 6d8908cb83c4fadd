"""The benchmark of training and the stock implementation that it compares with, on toy models."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers.models.bert.modeling_bert import BertSelfAttention

from stages.classification import training as finetuning
from stages.masked_lm.corpus import Corpus
from stages.schema.training_sections import Finetuning
from stages.timing import peers, speed
from stages.tools.benchmarks import training as benchmark
from stages.training import machine
from tests import toy
from tests.toy import FINETUNING, TOY, run_of

RECIPE = Finetuning.model_validate(FINETUNING | {"epochs": 1})


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """The data of a toy run."""
    folder = tmp_path_factory.mktemp("run") / "data"
    toy.tokens_and_task(folder, "sst2")
    return folder


@pytest.fixture
def prepared(data, tmp_path):
    """Tokenizer, corpus and the examples of a task."""
    tokenizer = data / "tokens" / "tokenizer" / "tokenizer.json"
    corpus = benchmark.repacked_corpus(tmp_path / "tokens", data / "tokens", 6)
    tables = (data / "tasks" / "sst2" / f"{split}.parquet" for split in ("train", "validation"))
    return tokenizer, corpus, [finetuning.encode(table, tokenizer, 16) for table in tables]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(machine, "SIDES", {"cpu": (64,)})


def test_the_tokens_of_a_run_are_cut_to_the_asked_length(data, prepared):
    _, corpus, _ = prepared
    whole = Corpus.of(data / "tokens")
    assert corpus.vocabulary_size == whole.vocabulary_size and corpus.train.sequence_length == 6
    assert np.array_equal(corpus.train[[0, 1]].ravel(), whole.train[[0]].ravel())


@pytest.mark.parametrize(
    ("what", "columns"), [("pretraining", ["tokens/s", "peak"]), ("finetuning", ["accuracy", "sd"])]
)
def test_a_table_has_the_speeds_of_four_ways_on_the_data_of_a_run(what, columns, data, monkeypatch, capsys):
    size = ["--layers", "1", "--hidden", "16", "--heads", "2", "--length", "12", "--batch-size", "8"]
    rounds = ["--steps", "1", "--epochs", "1", "--rounds", "2", "--threads", str(torch.get_num_threads())]
    monkeypatch.setattr("sys.argv", ["training", what, "--data", str(data), *size, *rounds])
    benchmark.main()
    head, *rows = map(str.split, capsys.readouterr().out.splitlines()[-5:])
    assert set(columns) < set(head)
    assert [tuple(row[:2]) for row in rows] == list(benchmark.WAYS)
    assert all(float(row[2]) > 0 for row in rows)
    assert float(rows[0][3]) == float(rows[2][4]) == 1.0  # stock beside itself


def test_stock_pretraining_computes_in_the_precision_asked_for_in_any_order(prepared, monkeypatch):
    tokenizer, corpus, _ = prepared
    seen, forward = [], BertSelfAttention.forward

    def watched(self, *arguments, **others):
        self.query.register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))
        return forward(self, *arguments, **others)

    monkeypatch.setattr(BertSelfAttention, "forward", watched)
    for precision in ("float32", "bfloat16", "float32"):
        seen.clear()
        peers.Pretraining(run_of(precision=precision), corpus, tokenizer).seconds(1)
        assert set(seen) == {getattr(torch, precision)}


def test_stock_fine_tuning_pads_every_example_to_the_maximum(prepared):
    _, corpus, (examples, _) = prepared
    stock = peers.Finetuning("sst2", RECIPE, TOY, corpus.vocabulary_size)
    data = stock.padded(examples)
    assert {len(row["input_ids"]) for row in data} == {16}
    assert [sum(row["attention_mask"]) for row in data] == [len(ids) for ids in examples.ids]
    assert np.array_equal([row["label"] for row in data], examples.labels)


def test_stock_bert_and_ours_predict_alike_from_equal_weights(prepared):
    _, corpus, (examples, validation) = prepared
    stock = peers.Finetuning("sst2", RECIPE, TOY, corpus.vocabulary_size)
    stock.train(examples)
    ours = speed.Finetuning({"operator": "original"}, "sst2", RECIPE, TOY, corpus.vocabulary_size)
    ours.model.load_state_dict(stock.model.state_dict())
    assert np.array_equal(stock.predict(validation), ours.predict(validation))
