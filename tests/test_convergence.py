"""Fine-tuning from intermediate checkpoints."""

from itertools import product

import pytest

from stages.convergence import stage as convergence
from stages.finetuning import stage as finetuning
from stages.schema.settings import load_settings

MODEL = ("original", "tiny")


@pytest.fixture
def settings():
    settings = load_settings()
    return settings.model_copy(update={"pretraining": settings.pretraining.model_copy(update={"seeds": (10, 2)})})


def test_every_step_task_and_pair_of_seeds_is_planned_once(settings):
    asked = settings.convergence
    identities = []
    for run in convergence.plan_runs(settings, [MODEL]):
        step = int(run.columns["condition"].removeprefix("step="))
        identities.append((step, run.task, run.pretraining_seed, run.seed))
    expected = product(asked.steps, asked.tasks, settings.pretraining.seeds, asked.seeds)
    assert sorted(identities) == sorted(expected)


def test_the_last_step_is_the_run_of_finetuning_and_no_other_step_is(settings):
    last = settings.pretraining.steps
    assert last in settings.convergence.steps
    tuned = [run.content for run in finetuning.plan_runs(settings, [(settings.convergence.protocol, *MODEL)])]
    for run in convergence.plan_runs(settings, [MODEL]):
        step = int(run.columns["condition"].removeprefix("step="))
        assert (run.content in tuned) == (step == last)
        assert run.weights.endswith(f"/step-{step}") == (step != last)
