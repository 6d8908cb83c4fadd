"""Tests fine-tuned models under noise (Kowsher et al., section 3 and Table 5).

Reads data/finetuning and data/tasks. Writes data/observations/noise.csv: every metric of every model x task x
pre-training seed x fine-tuning seed, by level of noise on the embeddings (`noise=LEVEL`) and in the text (`typos=LEVEL`
and so on), each the mean over the noise seeds. All operators meet the same noise. If `noise.probes` is true, the file
also has measurements inside the models (`layer=NUMBER` or `model`). Given an operator (and a size, a protocol), the
stage does only these jobs and writes no outputs.
"""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import SkipValidation

from stages.benchmarks.glue import list_validation_tables
from stages.benchmarks.metrics import compute_metrics
from stages.classification.kept_models import load_kept_model, plan_evaluations
from stages.classification.runs import EvaluationRun, ModelNames
from stages.files.observations import Observation
from stages.files.paths import TOKENIZER
from stages.runner import model_jobs
from stages.schema.settings import Settings
from stages.schema.testing_sections import Noise


class NoiseRun(EvaluationRun):
    """An evaluation under noise; `noise` is the section of params.yaml."""

    # A changed list of tasks in the section leaves finished jobs valid.
    beside: ClassVar[dict[str, Any]] = {**EvaluationRun.beside, "noise": {"tasks"}}
    noise: SkipValidation[Noise]


def evaluate_model(run: NoiseRun, folder: Path) -> dict:
    """Evaluates a fine-tuned model under noise on the validation splits of the task; runs as a job in a worker.

    Args:
        run: Model, task and settings.
        folder: Folder of the job, which stays empty.

    Returns:
        A dict for each validation split:
        `n`: Number of examples.
        `conditions`: {condition: {metric: value}} with conditions such as `noise=0.1` and `typos=0.1`.
        `probes`: Measurements inside the model, {layer: {probe: value}}; {} if `noise.probes` is false.
    """
    # Only the worker loads torch.
    from stages.classification.training import encode_frame, encode_table, predict_examples
    from stages.noise.embeddings import predict_under_noise, predict_under_text_noise
    from stages.noise.probes import measure_probes

    model = load_kept_model(run.folder)

    # Noise in the text changes the tokens, so every noisy frame is tokenised anew.
    def predict_frame(frame: pd.DataFrame) -> np.ndarray:
        return predict_examples(model, encode_frame(frame, TOKENIZER, run.maximum_length), run.precision)

    result = {}
    for split, table in list_validation_tables(run.task).items():
        examples = encode_table(table, TOKENIZER, run.maximum_length)
        predictions = {
            **predict_under_noise(model, examples, TOKENIZER, run.noise, run.precision),
            **predict_under_text_noise(pd.read_parquet(table), run.noise, predict_frame),
        }
        conditions = {}
        for name, drawn in predictions.items():
            conditions[name] = average_scores(run.task, drawn, examples.labels)
        probes = {}
        if run.noise.probes:
            # The first noise seed draws the directions in which sensitivity is measured.
            probes = measure_probes(model, examples, run.noise.seeds[0])
        result[split] = {"n": len(examples), "conditions": conditions, "probes": probes}
    return result


def average_scores(task: str, drawn: list[np.ndarray], labels: np.ndarray) -> dict[str, float]:
    """Computes the mean over the noise seeds of every metric of a task.

    Args:
        task: A GLUE task.
        drawn: An array of predictions [examples] for every noise seed.
        labels: [examples], the right answers: class indices or, in a regression, numbers.
    """
    by_seed = [compute_metrics(task, predictions, labels) for predictions in drawn]
    means = {}
    for metric in by_seed[0]:
        means[metric] = float(np.mean([metrics[metric] for metrics in by_seed]))
    return means


def write_outputs(done: list[tuple[NoiseRun, Path, dict]]) -> tuple[list[Observation], dict]:
    """Makes observations of all runs.

    Args:
        done: Every run with the folder and the result of the job. A result has, for each validation split, scores by
            condition (such as `noise=0.1`) and probes, which are measurements inside the model, by layer or for the
            model.

    Returns:
        An observation for each run, split, condition or layer, and metric; and {}, because the stage's record gets no
        entries.
    """
    rows = []
    # Probes have conditions, too: a layer, or the model.
    for run, _, result in done:
        for split, evaluated in result.items():
            measured = {**evaluated["conditions"], **evaluated["probes"]}
            for condition, metrics in measured.items():
                for metric, value in metrics.items():
                    rows.append(run.make_observation(split, metric, value, evaluated["n"], condition=condition))
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
