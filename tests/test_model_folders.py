"""A model folder has everything that Hugging Face's libraries need; the stock export needs no code of this project."""

import json
import os
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
import torch
from huggingface_hub import ModelCard
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import AutoModelForMaskedLM, AutoTokenizer, BertTokenizer, pipeline

from stages.attention import export, own
from stages.attention.bert import OperatorBertForMaskedLM, OperatorBertForSequenceClassification
from stages.attention.configuration import make_configuration
from stages.benchmarks.glue import TASKS
from stages.classification import training
from stages.classification.training import import_operator
from stages.files.model_folders import complete_folder, render_card
from stages.files.observations import Observation
from stages.files.paths import TOKENIZER
from stages.files.storage import compute_sha256
from stages.finetuning import stage as finetuning
from stages.pretraining import stage as pretraining
from stages.tokenization.vocabulary import SPECIAL, make_tokenizer
from tests.processes import run
from tests.toy import MINE, OWN, TOY, make_run, make_tuned_run, write_own_operator, write_word_tokenizer

ATTENTION = Path(export.__file__).parent
WORDS = ("the", "dog", "cat", "sees", "a")
SENTENCE = "the dog [MASK] a cat"
ALONE = """
import json, sys
{code}
found = model(sys.argv[1])
assert not {{name.split(".")[0] for name in sys.modules}} & {{{absent}}}
print(json.dumps([one["score"] for one in found] if "token" in found[0] else found))
"""


@pytest.fixture
def folder(tmp_path):
    """A model of pairwise attention with a vocabulary of ten words, as stage pretraining leaves it."""
    torch.manual_seed(0)
    words = make_tokenizer({piece: number for number, piece in enumerate((*SPECIAL, *WORDS))})
    words.save(str(tmp_path / "tokenizer.json"))
    model = OperatorBertForMaskedLM(make_configuration("pairwise", **TOY, vocab_size=words.get_vocab_size()))
    model.save_pretrained(tmp_path / "model")
    measured = {("own text", part, "loss"): value for part, value in (("first", 2.1234567), ("second", 3.5))}
    text = render_card(
        tmp_path / "model", "A model", "Of ten words.", "pairwise", {"operator": "pairwise"}, "fill-mask", measured
    )
    complete_folder(tmp_path / "model", tmp_path / "tokenizer.json", TOY["positions"], text)
    return tmp_path / "model"


def run_card(folder, said: str, absent: str = '"stages"') -> list:
    """Runs the code on the card of a folder, in a process that lacks the packages named `absent`."""
    [code] = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    beside = folder.parent / "packages"
    if absent == '"stages"':
        beside.mkdir()
        (beside / "fewer_attention").symlink_to(ATTENTION)
    variables = {"PYTHONPATH": str(beside), "HF_MODULES_CACHE": str(folder.parent / "modules")}
    printed = run(folder.parent, "python", "-c", ALONE.format(code=code, absent=absent), said, **variables)
    return json.loads(printed.splitlines()[-1])


def export_folder(folder: Path, *options: str) -> Path:
    """Exports a model folder by the command, and returns the target."""
    target = folder.with_name("target")
    export.main([str(folder), str(target), *options])
    return target


def compute_scores(folder) -> list[float]:
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
    assert (data.library_name, data.pipeline_tag, data.license) == ("transformers", "fill-mask", "mit")
    found = [(one.dataset_name, one.dataset_config, one.metric_type, one.metric_value) for one in data.eval_results]
    assert found == [("own text", "first", "loss", 2.123457), ("own text", "second", "loss", 3.5)]


@pytest.mark.parametrize(("step", "found"), [(0, []), (3, [("after 2 steps", 5.0)]), (4, [("after 4 steps", 4.0)])])
def test_the_card_of_an_intermediate_model_has_the_last_loss_up_to_its_step(step, found, in_an_empty_folder):
    write_word_tokenizer(TOKENIZER)
    Path("model").mkdir()
    log = [{"step": 2, "validation_loss": 5.0}, {"step": 4, "validation_loss": 4.0}]
    pretraining.publish_model(make_run(), log, Path("model"), step, Path("output"), Path("final"))
    results = ModelCard.load("output/README.md").data.eval_results or []
    assert [(one.dataset_config, one.metric_value) for one in results] == found


