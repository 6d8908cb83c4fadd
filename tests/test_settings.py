"""params.yaml: every mistake gives a single error with the key, the given value and the allowed values."""

from itertools import product
from pathlib import Path

import pytest
import yaml
from pandas._libs.parsers import STR_NA_VALUES

from stages.attention.base import SelfAttention
from stages.attention.operators import OPERATORS, SELF_ATTENTION, OverParameters
from stages.files.paths import find_pretrained
from stages.finetuning import stage as finetuning
from stages.pretraining import stage as pretraining
from stages.question_answering import stage as question_answering
from stages.schema import scales
from stages.schema.names import NO_TEXTS
from stages.schema.settings import Settings, load_settings
from stages.settings import stage
from tests.files import write_file
from tests.toy_settings import LAPTOP, edit_laptop, list_leaves

# sections whose entries a scale names as it needs them
FREE = ("models.", "variants.", "pretraining.sequence_length_warmup", "translation.protocols.")


@pytest.mark.parametrize("scale", scales.list_scales())
def test_every_scale_is_valid_and_has_every_key(scale):
    content = yaml.safe_load(scales.read(scale))
    assert Settings.model_validate(content).scale == scale
    keys = []
    for tree in (content, yaml.safe_load(LAPTOP.read_text())):
        keys.append({key for key, _, _ in list_leaves(tree) if not key.startswith(FREE)})
    assert keys[0] == keys[1]


