"""Fine-tunes every operator at every size on SQuAD, with and without TriviaQA before, for every pair of seeds.

Reads data/pretraining, data/tasks and the tokenizer of data/tokens. Writes data/observations/question_answering.csv
(exact match and F1 of every task x pre-training seed x fine-tuning seed) and data/answers/OPERATOR-SIZE.parquet (every
predicted answer behind these scores). The models fine-tuned on TriviaQA, from which some runs on SQuAD start, stay
among the results of the jobs. Given an operator (and a size), the stage does only the jobs of these and writes no
outputs.
"""

import json
from collections.abc import Mapping
from itertools import groupby, product
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import SkipValidation

from stages.benchmarks.answers import compute_scores
from stages.classification.runs import TunedRun
from stages.files.observations import Observation
from stages.files.paths import ANSWERS, TASK_FOLDER, TOKENIZER, find_pretrained
from stages.files.storage import make_temporary_sibling, write_atomically
from stages.runner import jobs, model_jobs
from stages.schema.settings import Settings
from stages.schema.training_sections import QuestionAnswering

STAGE = "question_answering"
PROTOCOL = "kowsher2025"  # of every observation, because only Kowsher et al. test on SQuAD
BEFORE = "triviaqa"  # the set of questions that some models are trained on before SQuAD
# Settings of the recipe that say which runs there are, and decide the result of no run.
APART = {"tasks", "seeds"}
# Settings of the recipe that decide answers, but not the training.
ANSWERING = {"answer_length", "null_threshold"}


class AnsweringRun(TunedRun):
    """A run on a set of questions. set: folder below data/tasks (squad1, squad2 or triviaqa)."""

    set: str
    training: SkipValidation[QuestionAnswering]

    @property
    def content(self) -> dict[str, Any]:
        """The settings that decide the result, as JSON; without ANSWERING for TriviaQA, which is not answered."""
        apart = APART | ANSWERING if self.set == BEFORE else APART
        return self.model_dump(mode="json", exclude={**self.beside, "training": apart})

    @property
    def job(self) -> jobs.Job:
        """The run as a job of `finetune`, whose result also depends on the weights, the questions and the tokenizer."""
        return jobs.Job(self.name, self, (Path(self.weights), TASK_FOLDER / self.set, TOKENIZER))


def finetune(run: AnsweringRun, folder: Path) -> dict:
    """Job: trains a model on a set of questions from a seed.

    The job leaves answers.json in `folder`, the folder of the job: a list of the predicted answers to the validation
    questions, in the order of the table, with an empty text for no answer. A run on TriviaQA, which is not scored,
    leaves the folder `model` instead.

    Returns:
        seconds: of training.
    """
    # Only the worker loads torch.
    from stages.question_answering.spans import answer_questions, train_on_questions

    tables = TASK_FOLDER / run.set
    # The model trained on TriviaQA is where runs on SQuAD start.
    if run.set == BEFORE:
        _, seconds = train_on_questions(run, TOKENIZER, tables / "train.parquet", folder / "model")
        return {"seconds": seconds}
    model, seconds = train_on_questions(run, TOKENIZER, tables / "train.parquet")
    answers = answer_questions(
        model,
        tables / "validation.parquet",
        TOKENIZER,
        run.training,
        unanswerable=run.set == "squad2",
    )
    write_atomically(folder / "answers.json", json.dumps(answers))
    return {"seconds": seconds}


def plan_first_runs(settings: Settings, models: list[tuple[str, str]]) -> list[AnsweringRun]:
    """Plans the runs on TriviaQA that come before runs on SQuAD; none if no task of params.yaml asks for TriviaQA.

    A task such as `squad1_triviaqa` fine-tunes on TriviaQA first, then on SQuAD. There is a run for every model
    (operator, size), pre-training seed and fine-tuning seed.
    """
    section = settings.question_answering
    plan = []
    if any(task.endswith(BEFORE) for task in section.tasks):
        for model, number, seed in product(models, settings.pretraining.seeds, section.seeds):
            plan.append(_make_run(section, model, BEFORE, find_pretrained(*model, number), number, seed))
    return plan


