"""Fine-tunes every operator at every size on SQuAD, with and without TriviaQA before, for every pair of seeds.

Reads data/pretraining, data/tasks and the tokenizer of data/tokens. Writes data/observations/question_answering.csv
(exact match and F1 of every task x pre-training seed x fine-tuning seed) and data/answers/OPERATOR-SIZE.parquet (every
predicted answer behind these scores). The models fine-tuned on TriviaQA, from which some runs on SQuAD start, stay
among the results of the jobs. Given an operator (and a size), it does the jobs of these alone and writes no outputs.
"""

import json
from collections.abc import Mapping
from itertools import groupby, product
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import SkipValidation

from stages.benchmarks.answers import scores
from stages.classification.runs import TunedRun
from stages.files.observations import Observation
from stages.files.paths import ANSWERS, TASK_FOLDER, TOKENIZER, pretrained
from stages.files.storage import temporary_sibling, write_atomically
from stages.runner import jobs, model_jobs
from stages.schema.settings import Settings
from stages.schema.training_sections import QuestionAnswering

STAGE = "question_answering"
PROTOCOL = "kowsher2025"  # of every observation, as Kowsher et al. alone test on SQuAD
BEFORE = "triviaqa"  # the set of questions that some models are trained on before SQuAD
APART = {"tasks", "seeds"}  # of the recipe: they say which runs there are, and decide the result of none
ANSWERING = {"answer_length", "null_threshold"}  # of the recipe: they decide answers, and not the training


class AnsweringRun(TunedRun):
    """A run on one set of questions. set: its folder below data/tasks (squad1, squad2 or triviaqa)."""

    set: str
    training: SkipValidation[QuestionAnswering]

    @property
    def content(self) -> dict[str, Any]:
        """What decides the result, as JSON: no `beside`, and for TriviaQA, which is not answered, no ANSWERING."""
        apart = APART | ANSWERING if self.set == BEFORE else APART
        return self.model_dump(mode="json", exclude=self.beside | {"training": apart})

    @property
    def job(self) -> jobs.Job:
        """The run as a job of `finetune`, whose result depends on the weights, the questions and the tokenizer, too."""
        return jobs.Job(self.name, self, (Path(self.weights), TASK_FOLDER / self.set, TOKENIZER))


def finetune(run: AnsweringRun, folder: Path) -> dict:
    """Job: trains one model on one set of questions from one seed.

    Leaves in `folder`, the job's own, answers.json: a list of the predicted answers to the validation questions, in
    their order, an empty text where there is none. A run on TriviaQA, which is not scored, leaves the folder `model`
    instead. Returns {"seconds": those of training}. The import, which loads torch, is left to the worker.
    """
    from stages.question_answering.spans import answer, train

    tables, before = TASK_FOLDER / run.set, run.set == BEFORE
    validation = tables / "validation.parquet"
    model, seconds = train(run, TOKENIZER, tables / "train.parquet", folder / "model" if before else None)
    if not before:
        answers = answer(model, validation, TOKENIZER, run.training, unanswerable=run.set == "squad2")
        write_atomically(folder / "answers.json", json.dumps(answers))
    return {"seconds": seconds}


def first_steps(settings: Settings, models: list[tuple[str, str]]) -> list[AnsweringRun]:
    """Plans one run on TriviaQA for every (operator, size), pre-training seed and seed, if a task's name ends in it."""
    section = settings.question_answering
    if not any(task.endswith(BEFORE) for task in section.tasks):
        return []
    seeds = product(settings.pretraining.seeds, section.seeds)
    return [
        _run(section, model, BEFORE, pretrained(*model, number), number, seed)
        for model, (number, seed) in product(models, seeds)
    ]


def planned(
    settings: Settings, models: list[tuple[str, str]], trained: Mapping[tuple[str, int], Path]
) -> list[AnsweringRun]:
    """Plans the runs on SQuAD: one for every model, task, pre-training seed and seed; those of a model stand together.

    Args:
        settings: all of params.yaml.
        models: operator and size of each.
        trained: folders of the models that were fine-tuned on TriviaQA, by the folder of the weights that they started
            from, as a text, and the seed. May be empty where no task starts from them.
    """
    section, plan = settings.question_answering, []
    for model, task, number, seed in product(models, section.tasks, settings.pretraining.seeds, section.seeds):
        weights = pretrained(*model, number)
        weights = trained[str(weights), seed] if task.endswith(BEFORE) else weights
        plan.append(_run(section, model, task, weights, number, seed))
    return plan


def _run(
    section: QuestionAnswering, model: tuple[str, str], task: str, weights: Path, pretraining_seed: int, seed: int
) -> AnsweringRun:
    """Makes a run. task: the set of its questions, then _triviaqa where `weights` have been trained on that before."""
    columns = {"stage": STAGE, "protocol": PROTOCOL, "operator": model[0], "size": model[1]}
    fields = {"task": task, "set": task.removesuffix(f"_{BEFORE}"), "weights": str(weights), "columns": columns}
    return AnsweringRun(**fields, pretraining_seed=pretraining_seed, seed=seed, training=section)


def outputs(done: list[tuple[AnsweringRun, Path, dict]]) -> tuple[list[Observation], dict]:
    """Writes the predicted answers of every operator and size, a row for each answer.

    done: every run with the folder and the result of its job, those on TriviaQA first, then model by model. Returns
    exact match and F1 of every run on SQuAD, and nothing for the record of the stage.
    """
    rows, tables = [], []
    for run, folder, _ in done:
        if run.set != BEFORE:
            predicted = json.loads((folder / "answers.json").read_text())
            questions = pd.read_parquet(TASK_FOLDER / run.set / "validation.parquet", columns=["example_id", "answers"])
            found = scores(predicted, questions["answers"])
            rows += [run.observed(run.set, metric, value, len(predicted)) for metric, value in found.items()]
            columns = {"task": run.task, "evaluated_on": run.set}
            columns |= {"pretraining_seed": run.pretraining_seed, "finetuning_seed": run.seed}
            columns |= {"example_id": questions["example_id"], "prediction": predicted}
            tables.append((f"{run.operator}-{run.size}", pd.DataFrame(columns)))
    with temporary_sibling(ANSWERS) as output:
        output.mkdir()
        for name, group in groupby(tables, key=lambda table: table[0]):
            pd.concat(frame for _, frame in group).to_parquet(output / f"{name}.parquet", index=False)
    return rows, {}


def main(settings: Settings, operator: str | None = None, size: str | None = None) -> dict | None:
    """Does the jobs of an operator and a size, None for all; returns what the record is to hold, None for a part."""
    models = settings.pretrained(operator, size)
    first = first_steps(settings, models)
    before = jobs.run(finetune, [run.job for run in first], STAGE, settings.workers, on_gpu=True) if first else []
    trained = {(run.weights, run.seed): folder / "model" for run, (folder, _) in zip(first, before, strict=True)}
    plan = [*first, *planned(settings, models, trained)]  # the first are done, and handed on with the others
    return model_jobs.run(finetune, plan, STAGE, settings.workers, outputs, whole=not operator)
