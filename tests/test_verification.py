"""`python -m stages verify`: a model that is trained again equals the recorded run, or a difference is named."""

import re
import shutil
from pathlib import Path

import pytest
import yaml

from stages import command_line
from stages.files.storage import compute_sha256
from stages.runner.errors import clear_errors
from tests import processes
from tests.places import ROOT
from tests.toy import LENGTH, OWN, TOY, TRAINING, pack_tokens, write_own_operator, write_word_tokenizer
from tests.toy_settings import edit_laptop

WEIGHTS = "data/pretraining/original-tiny/seed-2/model.safetensors"
ROWS = "data/observations/pretraining.csv"
ARGUMENTS = ["verify", "original", "tiny", "2"]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Path:
    """A folder in which stage `pretraining` has run, with two seeds; no test changes it."""
    folder = tmp_path_factory.mktemp("recorded")
    params = edit_laptop(
        {
            "operators": ["original"],
            "models.tiny": TOY | {"positions": 64},
            "pretraining": TRAINING | {"seeds": [1, 2]},
            "tokenization.sequence_length": LENGTH,
            "convergence.steps": [4],
        }
    )
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


def test_an_untouched_run_is_equal_and_only_the_live_curves_in_data_change(run, capsys):
    shutil.rmtree("data/live")
    Path("data/live.csv").unlink()
    before = compute_sha256(run / "data")
    command_line.run(ARGUMENTS)
    assert capsys.readouterr().out.endswith("\nequal\n")
    shutil.rmtree("data/live")
    Path("data/live.csv").unlink()
    assert compute_sha256(run / "data") == before


def change_weights() -> str:
    weights = Path(WEIGHTS).read_bytes()
    edit(Path(WEIGHTS), weights[:-1] + bytes([weights[-1] ^ 1]))
    return f"{WEIGHTS}: different"


def change_losses() -> str:
    text = Path(ROWS).read_text()
    [value] = re.findall(r"validation_loss,([\d.]+),original,tiny,,,,step=4,2,", text)
    edit(Path(ROWS), text.replace(value, f"{value}1").encode())
    return f"{ROWS}: different: pretraining,validation_loss,{value},original"


@pytest.mark.parametrize("change", [change_weights, change_losses])
def test_the_first_file_that_differs_is_named(change, run):
    said = change()
    with pytest.raises(SystemExit, match=f"^{said}"):
        command_line.run(ARGUMENTS)


@pytest.mark.parametrize("path", [WEIGHTS, ROWS, "data/tokens"])
def test_a_missing_file_of_the_recorded_run_is_one_line_that_names_it_and_how_to_get_it(path, run):
    Path(path).rename("elsewhere")
    with pytest.raises(SystemExit, match=rf"^error: {path}: not made .*`dvc repro`"), clear_errors():
        command_line.run(ARGUMENTS)


@pytest.mark.parametrize(
    ("words", "listed"), [(["origin"], "operators"), (["original", "tiny", "3"], "pretraining.seeds")]
)
def test_a_run_that_params_yaml_does_not_list_is_one_line_that_names_the_key(words, listed, run):
    with pytest.raises(SystemExit, match=rf"^error: .* is not in {listed} of params.yaml"), clear_errors():
        command_line.run(["verify", *words])


def test_by_hand_an_operator_whose_weights_cannot_be_saved_is_refused_before_training(run):
    tied = """
    def __init__(self, *others, **settings):
        super().__init__(*others, **settings)
        self.key.weight = self.value.weight
"""
    write_own_operator(Path("mine.py"), OWN + tied)
    params = yaml.safe_load(Path("params.yaml").read_text())
    params |= {"operators": ["original", "plain_queries"], "operators_file": "mine.py"}
    Path("params.yaml").write_text(yaml.safe_dump(params))
    with pytest.raises(ValueError, match="`value.weight` is `key.weight`"):
        command_line.run(["pretraining"])
    # an operator without a mistake is not held up
    command_line.run(["pretraining", "original"])


@pytest.mark.parametrize(("old", "new", "done"), [('"""', '"""New words. ', 2), ("fill_(1.0)", "fill_(2.0)", 0)])
def test_an_edit_of_the_operators_trains_again_only_if_more_than_wording_changes(old, new, done, run):
    shutil.copytree(ROOT / "stages", "stages", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "dvc.yaml", run)
    operators = Path("stages/attention/operators.py")
    operators.write_text(operators.read_text().replace(old, new, 1) + "# a comment\n")
    said = processes.run(run, "python", "-m", "stages", "pretraining", PYTHONPATH="")
    assert f"pretraining: 2 jobs, {done} of them done before" in said
