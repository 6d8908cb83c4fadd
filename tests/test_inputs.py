"""A stage stops if the inputs are missing at the start, or change while the stage runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from stages.files.paths import EMBEDDED, RUNS
from stages.files.storage import write_atomically
from stages.runner.pipeline import list_outputs, read_inputs, read_pipeline, require_inputs, require_unchanged
from stages.schema.settings import PATH, load_settings

pytestmark = pytest.mark.usefixtures("in_an_empty_folder")


def make(*stages: str) -> None:
    """Makes the outputs and the records of stages as empty folders."""
    for stage in stages:
        for path in list_outputs(stage):
            path.mkdir(parents=True, exist_ok=True)


@pytest.mark.parametrize("stage", read_pipeline())
def test_a_stage_starts_after_the_stages_before_it_have_run(stage):
    names = list(read_pipeline())
    make(*names[: names.index(stage)])
    require_inputs(stage)


@pytest.mark.parametrize(
    ("stage", "made", "lost", "missing"),
    [
        ("filtering", [], [], "data/corpus"),
        ("pretraining", ["tokenization"], ["data/runs/tokenization.json"], "data/tokens"),
        ("pretraining", ["tokenization"], ["data/tokens"], "data/tokens"),
    ],
)
def test_a_stage_whose_input_or_record_is_missing_names_the_command_that_makes_it(stage, made, lost, missing):
    make(*made)
    for path in lost:
        Path(path).rmdir()
    with pytest.raises(ValueError, match=f"^{missing}: not made yet; run `dvc repro {stage}`, .* before {stage}"):
        require_inputs(stage)


def test_the_analysis_of_a_study_of_pre_training_needs_no_tasks_and_no_predictions():
    make("audit")
    require_inputs("analysis")
    assert not (RUNS / "tasks.json").exists()


ROOT = Path(__file__).parents[1]
CODE, CORPUS, OPERATORS = (
    Path("stages/masked_lm/loss.py"),
    Path("data/tokens/train/part_1.bin"),
    Path("my_operators.py"),
)


@pytest.fixture
def inputs() -> dict[str | Path, object]:
    """The inputs of pretraining at the default scale, with a single file of code, one of the corpus and operators."""
    for path in (CODE, CORPUS, OPERATORS):
        write_atomically(path, "before")
    write_atomically(PATH, (ROOT / "stages/scales/laptop.yaml").read_bytes())
    return read_inputs("pretraining", load_settings())


def edit_settings(old: str, new: str) -> None:
    text = PATH.read_text()
    assert text.count(old) == 1
    PATH.write_text(text.replace(old, new))


def switch_branch_and_back() -> None:
    CODE.write_text("after")
    CODE.write_text("before")


CHANGES = {
    "another rate": (lambda: edit_settings("learning_rate: 3.0e-3", "learning_rate: 2.0e-3"), None),
    "a branch and back": (switch_branch_and_back, CODE),
    "more code": (lambda: CODE.with_name("more.py").touch(), CODE.with_name("more.py")),
    "data deleted": (CORPUS.unlink, CORPUS),
}


@pytest.mark.parametrize(("change", "name"), CHANGES.values(), ids=list(CHANGES))
def test_an_input_that_changes_while_a_stage_runs_is_named(change, name, inputs):
    require_unchanged("pretraining", inputs)
    change()
    named = re.escape(str(name or "params.yaml: pretraining.learning_rate"))
    with pytest.raises(RuntimeError, match=f"^{named} changed while pretraining ran.*; run the same command again"):
        require_unchanged("pretraining", inputs)


def test_what_a_stage_does_not_read_may_change_while_it_runs(inputs):
    edit_settings("workers: null", "workers: 1")
    edit_settings("pdf: false", "pdf: true")
    write_atomically(CODE.parent / "__pycache__/loss.pyc", "compiled")
    write_atomically(Path("stages/report/stage.py"), "other code")
    write_atomically(CORPUS.with_name(".editor.swp"), "hidden")
    require_unchanged("pretraining", inputs)


def test_the_first_of_several_changes_is_named_with_their_number(inputs):
    CODE.write_text("after")
    CORPUS.unlink()
    with pytest.raises(RuntimeError, match=f"^{CORPUS} and 1 more changed"):
        require_unchanged("pretraining", inputs)


def test_a_corpus_made_while_its_settings_are_edited_ends_in_an_error_and_leaves_no_record():
    write_atomically(PATH, (ROOT / "stages/scales/laptop.yaml").read_bytes())
    write_atomically(OPERATORS, (ROOT / OPERATORS).read_bytes())
    EMBEDDED.parent.mkdir()
    EMBEDDED.symlink_to(ROOT / EMBEDDED)
    command = [sys.executable, "-m", "stages", "corpus"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "DVC_STAGE": "corpus"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    stage = subprocess.Popen(command, env=environment, text=True, **pipes)
    assert stage.stdout
    # printed once the settings have been read
    assert stage.stdout.readline().startswith("corpus: stage ")
    edit_settings("documents: 2500", "documents: 2400")
    assert "error: params.yaml: corpus.documents changed while corpus ran" in stage.communicate()[1]
    assert stage.returncode == 1
    assert not (RUNS / "corpus.json").exists()
