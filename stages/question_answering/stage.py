"""Fine-tunes one operator at one size on SQuAD, with and without TriviaQA before, for every pair of seeds.

Reads data/pretraining/OPERATOR-SIZE, data/tasks and the tokenizer of data/tokens. Writes
data/observations/question_answering-OPERATOR-SIZE.csv (exact match and F1 of every task x pre-training seed x
fine-tuning seed) and data/answers/OPERATOR-SIZE.parquet (every predicted answer behind them). The models that were
fine-tuned on TriviaQA first stay in data/jobs.
"""

import json
from pathlib import Path

import pandas as pd

from stages.common.benchmarks.answers import scores
from stages.plumbing import jobs, observations
from stages.plumbing.files import (
    ANSWERS,
    PRETRAINED,
    TASK_FOLDER,
    TOKENIZER,
    seed_folders,
    temporary_sibling,
    write_atomically,
)
from stages.plumbing.observations import Observation
from stages.plumbing.settings import Settings

PROTOCOL = "kowsher2025"
BEFORE = "triviaqa"


def finetune(run: dict, folder: Path) -> dict:
    """Job: one model trained on one set of questions from one seed.

    Leaves answers.json, the predicted answers to the validation questions; after TriviaQA, which is not scored, the
    model instead.
    """
    from stages.question_answering.spans import answer, finetune

    tables, before = TASK_FOLDER / run["set"], run["set"] == BEFORE
    train, validation = tables / "train.parquet", tables / "validation.parquet"
    kept = folder / "model" if before else None
    model, seconds = finetune(run, Path(run["weights"]), TOKENIZER, train, kept)
    if not before:
        answers = answer(model, validation, TOKENIZER, run["training"], unanswerable=run["set"] == "squad2")
        write_atomically(folder / "answers.json", json.dumps(answers))
    return {"seconds": seconds}


def first_steps(settings: Settings, operator: str, size: str) -> list[dict]:
    """Runs on TriviaQA, where a task needs them: one for every pre-training seed and seed, for all tasks."""
    if not any(task.endswith(BEFORE) for task in settings.question_answering.tasks):
        return []
    return [
        _run(settings, f"{operator}-{size}", BEFORE, weights, number, seed)
        for number, weights in _models(operator, size)
        for seed in settings.question_answering.seeds
    ]


def planned(settings: Settings, operator: str, size: str, trained: dict[tuple[int, int], Path]) -> list[dict]:
    """Runs on SQuAD: one for every task, pre-training seed and seed. trained: models after TriviaQA, by both seeds."""
    runs = []
    for task in settings.question_answering.tasks:
        for number, weights in _models(operator, size):
            for seed in settings.question_answering.seeds:
                start = trained[number, seed] if task.endswith(BEFORE) else weights
                runs.append(_run(settings, f"{operator}-{size}", task, start, number, seed))
    return runs


def _run(settings: Settings, model: str, task: str, weights: Path, pretraining_seed: int, seed: int) -> dict:
    answering = {"answer_length", "null_threshold"} if task == BEFORE else set()  # nothing is answered there
    training = settings.question_answering.model_dump(mode="json", exclude={"tasks", "seeds"} | answering)
    return {
        "name": f"{model} {task}, pre-training seed {pretraining_seed}, seed {seed}",
        "task": task,
        "set": task.removesuffix(f"_{BEFORE}"),
        "weights": str(weights),
        "pretraining_seed": pretraining_seed,
        "seed": seed,
        "training": training,
    }


def _models(operator: str, size: str) -> list[tuple[int, Path]]:
    return seed_folders(PRETRAINED / f"{operator}-{size}")


def run_all(runs: list[dict], settings: Settings) -> list[tuple[Path, dict]]:
    """(folder, {seconds}) of every run."""
    work = [jobs.Job(run["name"], run, (Path(run["weights"]), TASK_FOLDER / run["set"], TOKENIZER)) for run in runs]
    return jobs.run(finetune, work, "question_answering", settings.workers, on_gpu=True)


def measured(run: dict, predicted: list[str], questions: pd.DataFrame, columns: dict) -> list[Observation]:
    """Both metrics of one run; columns: what all rows share."""
    return [
        Observation(
            stage="question_answering",
            protocol=PROTOCOL,
            task=run["task"],
            evaluated_on=run["set"],
            metric=metric,
            pretraining_seed=run["pretraining_seed"],
            finetuning_seed=run["seed"],
            value=value,
            n=len(predicted),
            **columns,
        )
        for metric, value in scores(predicted, questions["answers"]).items()
    ]


def kept(run: dict, predicted: list[str], questions: pd.DataFrame) -> pd.DataFrame:
    """The predicted answers of one run as rows; the empty text is no answer."""
    names = {"task": "task", "evaluated_on": "set", "pretraining_seed": "pretraining_seed", "finetuning_seed": "seed"}
    rows = questions[["example_id"]].assign(**{name: run[key] for name, key in names.items()}, prediction=predicted)
    return rows[[*names, "example_id", "prediction"]]


def main(settings: Settings, operator: str, size: str) -> dict:
    name = f"{operator}-{size}"
    first = first_steps(settings, operator, size)
    before = run_all(first, settings) if first else []
    seeds = [(run["pretraining_seed"], run["seed"]) for run in first]
    trained = {key: folder / "model" for key, (folder, _) in zip(seeds, before, strict=True)}
    runs = planned(settings, operator, size, trained)
    results = run_all(runs, settings)
    rows, frames = [], []
    for run, (folder, _) in zip(runs, results, strict=True):
        predicted = json.loads((folder / "answers.json").read_text())
        questions = pd.read_parquet(TASK_FOLDER / run["set"] / "validation.parquet", columns=["example_id", "answers"])
        rows += measured(run, predicted, questions, {"operator": operator, "size": size})
        frames.append(kept(run, predicted, questions))
    with temporary_sibling(ANSWERS / f"{name}.parquet") as path:
        pd.concat(frames).to_parquet(path, index=False)
    observations.write(observations.FOLDER / f"question_answering-{name}.csv", rows)
    return {"seconds_of_jobs": round(sum(result["seconds"] for _, result in [*before, *results]), 1)}