def test_the_line_on_the_card_fills_masks(folder):
    assert run_card(folder, SENTENCE) == pytest.approx(compute_scores(folder), abs=1e-5)


@pytest.mark.parametrize("task", ["mnli", "stsb"])
def test_the_line_on_the_card_of_a_fine_tuned_model_answers_with_the_names_of_classes(task, folder):
    torch.manual_seed(0)
    table, target = folder.parent / "table.parquet", folder.parent / "classifier"
    pd.DataFrame({"text_a": ["the dog", "a cat"], "text_b": "a dog", "label": [0, 1]}).to_parquet(table)
    run = make_tuned_run(folder, task)
    training.train_and_predict(run, folder / "tokenizer.json", table, {}, target)
    splits = [split.evaluated_on for split in TASKS[task].validation_splits]
    columns = {"stage": "finetuning", "operator": "pairwise", "size": "toy", "metric": "accuracy", "n": 4}
    rows = [Observation(**columns, evaluated_on=split, value=i / 4) for i, split in enumerate(splits)]
    text = finetuning.describe_model(run, rows, target, {"operator": "pairwise"})
    complete_folder(target, folder / "tokenizer.json", 16, text)
    data = ModelCard.load(target / "README.md").data
    found = [(one.dataset_config, one.metric_value) for one in data.eval_results]
    assert found == [(row.evaluated_on, row.value) for row in rows]
    if task == "mnli":
        [answer] = run_card(target, "the dog sees a cat")
        assert answer["label"] in TASKS[task].classes
    else:  # a score is given as it is
        [answer] = pipeline("text-classification", str(target))("the dog sees a cat")
        words = AutoTokenizer.from_pretrained(target)("the dog sees a cat", return_tensors="pt")
        classifier = OperatorBertForSequenceClassification.from_pretrained(target).eval()
        assert answer == {"label": "score", "score": pytest.approx(classifier(**words).logits.item(), abs=1e-5)}


def test_a_stock_export_fills_masks_without_our_code_as_the_model_does_with_it(folder):
    stock = export_folder(folder)
    found = run_card(stock, SENTENCE, '"stages", "fewer_attention"')
    assert found == pytest.approx(compute_scores(folder), abs=1e-5)
    assert "without this repository" in (stock / "README.md").read_text()


def test_an_export_has_the_vocabulary_by_id_from_which_transformers_4_builds_the_same_tokenizer(folder):
    pieces = (export_folder(folder) / "vocab.txt").read_text().splitlines()
    assert pieces == [*SPECIAL, *WORDS]
    # the class of transformers 4 of this name takes the file, and that of transformers 5 what is in the file
    words = BertTokenizer(vocab={piece: number for number, piece in enumerate(pieces)})
    assert dict(words("The dog", "a CAT")) == dict(AutoTokenizer.from_pretrained(folder)("The dog", "a CAT"))