def plan_runs(
    settings: Settings, models: list[tuple[str, str]], trained: Mapping[tuple[str, int], Path]
) -> list[AnsweringRun]:
    """Plans the runs on SQuAD: a run for every model, task, pre-training seed and seed; runs of a model are adjacent.

    Args:
        settings: All of params.yaml.
        models: Operator and size of each model.
        trained: Folders of the models that were fine-tuned on TriviaQA, by the folder of the weights that the
            training started from, as a text, and the seed. May be empty if no task starts from these models.
    """
    section = settings.question_answering
    plan = []
    for model, task, number, seed in product(models, section.tasks, settings.pretraining.seeds, section.seeds):
        weights = find_pretrained(*model, number)
        if task.endswith(BEFORE):
            weights = trained[str(weights), seed]
        plan.append(_make_run(section, model, task, weights, number, seed))
    return plan


def _make_run(
    section: QuestionAnswering,
    model: tuple[str, str],
    task: str,
    weights: Path,
    pretraining_seed: int,
    seed: int,
) -> AnsweringRun:
    """Makes the run of a model on a set of questions.

    Args:
        section: The section `question_answering` of params.yaml.
        model: Operator and size.
        task: The set of questions, such as `squad1`, or `squad1_triviaqa` after a training on TriviaQA.
        weights: Folder of the weights to start from.
        pretraining_seed: Seed of the pre-training.
        seed: Seed of the fine-tuning.
    """
    operator, size = model
    return AnsweringRun(
        task=task,
        set=task.removesuffix(f"_{BEFORE}"),
        weights=str(weights),
        pretraining_seed=pretraining_seed,
        seed=seed,
        training=section,
        columns={"stage": STAGE, "protocol": PROTOCOL, "operator": operator, "size": size},
    )


def write_outputs(done: list[tuple[AnsweringRun, Path, dict]]) -> tuple[list[Observation], dict]:
    """Writes the predicted answers of every operator and size, a row for each answer.

    Args:
        done: Every run with the folder and the result of the job, first the runs on TriviaQA, then model by model.

    Returns:
        Exact match and F1 of every run on SQuAD, and {}: the record of the stage gets nothing further.
    """
    rows = []
    answered = [(run, folder) for run, folder, _ in done if run.set != BEFORE]
    with make_temporary_sibling(ANSWERS) as output:
        output.mkdir()
        for name, runs_of_model in groupby(answered, key=lambda job: f"{job[0].operator}-{job[0].size}"):
            tables = []
            for run, folder in runs_of_model:
                table, metrics = _score_answers(run, folder)
                tables.append(table)
                for metric, value in metrics.items():
                    rows.append(run.make_observation(run.set, metric, value, len(table)))
            pd.concat(tables).to_parquet(output / f"{name}.parquet", index=False)
    return rows, {}


def _score_answers(run: AnsweringRun, folder: Path) -> tuple[pd.DataFrame, dict[str, float]]:
    """Returns the predicted answers of a run as a table with a row each, and exact match and F1 of all answers.

    Args:
        run: The run, which names the set of questions.
        folder: The folder of the job, with answers.json.
    """
    predicted = json.loads((folder / "answers.json").read_text())
    table = TASK_FOLDER / run.set / "validation.parquet"
    questions = pd.read_parquet(table, columns=["example_id", "answers"])
    columns = {
        "task": run.task,
        "evaluated_on": run.set,
        "pretraining_seed": run.pretraining_seed,
        "finetuning_seed": run.seed,
        "example_id": questions["example_id"],
        "prediction": predicted,
    }
    return pd.DataFrame(columns), compute_scores(predicted, questions["answers"])


def main(settings: Settings, operator: str | None = None, size: str | None = None) -> dict | None:
    """Does the jobs of these models, or all jobs; returns entries of the record, or nothing for a part of the jobs."""
    models = settings.list_pretrained(operator, size)
    # Runs on SQuAD start from the models of the runs on TriviaQA, so these come first.
    first = plan_first_runs(settings, models)
    trained = {}
    if first:
        results = jobs.run(
            finetune,
            [run.job for run in first],
            STAGE,
            settings.workers,
            on_gpu=True,
        )
        for run, (folder, _) in zip(first, results, strict=True):
            trained[run.weights, run.seed] = folder / "model"
    plan = [*first, *plan_runs(settings, models, trained)]
    return model_jobs.run(finetune, plan, STAGE, settings.workers, write_outputs, whole=not operator)
