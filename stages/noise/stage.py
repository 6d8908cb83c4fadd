"""Tests fine-tuned models under noise (Kowsher et al., section 3 and Table 5).

Reads data/finetuning and data/tasks. Writes data/observations/noise.csv: every metric of every model x task x
pre-training seed x fine-tuning seed, by level of noise on the embeddings (`noise=LEVEL`) and in the text (`typos=LEVEL`
and so on), each the mean over the noise seeds. All operators meet the same noise. Where `noise.probes` is true also
measurements inside the models (`layer=NUMBER` or `model`; stages/noise/probes.py says which). Given an operator (and
a size, a protocol), it does the jobs of these alone and writes no outputs.
"""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import SkipValidation

from stages.benchmarks.glue import validation_tables
from stages.benchmarks.metrics import scores
from stages.classification import kept_models
from stages.classification.kept_models import EvaluationRun
from stages.files.observations import Observation
from stages.files.paths import TOKENIZER
from stages.runner import model_jobs
from stages.schema.settings import Settings
from stages.schema.testing_sections import Noise


class NoiseRun(EvaluationRun):
    """An evaluation under noise. noise: the section of params.yaml; its list of tasks does not decide the result."""

    beside: ClassVar[dict[str, Any]] = EvaluationRun.beside | {"noise": {"tasks"}}
    noise: SkipValidation[Noise]


def evaluate(run: NoiseRun, folder: Path) -> dict:
    """Job: evaluates one fine-tuned model on the validation splits of its task.

    Leaves nothing in `folder`, the job's own. Returns, by validation split, `n`, the number of examples; `conditions`,
    {condition: {metric: value}} with conditions such as noise=0.1; and `probes`, as `probe` returns them, empty where
    settings ask for none. The imports, which load torch, are left to the worker.
    """
    from stages.classification.training import encode, encoded, predict
    from stages.noise.embeddings import predictions_under_noise, predictions_under_text_noise
    from stages.noise.probes import probe

    model, result = kept_models.load(run.folder), {}

    def predicted(frame: pd.DataFrame) -> np.ndarray:
        return predict(model, encoded(frame, TOKENIZER, run.maximum_length), run.precision)

    for evaluated_on, table in validation_tables(run.task).items():
        examples = encode(table, TOKENIZER, run.maximum_length)
        conditions = predictions_under_noise(model, examples, TOKENIZER, run.noise, run.precision)
        conditions |= predictions_under_text_noise(pd.read_parquet(table), run.noise, predicted)
        result[evaluated_on] = {
            "n": len(examples),
            "conditions": {name: mean_scores(run.task, drawn, examples.labels) for name, drawn in conditions.items()},
            # the first noise seed draws the direction in which sensitivity is measured
            "probes": probe(model, examples, run.noise.seeds[0]) if run.noise.probes else {},
        }
    return result


def mean_scores(task: str, by_noise_seed: list[np.ndarray], labels: np.ndarray) -> dict[str, float]:
    """Computes the mean over the noise seeds of every metric of a task.

    Args:
        task: a GLUE task.
        by_noise_seed: an array of predictions [examples] for every noise seed, at least one.
        labels: [examples], the right answers: class indices or, in a regression, numbers.
    """
    by_seed = [scores(task, predictions, labels) for predictions in by_noise_seed]
    return {metric: float(np.mean([metrics[metric] for metrics in by_seed])) for metric in by_seed[0]}


def outputs(done: list[tuple[NoiseRun, Path, dict]]) -> tuple[list[Observation], dict]:
    """Makes observations of all runs, given as (run, folder, result of `evaluate`); adds nothing to the record."""
    rows = [
        run.observed(evaluated_on, metric, value, evaluated["n"], condition=condition)
        for run, _, result in done
        for evaluated_on, evaluated in result.items()
        for condition, metrics in (evaluated["conditions"] | evaluated["probes"]).items()
        for metric, value in metrics.items()
    ]
    return rows, {}


def planned(settings: Settings, models: list[tuple[str, str, str]]) -> list[NoiseRun]:
    """Plans one run for every kept model of `models` (protocol, operator and size of each)."""
    return kept_models.planned(NoiseRun, settings, "noise", models, settings.noise.tasks, noise=settings.noise)


def main(
    settings: Settings, operator: str | None = None, size: str | None = None, protocol: str | None = None
) -> dict | None:
    """Does the jobs of these models, None for all; returns what the record is to hold, None for a part of the jobs."""
    plan = planned(settings, settings.finetuned(operator, size, protocol))
    return model_jobs.run(evaluate, plan, "noise", settings.workers, outputs, whole=not operator)