def test_the_vocabulary_of_a_cased_tokenizer_is_not_exported_as_transformers_4_would_lower_its_case(folder):
    content = json.loads((folder / "tokenizer.json").read_text())
    content["normalizer"]["lowercase"] = False
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.json").write_text(json.dumps(content))
    assert not (export_folder(folder) / "vocab.txt").exists()


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_pointer_of_git_lfs_in_place_of_a_file_is_one_clear_error(name, folder, tmp_path):
    (folder / name).unlink()
    (folder / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n")
    with pytest.raises(SystemExit, match=rf"error: .*/{re.escape(name)}: a pointer of Git LFS; run `git lfs pull`"):
        export_folder(folder)
    assert not (tmp_path / "target").exists()


def cut(folder, name):
    """Leaves the first half of a file."""
    content = (folder / name).read_bytes()
    (folder / name).unlink()
    (folder / name).write_bytes(content[: len(content) // 2])


def drop_weight(folder):
    """Leaves the matrix S of the first layer out of the weights."""
    weights = load_file(folder / "model.safetensors")
    del weights["bert.encoder.layer.0.attention.self.S"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def widen(folder):
    """Changes the width in the configuration."""
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"hidden_size": 2 * config["hidden_size"]}))


def pickle(folder):
    """Stores the weights as a pickle, which could run code."""
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: cut(folder, "model.safetensors"), "the weights are damaged"),
        (lambda folder: cut(folder, "tokenizer.json"), "tokenizer.json: damaged"),
        (drop_weight, r"not the weights of config.json: missing_keys, as .*\.self\.S';"),
        (widen, "not the weights of config.json: mismatched_keys, as "),
        (pickle, "no file named model.safetensors"),
    ],
    ids=["half the weights", "half the tokenizer", "a missing weight", "another width", "a pickle"],
)
def test_damaged_or_missing_weights_are_one_clear_error_and_no_random_model(damage, message, folder, tmp_path):
    damage(folder)
    with pytest.raises(SystemExit, match=f"error: .*{message}"):
        export_folder(folder)
    assert not (tmp_path / "target").exists()


def test_a_card_that_a_user_wrote_is_exported_as_it_is(folder):
    (folder / "README.md").unlink()
    (folder / "README.md").write_text("# Mine\n")
    assert (export_folder(folder) / "README.md").read_text() == "# Mine\n"