# An edit of params.yaml as a line of YAML under a dotted key, and the message
MISTAKES = {
    "pretraining.stepz: 5": r"pretraining\.stepz: unknown key \(given: 5\); did you mean `steps`\?",
    "analysis.resamples: 5": r"analysis\.resamples: unknown key \(given: 5\); remove it or correct the spelling$",
    "models.tiny.layer: 5": r"models\.tiny\.layer: unknown key \(given: 5\); did you mean `layers`\?",
    "workers: -1": r"params\.yaml: 1 problem\(s\)\n  workers: give null .*tcp://HOST:8786 \(given: -1\)",
    "workers: true": r"workers: give null .*\(given: True\)",
    'report.remark: "a\\0b"': r"report\.remark: has a character that readers cannot see, .*NUL",
    "pretraining.steps: 10.5": r"pretraining\.steps: given 10\.5; input should be a valid integer",
    "pretraining.learning_rate: -1.0": r"pretraining\.learning_rate: given -1\.0; .* greater than 0",
    f"pretraining.seeds: {list(range(20_000))}": r"pretraining\.seeds: 20000 values, at most 1000 are allowed",
    "pretraining.seeds: [1, 1]": r"pretraining\.seeds: named more than once: '1'",
    "pretraining.warmup_steps: 1000000": r"pretraining: warmup_steps: 1000000 leaves nothing of steps: 1200",
    "pretraining.epochs: 3": r"pretraining: steps: 1200 and epochs: 3; give one",
    "pretraining.sequence_length_warmup: {share: 0.5, length: 7}": r"warmup\.length: 7 .*sequence_length: 32",
    "models.tiny.heads: 7": r"models\.tiny: heads: 7 does not divide hidden: 128",
    "{operators: [original, over_parameters], models.tiny.intermediate: 128}": (
        r"models\.tiny\.intermediate: 128 must be 129 or more for hidden: 128; with less, over_parameters has no width"
    ),
    "operators: symmetric": r"operators: given 'symmetric'; input should be a list, as in \['symmetric'\]",
    "operators: [original, symetric]": r"operators\.1: 'symetric' .* pairwise_identity.*; did you mean `symmetric`\?",
    "operators: [shared]": r"operators: every comparison is made against `original`",
    "variants: {shared: {operator: pairwise}}": r"variants: `shared` is the name of an operator",
    "variants: {nan: {operator: pairwise}}": r"variants\.nan: `nan` is no text for readers of CSV files",
    "operators: [original, inf]": r"operators\.1: `inf` is no text",
    "variants: {hot: {operator: pairwize}}": r"variants\.hot\.operator: 'pairwize' .* did you mean `pairwise`\?",
    "variants: {hot: {operator: pairwise, start: tied}}": r"variants\.hot\.start: 'tied' .* normal, identity, scaled",
    "variants: {hot: {operator: original, score_rate: 2.0}}": r"variants\.hot\.score_rate: original has no parameters",
    "protocols: [courtois2042]": r"protocols\.0: .* did you mean `courtois2024`\?",
    "sizes: [huge]": r"sizes: 'huge' is not in models: base, base6, mini",
    "finetuning.courtois2024.seeds: []": r"finetuning\.courtois2024\.seeds: the list is empty.*given: \[\]",
    "finetuning.courtois2024.learning_rates: [1.0, 2.0]": r"schedule `linear` takes one of learning_rates, not 2",
    "tokenization.sequence_length: 128": r"tokenization\.sequence_length: 128 exceeds models\.tiny\.positions: 64",
    "question_answering.stride: 40": r"question_answering: stride: 40 leaves out .* 25 tokens",
    "tasks.questions.names: [squad1, triviaqa]": r"question_answering\.tasks: squad2: 'squad2' is not in .*: squad1",
    "tasks.questions.hub: {}": r"tasks\.questions: hub: nothing for squad1, squad2, triviaqa",
    "tasks.names: [mnli, qnli, qqp, mrpc]": r"noise\.tasks: 'sst2' is not in tasks\.names: mnli, qnli, qqp, mrpc",
    "tasks.hub: {repository: json, revision: main}": r"tasks\.hub\.repository: not OWNER/NAME, .*given: 'json'",
    "corpus.hub: [{repository: hf://datasets/text, configuration: null, revision: main, files: null}]": (
        r"corpus\.hub\.0\.repository: not OWNER/NAME, .* such as \./NAME"
    ),
    "data: {source: files, root: null}": r"data: source `files` needs `root`",
    "filtering.harmful_pp: {above: 9.0, below: 5.0}": r"filtering\.harmful_pp: no score is above 9\.0 and below 5\.0",
    "convergence.steps: [600, 1300]": r"convergence\.steps: 1300 exceeds pretraining\.steps: 1200",
    "cross_domain.positive_labels: {}": r"cross_domain: positive_labels: `mnli` is missing",
    "noise.levels: [0.2, 0.0]": r"noise: levels: must rise from 0\.0",
    "translation.operators: [original, hadamard, fixed, over_parameters, over_parameters_wide, pairwise_scaled]": (
        r"translation\.operators: 'pairwise_scaled' is not in the operators of this repository"
    ),
    "translation.operators: [original]": r"translation: protocols\.blog\.operators: 'hadamard' is not in operators",
    "translation.sequence_tasks.warmup_steps: 250": r"sequence_tasks: warmup_steps: 250 leaves nothing of steps: 250",
    "translation.sequence_tasks.positions: 18": r"sequence_tasks: positions: 18; .* fill 17 at most",
    "translation.sequence_tasks.operators: [original, over_parameters_wide]": r"intermediate: 64 must be 66 or more",
    f"scale: {'a' * 61}": r"scale: .*at most 60 characters",
    "analysis.pairs: [[symmetric, shared], [[symmetric, fixed], symmetric]]": r"analysis\.pairs\.1: 'fixed' is not in",
    "analysis.pairs: [[symmetric, original]]": r"analysis\.pairs\.0: .* `original` already; remove this pair",
}


def load(tmp_path: Path, *edits: str) -> Settings:
    """Loads the settings of laptop with edits."""
    values = {}
    for edit in edits:
        values |= yaml.safe_load(edit)
    text = yaml.dump(edit_laptop(values), Dumper=yaml.CSafeDumper)
    return load_settings(write_file(tmp_path / "params.yaml", text))


def test_every_word_that_pandas_reads_as_a_missing_value_is_refused_as_a_name():
    words = {word.lower() for word in STR_NA_VALUES if word[:1].isalpha()}
    assert {"nan", "null"} <= words <= set(NO_TEXTS)


