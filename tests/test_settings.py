"""params.yaml: every mistake gives one error that names the key, what was given and what is allowed."""

from pathlib import Path

import pytest
import yaml

from stages.schema import scales
from stages.schema.settings import load_settings

ROOT = Path(__file__).parents[1]


FREE = ("variants.", "models.", "pretraining.sequence_length_warmup.")  # names that a file chooses; a record, or null


def keys(value, prefix=""):
    if isinstance(value, dict) and prefix not in FREE:
        for key, inner in value.items():
            yield from keys(inner, f"{prefix}{key}.")
    else:
        yield prefix


@pytest.fixture
def params():
    return yaml.safe_load((ROOT / "stages" / "scales" / "laptop.yaml").read_text())


def written(tmp_path, content) -> Path:
    path = tmp_path / "params.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.mark.parametrize("scale", scales.names())
def test_every_scale_is_valid_and_complete(scale, tmp_path):
    content = yaml.safe_load(scales.read(scale))
    assert content["scale"] == scale
    laptop = yaml.safe_load((ROOT / "stages" / "scales" / "laptop.yaml").read_text())
    own = ("models.", "variants.")  # whose entries every file names as it needs them
    named, wanted = ({key for key in keys(file) if not key.startswith(own)} for file in (content, laptop))
    assert named == wanted
    if content["data"]["source"] == "files":
        content["data"]["root"] = str(tmp_path)
    load_settings(written(tmp_path, content))


CHANGES = {
    "unknown key": ("pretraining.stepz", 5, ["pretraining.stepz", "unknown key"]),
    "float for a count": ("pretraining.steps", 10.5, ["pretraining.steps", "10.5", "integer"]),
    "exponent without a dot": ("pretraining.epsilon", "1e-12", ["pretraining.epsilon", "'1e-12'", "1.0e-5"]),
    "negative rate": ("pretraining.learning_rate", -1.0, ["pretraining.learning_rate", "-1.0", "greater than 0"]),
    "not a number": ("pretraining.learning_rate", float("nan"), ["pretraining.learning_rate", "nan", "finite"]),
    "a warm-up that cuts no sequence evenly": (
        "pretraining.sequence_length_warmup",
        {"share": 0.5, "length": 7},
        ["pretraining.sequence_length_warmup.length: 7", "tokenization.sequence_length: 32"],
    ),
    "heads do not divide": ("models.tiny.heads", 7, ["models.tiny", "7", "128"]),
    "a pair of an operator that is not trained": (
        "analysis.pairs",
        [["symmetric", "shared"], [["symmetric", "fixed"], ["shared", "original"]]],
        ["analysis.pairs.1", "fixed"],
    ),
    "a pair that is compared already": (
        "analysis.pairs",
        [["symmetric", "shared"], ["symmetric", "original"]],
        ["analysis.pairs.1", "`original`", "remove"],
    ),
    "a pair of three": ("analysis.pairs", [["symmetric", "shared", "original"]], ["analysis.pairs.0"]),
    "unknown operator": (
        "operators",
        ["original", "sharde"],
        ["operators.1", "`sharde`", "shared", "pairwise_identity"],
    ),
    "a variant named as an operator": ("variants", {"shared": {"operator": "pairwise"}}, ["variants", "`shared`"]),
    "a variant of nothing": ("variants", {"hot": {"operator": "pairwize"}}, ["variants.hot.operator", "`pairwize`"]),
    "a spread of nothing": (
        "variants",
        {"hot": {"operator": "pairwise", "score_spread": 0.0}},
        ["variants.hot.score_spread", "0.0"],
    ),
    "operators in no list": ("operators", "symmetric", ["operators", "should be a list, as in [symmetric]"]),
    "words for a number": ("finetuning.courtois2024.epochs", "five", ["epochs", "'five'", "integer"]),
    "a near operator": ("operators", ["original", "symetric"], ["operators.1", "did you mean `symmetric`?"]),
    "a near protocol": ("protocols", ["courtois2042"], ["protocols.0", "did you mean `courtois2024`?"]),
    "a near key": ("pretraining.step", 5, ["pretraining.step", "did you mean `steps`?"]),
    "no baseline": ("operators", ["shared"], ["operators", "original"]),
    "no seeds": ("finetuning.courtois2024.seeds", [], ["finetuning.courtois2024.seeds", "empty", "[]"]),
    "a seed twice": ("pretraining.seeds", [1, 1], ["pretraining.seeds", "more than once"]),
    "undescribed size": ("sizes", ["huge"], ["sizes", "huge", "tiny"]),
    "too long a sequence": ("tokenization.sequence_length", 128, ["sequence_length", "128", "positions: 64"]),
    "warm-up without end": ("pretraining.warmup_steps", 10**6, ["pretraining", "warmup_steps", "1000000"]),
    "a stride with gaps": ("question_answering.stride", 40, ["question_answering", "stride: 40", "25 tokens"]),
    "questions without data": (
        "tasks.questions.names",
        ["squad1", "triviaqa"],
        ["question_answering.tasks: squad2", "`squad2` is not in tasks.questions.names: squad1, triviaqa"],
    ),
    "a set without a repository": (
        "tasks.questions.hub",
        {},
        ["tasks.questions.hub", "nothing for squad1, squad2, triviaqa"],
    ),
    "too long a window": ("question_answering.maximum_length", 128, ["question_answering.maximum_length: 128", "64"]),
    "files without a root": ("data", {"source": "files", "root": None}, ["data", "root"]),
    "bounds reversed": ("filtering.harmful_pp", {"above": 9.0, "below": 5.0}, ["filtering.harmful_pp", "9.0"]),
    "a batch beyond all measure": ("pretraining.batch_size", 10**12, ["pretraining.batch_size", "1000000000000"]),
    "a warm-up without an end": (
        "translation.sequence_tasks.warmup_steps",
        250,
        ["translation.sequence_tasks", "warmup_steps: 250 leaves nothing of steps: 250"],
    ),
    "no room for attention over parameters": (
        "translation.sequence_tasks.operators",
        ["original", "over_parameters_wide"],
        ["translation.sequence_tasks", "intermediate: 64 must be 66 or more for hidden: 32"],
    ),
    "embedded documents without number": ("corpus.documents", None, ["corpus.documents: null", "the number"]),
    "embedded examples without number": ("tasks.validation_examples", None, ["tasks.validation_examples: null"]),
    "embedded questions without number": ("tasks.questions.train_examples", None, ["questions.train_examples: null"]),
    "embedded pairs without number": ("translation.protocols.blog.held_out_pairs", None, ["blog.held_out_pairs: null"]),
    "two rates, linear": ("finetuning.courtois2024.learning_rates", [1.0, 2.0], ["linear", "2"]),
}