@pytest.mark.parametrize("spelling", ["model/../model", "link", "hard", "other"])
def test_an_export_never_replaces_a_file_of_its_source_or_of_another_model(
    spelling, folder, tmp_path, in_an_empty_folder
):
    Path("link").symlink_to(folder)
    shutil.copytree(folder, "hard", copy_function=os.link)
    shutil.copytree(folder, "other")
    before = {path: compute_sha256(path) for path in tmp_path.rglob("*") if path.is_file()}
    for option in ([], ["--own"]):
        with pytest.raises(SystemExit, match=rf"error: {re.escape(str(Path(spelling)))}: not empty"):
            export.main(["model", spelling, *option])
    assert {path: compute_sha256(path) for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_missing_source_is_one_error_and_no_question_to_the_hub(in_an_empty_folder):
    Path("empty").mkdir()
    for source in ("nonexisting", "empty", "models/nonexisting"):
        with pytest.raises(SystemExit, match=f"error: {source}: no model folder"):
            export.main([source, "target"])
    assert not Path("target").exists()


@pytest.mark.parametrize("name", ["README.md", "tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("with_code", [False, True], ids=["stock", "own"])
def test_a_link_to_a_file_outside_the_source_is_not_copied_out(name, with_code, folder, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("{}")
    (folder / name).unlink()
    (folder / name).symlink_to("../secret")
    with pytest.raises(OSError, match=rf"{re.escape(name)}: a link to .*secret, outside the model folder"):
        export.export(folder, tmp_path / "target", with_code)
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize(
    "place",
    [
        lambda digest: Path("blobs", digest),  # of the hub's snapshots
        lambda digest: Path("cache/files/md5", digest[:2], digest[2:32]),  # of DVC
        lambda digest: Path("model", digest[:4]),  # in the folder itself
    ],
    ids=["hub", "dvc", "folder"],
)
def test_links_into_the_cache_of_the_hub_or_of_dvc_are_exported_as_files(place, folder, tmp_path):
    wanted = compute_scores(folder)
    for path in sorted(folder.iterdir()):
        stored = tmp_path / place(compute_sha256(path))
        stored.parent.mkdir(parents=True, exist_ok=True)
        path.rename(stored)
        path.symlink_to(os.path.relpath(stored, folder))
    stock = export_folder(folder)
    assert not [path for path in stock.iterdir() if path.is_symlink()]
    assert compute_scores(stock) == pytest.approx(wanted, abs=1e-5)


def name_code(folder, target, variant):
    """A copy of a model folder whose configuration names Python code as the code of the operator."""
    shutil.copytree(folder, target)
    config = json.loads((folder / "config.json").read_text())
    (target / "config.json").write_text(json.dumps(config | variant))
    return target


@pytest.mark.parametrize(
    "load",
    [
        lambda folder: pipeline("fill-mask", str(folder)),
        AutoModelForMaskedLM.from_pretrained,
        lambda folder: export.export(folder, folder.parent / "target", own=False),
    ],
    ids=["pipeline", "from_pretrained", "export"],
)
def test_no_python_runs_that_the_configuration_of_a_model_folder_names(load, folder, tmp_path):
    variant = write_own_operator(tmp_path / "mine.py", f"open({str(tmp_path / 'ran')!r}, 'w')\n{OWN}")
    with pytest.raises(ValueError, match="`plain_queries` is a user's own, and a configuration cannot name code"):
        load(name_code(folder, tmp_path / "theirs", variant))
    assert not (tmp_path / "ran").exists()


def test_inside_a_run_the_operator_comes_from_the_file_that_params_yaml_names(
    in_an_empty_folder, tmp_path, monkeypatch
):
    monkeypatch.setattr(own, "_imported", {})
    shutil.copyfile(MINE.with_name("params.yaml"), "params.yaml")
    mine = tmp_path / "my_operators.py"
    variant = write_own_operator(mine, f"# of this run\n{OWN}")
    OperatorBertForMaskedLM(make_configuration(**variant, **TOY, vocab_size=10)).save_pretrained("model")
    assert "mine" not in (tmp_path / "model/config.json").read_text()
    own._imported.clear()  # as in another process
    import_operator(tmp_path / "model")
    assert AutoModelForMaskedLM.from_pretrained("model").config.operator == "plain_queries"
    mine.write_text(f"{OWN}\nEDITED = True\n")
    own.import_own_operators.cache_clear()
    with pytest.raises(ValueError, match=r"my_operators\.py has changed since the model was trained"):
        import_operator(tmp_path / "model")


def test_the_line_on_the_card_of_a_user_s_own_operator_imports_its_file(folder, tmp_path):
    mine = tmp_path / "my_operators.py"
    variant, words = write_own_operator(mine, f"# of this card\n{OWN}"), len(AutoTokenizer.from_pretrained(folder))
    OperatorBertForMaskedLM(make_configuration(**variant, **TOY, vocab_size=words)).save_pretrained(tmp_path / "own")
    variant["operators_file"] = mine.name
    text = render_card(tmp_path / "own", "A model", "Of my own.", "plain_queries", variant, "fill-mask", {})
    complete_folder(tmp_path / "own", folder / "tokenizer.json", TOY["positions"], text)
    assert "fewer_attention.export" not in text
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages/stages").symlink_to(MINE.with_name("stages"))
    assert run_card(tmp_path / "own", SENTENCE, '"fewer_attention"') == pytest.approx(
        compute_scores(tmp_path / "own"), abs=1e-5
    )


def test_the_code_of_a_user_s_operator_is_not_exported_as_it_could_not_be_loaded(folder, tmp_path):
    variant = write_own_operator(tmp_path / "mine.py")
    with pytest.raises(ValueError, match="imports this repository; export it in Python without it"):
        export.export(name_code(folder, tmp_path / "own", variant), tmp_path / "target", own=True)
    assert not (tmp_path / "target").exists()


def test_an_export_of_our_own_code_loads_with_trust_and_gives_equal_outputs(folder):
    target = export_folder(folder, "--own")
    config = json.loads((target / "config.json").read_text())
    assert config["auto_map"]["AutoModelForMaskedLM"] == "bert.OperatorBertForMaskedLM"
    found = run_card(target, SENTENCE, '"stages", "fewer_attention"')
    assert found == pytest.approx(compute_scores(folder), abs=1e-5)