@pytest.mark.parametrize(("edit", "message"), MISTAKES.items())
def test_a_mistake_is_named_with_its_key_and_the_given_value(edit, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        load(tmp_path, edit)


# a value as it is written in params.yaml without quotation marks, and what it is; YAML 1.1 would take it for another
WRITTEN = {
    "translation.protocols.blog.source": {"pt-BR": "pt-BR", "no": "no", "eng_Latn": "eng_Latn", "ca@valencia": ...},
    "pretraining.epsilon": {"1e-12": 1e-12, ".5": 0.5, "1.E-3": 0.001, "1": 1},
    "pretraining.batch_size": {"1_000": 1000, "0x1F": 31, "0o17": 15, "+5": 5},
    "tasks.hub.revision": {"2024-01-01": ..., "1:30": ..., "0123456": ..., "on": ..., "=": ..., "1.2.3": ..., "y": ...},
    "data.root": {"~": None, "null": None, "": None, "~/data": str(Path.home() / "data"), "no": "no"},
}
# of another type than the key asks for
MISWRITTEN = {
    "translation.protocols.blog.source: 1": r"source: given 1; .* valid string; put the text in quotation marks",
    "tasks.hub.revision: 12345e6": r"revision: given 12345000000\.0; .* valid string; put the text in quotation marks",
    "tasks.hub.revision: 1234567": r"revision: given 1234567; .* valid string; put the text in quotation marks",
    "tasks.hub.revision: true": r"revision: given True; .* valid string; put the text in quotation marks",
    "tasks.hub.revision: ~": r"revision: given None; .* valid string",
    "report.pdf: no": r"pdf: given 'no'; input should be a valid boolean, true or false",
    "report.pdf: on": r"pdf: given 'on'; input should be a valid boolean, true or false",
    "pretraining.batch_size: 010": r"batch_size: given '010'; .* integer; write digits without .* leading zeros",
    "pretraining.batch_size: '16'": r"batch_size: given '16'; .* integer; write digits without quotation marks",
    "pretraining.batch_size: 1:30": r"batch_size: given '1:30'; input should be a valid integer",
    "pretraining.batch_size: 1e3": r"batch_size: given 1000\.0; input should be a valid integer",
    "pretraining.batch_size: 2024-01-01": r"batch_size: given '2024-01-01'; input should be a valid integer",
    "translation.protocols.blog.source: pt/BR": r"source: given 'pt/BR'; string should match pattern",
}


def load_written(tmp_path: Path, key: str, written: str) -> Settings:
    """Loads the settings of laptop with a value as a person would write it."""
    text = yaml.dump(edit_laptop({key: "HERE"}), Dumper=yaml.CSafeDumper)
    return load_settings(write_file(tmp_path / "params.yaml", text.replace("HERE", written)))


@pytest.mark.parametrize(
    ("key", "written", "expected"),
    [(key, written, value) for key, values in WRITTEN.items() for written, value in values.items()],
)
def test_a_value_without_quotation_marks_is_what_yaml_1_2_says(tmp_path, key, written, expected):
    found = load_written(tmp_path, key, written).model_dump()
    for part in key.split("."):
        found = found[part]
    assert found == (written if expected is ... else expected)


@pytest.mark.parametrize(("edit", "message"), MISWRITTEN.items())
def test_a_value_of_another_type_is_named_with_the_way_to_write_it(tmp_path, edit, message):
    with pytest.raises(ValueError, match=message):
        load_written(tmp_path, *edit.split(": "))


def test_the_norwegian_language_may_name_a_variant(tmp_path):
    text = LAPTOP.read_text().replace("variants:\n", "variants:\n  no: {operator: pairwise}\n")
    assert "no" in load_settings(write_file(tmp_path / "params.yaml", text)).variants


# only operators that run decide on the width of models
ON_BOUNDS = ("models.tiny.intermediate: 128", "tokenization.sequence_length: 64", "tasks.validation_examples: 10")


@pytest.mark.parametrize("edit", ON_BOUNDS)
def test_a_value_on_its_bound_is_allowed(edit, tmp_path):
    load(tmp_path, edit)


def test_a_path_of_the_user_may_begin_at_the_home_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/somebody")
    keys = ("data.root", "filtering.annotation.blocklists", "filtering.annotation.kenlm_model")
    settings = load(tmp_path, *(f"{key}: ~/files" for key in keys))
    annotation = settings.filtering.annotation
    for path in (settings.data.root, annotation.blocklists, annotation.kenlm_model):
        assert path == "/home/somebody/files"


def test_all_mistakes_come_in_one_error(tmp_path):
    with pytest.raises(ValueError, match=r"2 problem\(s\)(.|\n)*corpus.shards(.|\n)*pretraining.steps"):
        load(tmp_path, "pretraining.steps: -1", "corpus.shards: four")


FILES = {
    "a:\n\tb: 1": r"params\.yaml, line 2: not YAML: .*; indent with spaces",
    "a: @home": r"params\.yaml, line 1: not YAML: .* or use quotation marks",
    "a: [1": r"params\.yaml, line [12]: not YAML",
    "just words": r"params\.yaml: .*the file",
    "": r"pretraining: missing; stages/scales/laptop\.yaml shows every key",
    'a:\nb: "\x1b"': r"params\.yaml, line 2: not YAML: a control character; delete U\+001B",
    f"a: {'[' * 20_000}": r"params\.yaml: not YAML: line 1: more than 100 lists and maps within each other",
    "a: &a {b: *a}": r"params\.yaml: not YAML: line 1: an alias within an anchored value",
    "a: &a [x, y]\nb: &b [*a, *a]": "line 2: an alias within an anchored value",
    "scale: a": r"pretraining: missing; stages/scales/laptop\.yaml shows every key",
}


@pytest.mark.parametrize(("text", "message"), FILES.items())
def test_a_file_without_settings_is_an_error(text, message, tmp_path):
    path = tmp_path / "params.yaml"
    with pytest.raises(ValueError, match="python -m stages scale laptop"):
        load_settings(path)
    path.write_text(text)
    with pytest.raises(ValueError, match=f"(?s){message}"):
        load_settings(path)


def test_operators_that_write_attention_weights_out_are_those_that_weigh_values_otherwise():
    expected = {
        name
        for name, kind in SELF_ATTENTION.items()
        if kind.compute_weighted_values is not SelfAttention.compute_weighted_values
    }
    assert set(stage.WRITTEN_OUT) == expected


def test_weights_over_parameters_are_counted_as_the_operators_have_pairs():
    model = load_settings(LAPTOP).models["base"]
    expected = {kind.name: kind for kind in OPERATORS.values() if issubclass(kind, OverParameters)}
    assert stage.OVER_PARAMETERS.keys() == expected.keys()
    for name, kind in expected.items():
        module, _ = kind.build_feed_forward(model.hidden, model.heads, model.intermediate, dropout=0.0)
        heads, pairs, _ = module.get_parameter("K").shape
        assert stage.count_stored_weights(name, model, length=512) == heads * pairs


def test_attention_weights_that_would_fill_a_gpu_are_named_with_the_micro_batch_that_fits():
    settings = load_settings(LAPTOP)
    changed = {"sequence_length": 512}
    tokenization = settings.tokenization.model_copy(update=changed)
    update = {"operators": ("original", "hadamard"), "sizes": ("tiny", "base"), "tokenization": tokenization}
    expected = {None: 1, 151: 0, 152: 1}
    for rows, number in expected.items():
        recipe = settings.pretraining.model_copy(update={"batch_size": 256, "micro_batch_size": rows})
        notes = list(stage.find_large_batches(settings.model_copy(update={**update, "pretraining": recipe})))
        assert len(notes) == number
        if not rows:
            assert "hadamard at size base stores 68 GB" in notes[0] and "micro_batch_size to 151 or less" in notes[0]


# Jobs of pretraining, finetuning and question_answering after an edit: "." none is new, "+" some are new, "*" all are.
EDITS = {
    "pretraining.seeds: [1, 2, 3, 4]": "+++",
    "finetuning.courtois2024.epochs: 5": ".*.",
    "analysis.alpha: 0.01": "...",
}


def plan_jobs(settings: Settings) -> list[set[str]]:
    """The settings of all jobs of three stages."""
    models = settings.list_pretrained()
    trained = {}
    for model, number, seed in product(models, settings.pretraining.seeds, settings.question_answering.seeds):
        trained[str(find_pretrained(*model, number)), seed] = Path(f"{model}-{number}-{seed}")
    plans = (
        pretraining.plan_runs(settings, models),
        finetuning.plan_runs(settings, settings.list_finetuned()),
        question_answering.plan_runs(settings, models, settings.question_answering.tasks, trained),
    )
    return [{job.text for job in jobs} for jobs in plans]


@pytest.mark.parametrize(("edit", "expected"), EDITS.items())
def test_an_edit_redoes_only_the_jobs_that_depend_on_the_key(edit, expected, tmp_path):
    before, after = plan_jobs(load(tmp_path)), plan_jobs(load(tmp_path, edit))
    marks = ["." if new <= old else "+" if new & old else "*" for old, new in zip(before, after, strict=True)]
    assert "".join(marks) == expected
