"""Fine-tunes every operator at every size on SQuAD, with and without TriviaQA before, for every pair of seeds.

Reads data/pretraining, data/tasks and the tokenizer of data/tokens. Writes data/observations/question_answering.csv
(exact match and F1 of every task x pre-training seed x fine-tuning seed) and data/answers/OPERATOR-SIZE.parquet (every
predicted answer). The models fine-tuned on TriviaQA, from which some runs on SQuAD start, stay among the results of the
jobs. Given an operator (and a size), the stage does only the jobs of these and writes no outputs.
"""

import json
from collections.abc import Iterable, Mapping
from itertools import groupby, product
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import SkipValidation

from stages.benchmarks.answers import compute_scores
from stages.classification.runs import TunedRun
from stages.files.paths import ANSWERS, TASK_FOLDER, TOKENIZER, find_pretrained
from stages.files.storage import make_temporary_sibling, write_atomically
from stages.runner import jobs, model_jobs
from stages.schema.settings import Settings
from stages.schema.training_sections import QuestionAnswering

STAGE = "question_answering"
PROTOCOL = "kowsher2025"  # of every observation, because only Kowsher et al. test on SQuAD
TRIVIAQA = "triviaqa"  # the set of questions that some models are trained on before SQuAD
# Settings of the recipe that only list the runs.
LISTING_SETTINGS = {"tasks", "seeds"}
# Settings of the recipe that decide answers, but not the training.
ANSWERING_SETTINGS = {"answer_length", "null_threshold"}


class AnsweringRun(TunedRun):
    """A run on a set of questions, the folder `set` below data/tasks (squad1, squad2 or triviaqa)."""

    set: str
    training: SkipValidation[QuestionAnswering]

    @property
    def content(self) -> dict[str, Any]:
        """The settings that decide the result."""
        excluded = LISTING_SETTINGS
        # A run on TriviaQA only trains, and answers no question.
        if self.set == TRIVIAQA:
            excluded = LISTING_SETTINGS | ANSWERING_SETTINGS
        return self.model_dump(mode="json", exclude=self.beside | {"training": excluded})

    @property
    def job(self) -> jobs.Job:
        """The run as a job of `finetune`."""
        return jobs.Job(self.name, self, (Path(self.weights), TASK_FOLDER / self.set, TOKENIZER))


def finetune(run: AnsweringRun, folder: Path) -> dict:
    """Job: trains a model on a set of questions, and returns the seconds of training.

    Leaves answers.json, the predicted answers to the validation questions in the order of the table (an empty text: no
    answer). A run on TriviaQA leaves the folder `model` instead.
    """
    # Only the worker loads torch.
    from stages.question_answering.spans import answer_questions, train_on_questions

    data = TASK_FOLDER / run.set
    # The model trained on TriviaQA is not scored: runs on SQuAD start from the model.
    is_start = run.set == TRIVIAQA
    kept = folder / "model" if is_start else None
    model, seconds = train_on_questions(run, TOKENIZER, data / "train.parquet", kept)
    if not is_start:
        table = data / "validation.parquet"
        answers = answer_questions(model, table, TOKENIZER, run.training, unanswerable=run.set == "squad2")
        write_atomically(folder / "answers.json", json.dumps(answers))
    return {"seconds": seconds}


def plan_runs(
    settings: Settings,
    models: list[tuple[str, str]],
    tasks: Iterable[str],
    trained: Mapping[tuple[str, int], Path],
) -> list[AnsweringRun]:
    """Plans a run for every model (operator, size), task, pre-training seed and seed; runs of a model are adjacent.

    Args:
        settings: All of params.yaml.
        models: Operator and size of each model.
        tasks: Sets of questions, such as `squad1`, or `squad1_triviaqa` after a training on `triviaqa`.
        trained: Folders of the models fine-tuned on TriviaQA, by the folder of the pre-trained model and the seed.
    """
    section = settings.question_answering
    plan = []
    for (operator, size), task, pretraining_seed, seed in product(
        models, tasks, settings.pretraining.seeds, section.seeds
    ):
        weights = find_pretrained(operator, size, pretraining_seed)
        # A task such as `squad1_triviaqa` starts from the model that was fine-tuned on TriviaQA.
        questions = task.removesuffix(f"_{TRIVIAQA}")
        if questions != task:
            weights = trained[str(weights), seed]
        plan.append(
            AnsweringRun(
                task=task,
                set=questions,
                weights=str(weights),
                pretraining_seed=pretraining_seed,
                seed=seed,
                training=section,
                columns={"stage": STAGE, "protocol": PROTOCOL, "operator": operator, "size": size},
            )
        )
    return plan


def write_outputs(done: list[tuple[AnsweringRun, Path, dict]]) -> model_jobs.Outputs:
    """Writes a table of predicted answers for every operator and size; returns exact match and F1 of all runs.

    In `done`, runs on TriviaQA come first, then runs model by model.
    """
    rows = []
    # Runs on TriviaQA have no answers.
    answered = [entry for entry in done if entry[0].set != TRIVIAQA]
    with make_temporary_sibling(ANSWERS) as output:
        output.mkdir()
        for name, runs_of_model in groupby(answered, key=lambda entry: f"{entry[0].operator}-{entry[0].size}"):
            tables = []
            for run, folder, _ in runs_of_model:
                table, metrics = _score_answers(run, folder)
                tables.append(table)
                rows += run.make_observations(run.set, metrics, len(table))
            pd.concat(tables).to_parquet(output / f"{name}.parquet", index=False)
    return rows, {}


def _score_answers(run: AnsweringRun, folder: Path) -> tuple[pd.DataFrame, dict[str, float]]:
    """Returns the predicted answers of a run as a table, a row for each question, and exact match and F1."""
    predicted = json.loads((folder / "answers.json").read_text())
    questions = pd.read_parquet(TASK_FOLDER / run.set / "validation.parquet", columns=["example_id", "answers"])
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
    """Runs all jobs and returns entries of the stage's record; given an operator, runs only the operator's jobs."""
    models = settings.list_pretrained(operator, size)
    tasks = settings.question_answering.tasks
    first = []
    trained = {}
    # Runs on TriviaQA come first, because runs on SQuAD start from the trained models.
    if any(task.endswith(TRIVIAQA) for task in tasks):
        first = plan_runs(settings, models, [TRIVIAQA], {})
        results = jobs.run(finetune, [run.job for run in first], STAGE, settings.workers, on_gpu=True)
        for run, (folder, _) in zip(first, results, strict=True):
            trained[run.weights, run.seed] = folder / "model"
    plan = first + plan_runs(settings, models, tasks, trained)
    return model_jobs.run(finetune, plan, STAGE, settings.workers, write_outputs, whole=not operator)
