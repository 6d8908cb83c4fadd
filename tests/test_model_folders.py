"""A model folder has what Hugging Face's libraries ask of it, and its stock export needs no code of ours."""

import json
import shutil
import subprocess
import sys

import pytest
import torch
from huggingface_hub import ModelCard
from tokenizers import Tokenizer
from transformers import AutoModelForMaskedLM, AutoTokenizer, pipeline

from stages.common.attention import export
from stages.common.attention.bert import OperatorBertForMaskedLM
from stages.common.attention.configuration import configuration
from stages.plumbing.model_folders import card, complete
from stages.tokenization.vocabulary import SPECIAL, word_pieces
from tests.toy import TOY

WORDS = ("the", "dog", "cat", "sees", "a")
SENTENCE = "the dog [MASK] a cat"
ALONE = """
import json, sys
from transformers import pipeline
found = pipeline("fill-mask", sys.argv[1])(sys.argv[2])
assert not any(name.split(".")[0] == "stages" for name in sys.modules)
print(json.dumps([one["score"] for one in found]))
"""


@pytest.fixture
def folder(tmp_path):
    """A model of pairwise attention with a vocabulary of ten words, as stage pretraining leaves it."""
    torch.manual_seed(0)
    words = word_pieces({piece: number for number, piece in enumerate((*SPECIAL, *WORDS))})
    words.save(str(tmp_path / "tokenizer.json"))
    model = OperatorBertForMaskedLM(configuration("pairwise", **TOY, vocab_size=words.get_vocab_size()))
    model.save_pretrained(tmp_path / "model")
    text = card(tmp_path / "model", "A model", "Of ten words.", "pairwise", "fill-mask", {("own text", "loss"): 2.5})
    complete(tmp_path / "model", tmp_path / "tokenizer.json", TOY["positions"], text)
    return tmp_path / "model"


def scores(folder) -> list[float]:
    return [one["score"] for one in pipeline("fill-mask", str(folder))(SENTENCE)]


def test_the_tokenizer_has_its_special_tokens_and_types_and_the_card_valid_metadata(folder):
    words = AutoTokenizer.from_pretrained(folder)
    assert (words.cls_token, words.sep_token, words.pad_token, words.mask_token, words.unk_token) == (
        "[CLS]", "[SEP]", "[PAD]", "[MASK]", "[UNK]",
    )  # fmt: skip
    pair = Tokenizer.from_file(str(folder / "tokenizer.json")).encode("the dog", "a cat")
    assert dict(words("the dog", "a cat")) == {
        "input_ids": pair.ids, "token_type_ids": pair.type_ids, "attention_mask": pair.attention_mask,
    }  # fmt: skip
    data = ModelCard.load(folder / "README.md").data
    [result] = data.eval_results
    assert (data.library_name, data.pipeline_tag, data.license) == ("transformers", "fill-mask", "mit")
    assert (result.dataset_name, result.metric_type, result.metric_value) == ("own text", "loss", 2.5)


def test_a_stock_export_fills_masks_without_our_code_as_the_model_does_with_it(folder, tmp_path):
    export.main([str(folder), str(tmp_path / "stock")])
    command = [sys.executable, "-I", "-c", ALONE, str(tmp_path / "stock"), SENTENCE]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert json.loads(said) == pytest.approx(scores(folder), abs=1e-5)
    assert "without this repository" in (tmp_path / "stock" / "README.md").read_text()


def test_the_code_of_a_user_s_operator_is_not_exported_as_it_could_not_be_loaded(folder, tmp_path):
    config = json.loads((folder / "config.json").read_text()) | {"operators_file": "mine.py", "operators_sha256": "0"}
    shutil.copytree(folder, tmp_path / "own")
    (tmp_path / "own" / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=r"mine\.py and imports this repository; export it without --own"):
        export.export(tmp_path / "own", tmp_path / "target", own=True)
    assert not (tmp_path / "target").exists()


def test_an_export_of_our_own_code_loads_with_trust_and_gives_equal_outputs(folder, tmp_path):
    export.main([str(folder), str(tmp_path / "own"), "--own"])
    config = json.loads((tmp_path / "own" / "config.json").read_text())
    assert config["auto_map"]["AutoModelForMaskedLM"] == "bert.OperatorBertForMaskedLM"
    own = AutoModelForMaskedLM.from_pretrained(tmp_path / "own", trust_remote_code=True)
    ids = torch.arange(10)[None]
    assert torch.equal(own(ids).logits, AutoModelForMaskedLM.from_pretrained(folder)(ids).logits)


def test_an_operator_that_bert_cannot_express_is_one_clear_error(tmp_path):
    OperatorBertForMaskedLM(configuration("hadamard", **TOY, vocab_size=10)).save_pretrained(tmp_path / "model")
    with pytest.raises(SystemExit, match="error: hadamard: .* BERT cannot express it"):
        export.main([str(tmp_path / "model"), str(tmp_path / "stock")])
