"""Transfer between tasks: an explicit mapping of labels, and the prior beside every score."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from stages.benchmarks.glue import find_positive_classes, list_validation_tables
from stages.cross_domain import stage as cross_domain
from stages.files.paths import TASK_FOLDER, TOKENIZER
from stages.finetuning import stage as finetuning
from stages.schema.settings import load_settings
from stages.schema.testing_sections import CrossDomain
from stages.settings import stage as checked
from tests.places import ROOT


def make_mapping(tasks=("mnli", "qnli", "qqp", "mrpc"), **changes):
    positive = load_settings(ROOT / "params.yaml").cross_domain.positive_labels
    return CrossDomain.model_validate({"tasks": tasks, "positive_labels": positive | changes})


def measure(predicted, gold, trained, tested):
    positive = find_positive_classes(make_mapping())
    return cross_domain.compute_metrics(np.array(predicted), np.array(gold), trained, tested, positive)


def test_the_mapping_covers_every_pair_of_tasks():
    positive = find_positive_classes(make_mapping())
    assert positive == {"mnli": {0}, "qnli": {0}, "qqp": {1}, "mrpc": {1}}
    [run, *_] = runs = cross_domain.plan_runs(load_settings(), [("kowsher2025", "shared", "tiny")])
    assert {each.task for each in runs} == set(run.evaluated_on) == set(positive)


def test_an_evaluation_depends_on_the_model_the_tables_and_the_tokenizer():
    [run, *_] = cross_domain.plan_runs(load_settings(), [("kowsher2025", "shared", "tiny")])
    tables = [TASK_FOLDER / task for task in run.evaluated_on]
    assert run.job.inputs == (Path(run.folder), *tables, TOKENIZER)


def test_the_models_of_the_tasks_are_kept_also_without_noise():
    settings, models = load_settings(), [("courtois2024", "shared", "tiny")]
    quiet = settings.model_copy(update={"noise": settings.noise.model_copy(update={"tasks": ()})})
    kept = {str(run.keep) for run in finetuning.plan_runs(quiet, models)}
    assert {run.folder for run in cross_domain.plan_runs(quiet, models)} <= kept


WRONG = {
    "missing task": ({"tasks": ("mnli", "rte")}, "positive_labels: `rte` is missing"),
    "unknown label": ({"mnli": ["entails"]}, r"positive_labels\.mnli: .*entailment, neutral, contradiction"),
    "every label": (
        {"mnli": ["entailment", "neutral", "contradiction"]},
        r"positive_labels\.mnli: .*entailment, neutral, contradiction",
    ),
}


@pytest.mark.parametrize(("changes", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_mapping_is_an_error(changes, message):
    with pytest.raises(ValueError, match=message):
        find_positive_classes(make_mapping(**changes))


def test_a_label_that_a_task_has_not_stops_the_chain_before_anything_has_run(in_an_empty_folder):
    with pytest.raises(ValueError, match=r"positive_labels\.qqp: \['yes'\]; allowed"):
        checked.main(SimpleNamespace(cross_domain=make_mapping(qqp=["yes"])))
    assert not list(Path().iterdir())


def test_every_split_of_a_tested_task_has_its_own_scores(in_an_empty_folder):
    gold = {"mnli_m": [0, 1, 2, 1], "mnli_mm": [2, 0]}
    for split, path in list_validation_tables("mnli").items():
        path.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame({"example_id": "-", "label": gold[split]}).to_parquet(path)
    [run, *_] = cross_domain.plan_runs(load_settings(ROOT / "params.yaml"), [("kowsher2025", "shared", "tiny")])
    run = run.model_copy(update={"task": "mnli", "evaluated_on": ("mnli",)})
    predicted = {"mnli_m": [0, 1, 2, 2], "mnli_mm": [2, 0]}
    rows, _ = cross_domain.write_outputs(find_positive_classes(make_mapping()), [(run, Path(), predicted)])
    accuracies = {row.evaluated_on: (row.value, row.n) for row in rows if row.metric == "accuracy"}
    assert accuracies == {"mnli_m": (0.75, 4), "mnli_mm": (1.0, 2)}


def test_predictions_meet_in_yes_and_no():
    # trained on MNLI (entailment is class 0), tested on QQP (duplicate is class 1)
    scores = measure([0, 1, 2, 0], [1, 0, 0, 1], "mnli", "qqp")
    assert scores["accuracy"] == scores["mapped_accuracy"] == scores["balanced_accuracy"] == 1.0
    assert scores["matthews_correlation"] == 1.0


def test_the_diagonal_scores_the_tasks_own_classes():
    scores = measure([0, 1, 2, 1], [0, 1, 2, 2], "mnli", "mnli")
    assert scores["accuracy"] == 0.75
    assert scores["mapped_accuracy"] == 1.0  # neutral and contradiction both say no


@pytest.mark.parametrize("answer", [0, 1])
def test_a_model_that_ignores_its_input_scores_exactly_the_prior(answer):
    gold = [1, 1, 1, 0, 0, 1, 1, 0, 1, 1]
    scores = measure([answer] * 10, gold, "mrpc", "qqp")
    assert scores["accuracy"] == pytest.approx(0.7 if answer else 0.3)
    assert scores["majority_accuracy"] == pytest.approx(0.7)
    assert scores["balanced_accuracy"] == 0.5
    assert scores["matthews_correlation"] == 0.0
