"""Tests fine-tuned models under noise (Kowsher et al., section 3 and Table 5).

Reads data/finetuning and data/tasks. Writes data/observations/noise.csv: every metric of every model x task x
pre-training seed x fine-tuning seed, by level of noise on the embeddings (`noise=LEVEL`) and in the text (`typos=LEVEL`
and so on), each the mean over the noise seeds. All operators meet the same noise. If `noise.probes` is true, also
measurements inside the models (`layer=NUMBER` or `model`; see stages/noise/probes.py). Given an operator (and a size, a
protocol), the stage does only the jobs of these and writes no outputs.
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
    """An evaluation under noise. noise: the section of params.yaml; the list of tasks does not decide the result."""

    beside: ClassVar[dict[str, Any]] = {**EvaluationRun.beside, "noise": {"tasks"}}
    noise: SkipValidation[Noise]


def evaluate_model(run: NoiseRun, folder: Path) -> dict:
    """Job: evaluates a fine-tuned model on the validation splits of the task.

    The job leaves nothing in `folder`, the folder of the job.

    Returns:
        By validation split, `n`, the number of examples; `conditions`, {condition: {metric: value}} with conditions
        such as noise=0.1; and `probes`, as from `measure_probes`, empty if `noise.probes` is false.
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
    """Makes observations of all runs, given as (run, folder, result); adds nothing to the record of the stage."""
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
    """Plans a run for every kept model of `models` (protocol, operator and size of each)."""
    return plan_evaluations(NoiseRun, settings, "noise", models, settings.noise.tasks, noise=settings.noise)


def main(
    settings: Settings,
    operator: str | None = None,
    size: str | None = None,
    protocol: str | None = None,
) -> dict | None:
    """Does the jobs of these models, or all jobs; returns entries of the record, or nothing for a part of the jobs."""
    plan = plan_runs(settings, settings.list_finetuned(operator, size, protocol))
    return model_jobs.run(evaluate_model, plan, "noise", settings.workers, write_outputs, whole=not operator)
