"""Fine-tuning from intermediate models."""

from itertools import product

import pytest

from stages.convergence import stage as convergence
from stages.finetuning import stage as finetuning
from stages.schema.settings import Settings
from tests.toy_settings import edit_laptop

MODEL = ("original", "tiny")


@pytest.fixture
def settings():
    return Settings.model_validate(edit_laptop({"pretraining.seeds": [10, 2]}))


def test_every_step_task_and_pair_of_seeds_is_planned_once(settings):
    asked = settings.convergence
    identities = []
    for run in convergence.plan_runs(settings, [MODEL]):
        step = int(run.columns["condition"].removeprefix("step="))
        identities.append((step, run.task, run.pretraining_seed, run.seed))
    expected = product(asked.steps, asked.tasks, settings.pretraining.seeds, asked.seeds)
    assert sorted(identities) == sorted(expected)


def test_only_the_reference_at_the_first_size_is_fine_tuned_from_untrained_weights_too(settings):
    models = [("courtois2024", operator, size) for operator, size in product(("original", "shared"), ("tiny", "mini"))]
    plan = finetuning.plan_runs(settings.model_copy(update={"sizes": ("tiny", "mini")}), models)
    untrained = [run for run in plan if run.columns["stage"] == "baselines"]
    assert {(run.operator, run.size, run.keep) for run in untrained} == {("not_pretrained", "tiny", None)}
    weights = {run.weights for run in untrained}
    assert weights == {f"data/intermediate_models/original-tiny/seed-{seed}/step-0" for seed in (10, 2)}


def test_the_last_step_is_the_run_of_finetuning_and_no_other_step_is(settings):
    last = settings.pretraining.steps
    assert last in settings.convergence.steps
    kept = {run.text: run.keep for run in finetuning.plan_runs(settings, [(settings.convergence.protocol, *MODEL)])}
    for run in convergence.plan_runs(settings, [MODEL]):
        step = int(run.columns["condition"].removeprefix("step="))
        assert (run.text in kept) == (run.keep is not None) == (step == last)
        assert run.keep == kept.get(run.text)
        assert run.weights.endswith(f"/step-{step}") == (step != last)
