"""`python -m stages verify`: a model that is trained again equals the recorded run, or a difference is named."""

import re
import shutil
from pathlib import Path

import pytest
import yaml

from stages import command_line
from stages.files.storage import compute_sha256
from stages.runner.errors import clear_errors
from stages.schema import scales
from tests.toy import LENGTH, TOY, TRAINING, pack_tokens, write_word_tokenizer

WEIGHTS = "data/pretraining/original-tiny/seed-2/model.safetensors"
ROWS = "data/observations/pretraining.csv"
ARGUMENTS = ["verify", "original", "tiny", "2"]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Path:
    """A folder in which stage `pretraining` has run, with two seeds; no test changes it."""
    folder = tmp_path_factory.mktemp("recorded")
    params = yaml.safe_load(scales.read("laptop"))
    params |= {"operators": ["original"], "pretraining": TRAINING | {"seeds": [1, 2]}}
    params["models"]["tiny"] |= TOY | {"positions": params["models"]["tiny"]["positions"]}
    params["tokenization"]["sequence_length"] = LENGTH
    params["convergence"]["steps"] = [4]
    (folder / "params.yaml").write_text(yaml.safe_dump(params))
    (folder / "data/runs").mkdir(parents=True)
    (folder / "data/runs/tokenization.json").write_text("{}")
    write_word_tokenizer(pack_tokens(folder / "data/tokens") / "tokenizer/tokenizer.json")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(folder)
        command_line.run(["pretraining"])
    return folder


@pytest.fixture
def run(recorded, tmp_path, monkeypatch) -> Path:
    """A copy of the recorded run, and the working directory."""
    folder = tmp_path / "run"
    shutil.copytree(recorded, folder)
    monkeypatch.chdir(folder)
    return folder


def edit(path: Path, content: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(content)


def test_an_untouched_run_is_equal_and_nothing_in_data_changes(run, capsys):
    before = compute_sha256(run / "data")
    command_line.run(ARGUMENTS)
    said = capsys.readouterr().out
    assert "are the same as in the recorded run" in said
    assert f"\n{WEIGHTS}: equal\n{ROWS}: equal\nprocessor: " in said
    assert "recorded, " not in said
    assert compute_sha256(run / "data") == before


def test_a_changed_byte_a_changed_row_and_another_version_are_named_with_both_values_and_status_1(run, capsys):
    weights = Path(WEIGHTS).read_bytes()
    edit(Path(WEIGHTS), weights[:-1] + bytes([weights[-1] ^ 1]))
    text = Path(ROWS).read_text()
    [value] = re.findall(r"validation_loss,([\d.]+),original,tiny,,,,step=4,2,", text)
    edit(Path(ROWS), text.replace(value, f"{value}1").encode())
    record = Path("data/runs/pretraining.json")
    edit(record, re.sub(r'"torch": ".*"', '"torch": "1.0"', record.read_text()).encode())
    with pytest.raises(SystemExit) as ended:
        command_line.run(ARGUMENTS)
    assert ended.value.code == 1
    said = capsys.readouterr().out
    assert re.search(
        rf"\n{WEIGHTS}: different: \S+ in 1 of \d+ weights, first at \[.*\]: \S+ recorded, \S+ here\n", said
    )
    rows = (
        rf"different: 1 of \d+ rows of the run, first step=4, validation_loss: value is {value}1 recorded, {value} here"
    )
    assert re.search(rf"\n{ROWS}: {rows}\n", said)
    assert "\ntorch: 1.0 recorded, " in said


def test_other_settings_than_recorded_are_said_at_the_start_and_missing_rows_are_counted(run, capsys):
    params = yaml.safe_load(Path("params.yaml").read_text())
    params["pretraining"]["evaluation_interval"] = 9
    Path("params.yaml").write_text(yaml.safe_dump(params))
    with pytest.raises(SystemExit):
        command_line.run(ARGUMENTS)
    said = capsys.readouterr().out
    assert said.startswith(
        "verify: original-tiny seed 2: settings, data/tokens, code and versions of libraries are not all"
    )
    assert f"{ROWS}: different: 10 rows of the run are recorded, 2 rows here" in said


@pytest.mark.parametrize("path", [WEIGHTS, ROWS, "data/tokens", "data/runs/pretraining.json"])
def test_a_missing_file_of_the_recorded_run_is_one_line_that_names_it_and_how_to_get_it(path, run):
    Path(path).rename("elsewhere")
    with (
        pytest.raises(SystemExit, match=rf"^error: {path}: missing; `dvc pull .*`dvc repro pretraining`"),
        clear_errors(),
    ):
        command_line.run(ARGUMENTS)


@pytest.mark.parametrize(
    ("words", "listed"), [(["origin"], "operators"), (["original", "tiny", "3"], "pretraining.seeds")]
)
def test_a_run_that_params_yaml_does_not_list_is_one_line_that_names_the_key(words, listed, run):
    with pytest.raises(SystemExit, match=rf"^error: .* is not in {listed} of params.yaml"), clear_errors():
        command_line.run(["verify", *words])
