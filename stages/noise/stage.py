"""Tests fine-tuned models under noise (Kowsher et al., section 3 and Table 5).

Reads data/finetuning and data/tasks. Writes data/observations/noise.csv: every metric of every model x task x
pre-training seed x fine-tuning seed by level of noise on the embeddings (`noise=LEVEL`), each the mean over the noise
seeds. All operators meet the same noise. Given an operator (and a size, a protocol), the stage does only these jobs and
writes no outputs.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from pydantic import SkipValidation

from stages.benchmarks.glue import list_validation_tables
from stages.benchmarks.metrics import compute_metrics
from stages.classification.kept_models import load_kept_model, plan_evaluations
from stages.classification.runs import EvaluationRun, ModelNames
from stages.files.paths import TOKENIZER
from stages.runner import model_jobs
from stages.schema.settings import Settings
from stages.schema.testing_sections import Noise


class NoiseRun(EvaluationRun):
    """An evaluation under noise; `noise` is the section of params.yaml."""

    # Fields that decide no result: a changed list of tasks in the section leaves finished jobs valid.
    beside = EvaluationRun.beside | {"noise": {"tasks"}}
    noise: SkipValidation[Noise]


def evaluate_model(run: NoiseRun, folder: Path) -> dict:
    """Evaluates a fine-tuned model under noise on the validation splits of the task; runs as a job in a worker.

    Returns:
        For each validation split, `n` (examples) and `conditions`, such as {"noise=0.1": {metric: value}}.
    """
    # Only the worker loads torch.
    from stages.classification.training import encode_table
    from stages.noise.embeddings import predict_under_noise

    model = load_kept_model(run.folder)
    result = {}
    for split, table in list_validation_tables(run.task).items():
        examples = encode_table(table, TOKENIZER, run.maximum_length)
        predictions = predict_under_noise(model, examples, TOKENIZER, run.noise, run.precision)
        conditions = {name: average_scores(run.task, arrays, examples.labels) for name, arrays in predictions.items()}
        result[split] = {"n": len(examples), "conditions": conditions}
    return result


def average_scores(task: str, by_seed: list[np.ndarray], labels: np.ndarray) -> dict[str, float]:
    """Computes the mean over the noise seeds of every metric of a GLUE task.

    `by_seed` has an array of predictions [examples] for every noise seed; `labels` [examples] are the right answers.
    """
    scores = pd.DataFrame([compute_metrics(task, predictions, labels) for predictions in by_seed])
    return scores.mean(skipna=False).to_dict()


def write_outputs(done: list[tuple[NoiseRun, Path, dict]]) -> model_jobs.Outputs:
    """Makes an observation for each run, split, condition (such as `noise=0.1`) and metric; the record gets nothing."""
    rows = []
    for run, _, result in done:
        for split, evaluated in result.items():
            for condition, metrics in evaluated["conditions"].items():
                rows += run.make_observations(split, metrics, evaluated["n"], condition=condition)
    return rows, {}


def plan_runs(settings: Settings, models: list[ModelNames]) -> list[NoiseRun]:
    """Plans a run for every fine-tuned model that stage `finetuning` keeps of `models` (protocol, operator, size)."""
    return plan_evaluations(NoiseRun, settings, "noise", models, settings.noise.tasks, noise=settings.noise)


def main(
    settings: Settings,
    operator: str | None = None,
    size: str | None = None,
    protocol: str | None = None,
) -> dict | None:
    """Runs all jobs and returns entries of the stage's record; given an operator, runs only the operator's jobs."""
    plan = plan_runs(settings, settings.list_finetuned(operator, size, protocol))
    return model_jobs.run(evaluate_model, plan, "noise", settings.workers, write_outputs, whole=not operator)
