"""A stage that starts before its inputs were made stops with the input and the command that makes the input."""

from pathlib import Path

import pytest

from stages.files.paths import RUNS
from stages.runner.handover import list_outputs, pipeline, require_inputs

pytestmark = pytest.mark.usefixtures("in_an_empty_folder")


def make(*stages: str) -> None:
    """Makes the outputs and the records of stages, all of them empty folders."""
    for stage in stages:
        for path in list_outputs(stage):
            path.mkdir(parents=True, exist_ok=True)


@pytest.mark.parametrize("stage", pipeline())
def test_a_stage_starts_after_the_stages_before_it_have_run(stage):
    names = list(pipeline())
    make(*names[: names.index(stage)])
    require_inputs(stage)


@pytest.mark.parametrize(
    ("stage", "made", "lost", "missing"),
    [
        ("filtering", [], [], "data/corpus"),
        ("pretraining", ["settings"], [], "data/tokens"),
        ("pretraining", ["tokenization"], ["data/runs/tokenization.json"], "data/tokens"),
        ("pretraining", ["tokenization"], ["data/tokens"], "data/tokens"),
        ("noise", ["tasks"], [], "data/finetuning"),
        ("analysis", [], [], "data/audit"),
    ],
)
def test_a_stage_whose_input_or_record_is_missing_names_the_command_that_makes_it(stage, made, lost, missing):
    make(*made)
    for path in lost:
        Path(path).rmdir()
    with pytest.raises(ValueError, match=f"^{missing}: not made yet; `dvc repro {stage}` runs .*before {stage}"):
        require_inputs(stage)


def test_the_analysis_of_a_study_of_pre_training_needs_no_tasks_and_no_predictions():
    make("audit")
    require_inputs("analysis")
    assert not (RUNS / "tasks.json").exists()


def test_a_stage_that_is_not_in_dvc_yaml_has_no_inputs():
    require_inputs("a stage of somebody else's")