@pytest.mark.parametrize(("key", "value", "said"), CHANGES.values(), ids=list(CHANGES))
def test_a_mistake_is_named_with_its_key_and_what_was_given(key, value, said, params, tmp_path):
    *path, last = key.split(".")
    section = params
    for part in path:
        section = section[part]
    section[last] = value
    with pytest.raises(ValueError) as error:
        load_settings(written(tmp_path, params))
    for words in said:
        assert words in str(error.value)


def integers(value, path=()):
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(inner, dict | list):
            yield from integers(inner, (*path, key))
        elif isinstance(inner, int) and not isinstance(inner, bool):
            yield (*path, key)


def test_a_number_of_thirty_digits_is_refused_under_every_key_of_a_count(params, tmp_path):
    params["pretraining"]["sequence_length_warmup"] = None  # whose length is judged when all else is right
    places = list(integers(params))
    for number, (*path, last) in enumerate(places):  # all different: a list may name none twice
        section = params
        for part in path:
            section = section[part]
        section[last] = 10**29 + number
    with pytest.raises(ValueError) as error:
        load_settings(written(tmp_path, params))
    named = {line.split(":")[0].strip() for line in str(error.value).splitlines()[1:]}
    assert len(places) > 100
    assert {".".join(map(str, place)) for place in places} - named == set()


@pytest.mark.parametrize("key", ["scale", "pretraining", "models"])
def test_a_missing_key_is_named(key, params, tmp_path):
    del params[key]
    with pytest.raises(ValueError, match=f"{key}: missing"):
        load_settings(written(tmp_path, params))


def test_all_mistakes_come_in_one_error(params, tmp_path):
    params["pretraining"]["steps"] = -1
    params["corpus"]["shards"] = "four"
    with pytest.raises(ValueError, match=r"2 problem\(s\)(.|\n)*corpus.shards(.|\n)*pretraining.steps"):
        load_settings(written(tmp_path, params))


@pytest.mark.parametrize("text", ["a: [1", "just words", "- a\n- list", ""])
def test_a_file_that_is_no_mapping_is_an_error(text, tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"params\.yaml"):
        load_settings(path)


def test_a_missing_file_says_how_to_get_one(tmp_path):
    with pytest.raises(ValueError, match="python -m stages scale laptop"):
        load_settings(tmp_path / "params.yaml")
