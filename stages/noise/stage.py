"""Tests fine-tuned models under noise (Kowsher et al., section 3 and Table 5).

Reads data/finetuning and data/tasks. Writes data/observations/noise.csv: every metric of every model x task x
pre-training seed x fine-tuning seed, by level of noise on the embeddings (`noise=LEVEL`) and in the text (`typos=LEVEL`
and so on), each the mean over the noise seeds. All operators meet the same noise. Where `noise.probes` is true also
measurements inside the models (`layer=NUMBER` or `model`; stages/noise/probes.py says which). Of an operator that is
named, of a size or a protocol, it does the jobs alone.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from stages.benchmarks.glue import validation_tables
from stages.benchmarks.metrics import scores
from stages.classification import kept_models
from stages.plumbing import jobs, observations, results
from stages.plumbing.files import TASK_FOLDER, TOKENIZER
from stages.plumbing.observations import Observation
from stages.plumbing.settings import Settings


def test_model(run: dict, folder: Path) -> dict:
    """Job: one fine-tuned model. Gives, by what it was evaluated on and by condition, the metrics and n."""
    model = kept_models.load(Path(run["model"]))
    result = {}
    for evaluated_on, table in validation_tables(run["task"]).items():
        labels = pd.read_parquet(table)["label"].to_numpy()
        conditions = under_embedding_noise(model, run, table) | under_text_noise(model, run, table, folder)
        result[evaluated_on] = {
            "n": len(labels),
            "conditions": {name: mean_scores(run["task"], drawn, labels) for name, drawn in conditions.items()},
            "probes": probes(model, run, table) if run["noise"]["probes"] else {},
        }
    return result


def under_embedding_noise(model, run: dict, table: Path) -> dict[str, list[np.ndarray]]:
    """Predicts the examples of a table under noise on the embeddings.

    Returns:
        By `noise=LEVEL`, the predictions under every noise seed.
    """
    from stages.classification.training import encode
    from stages.noise.embeddings import predictions_under_noise, spared_ids

    spared = spared_ids(TOKENIZER, run["noise"]["special_tokens"])
    examples = encode(table, TOKENIZER, run["maximum_length"])
    by_level = predictions_under_noise(model, examples, run["noise"], spared, run["precision"])
    return {f"noise={level:g}": drawn for level, drawn in by_level.items()}


def under_text_noise(model, run: dict, table: Path, folder: Path) -> dict[str, list[np.ndarray]]:
    """Predicts the examples of a table with noise in their text.

    Returns:
        By `KIND=LEVEL`, such as `typos=0.1`, the predictions under every noise seed.
    """
    from stages.noise.embeddings import predictions_under_text_noise

    length, precision = run["maximum_length"], run["precision"]
    by_kind = predictions_under_text_noise(model, table, run["noise"], TOKENIZER, length, precision, folder)
    return {f"{kind}={level:g}": drawn for (kind, level), drawn in by_kind.items()}


def probes(model, run: dict, table: Path) -> dict[str, dict[str, float]]:
    """Measures inside the model on a table, as probes.py says; the first noise seed draws the direction."""
    from stages.classification.training import encode
    from stages.noise.probes import probe

    return probe(model, encode(table, TOKENIZER, run["maximum_length"]), run["noise"]["seeds"][0])


def mean_scores(task: str, drawn: list[np.ndarray], labels: np.ndarray) -> dict[str, float]:
    """Every metric, the mean over the noise seeds."""
    by_seed = [scores(task, predictions, labels) for predictions in drawn]
    return {metric: float(np.mean([one[metric] for one in by_seed])) for metric in by_seed[0]}


def rows(run: dict, result: dict, columns: dict) -> list[Observation]:
    """The result of one run as observations; columns: what all rows of the stage share."""
    return [
        Observation(
            stage="noise",
            task=run["task"],
            evaluated_on=evaluated_on,
            condition=condition,
            metric=metric,
            pretraining_seed=run["pretraining_seed"],
            finetuning_seed=run["finetuning_seed"],
            value=value,
            n=evaluated["n"],
            **columns,
        )
        for evaluated_on, evaluated in result.items()
        for condition, metrics in (evaluated["conditions"] | evaluated["probes"]).items()
        for metric, value in metrics.items()
    ]


def planned(settings: Settings, models: list[tuple[str, str, str]]) -> list[tuple[dict, dict]]:
    """One job for every kept model of `models` (protocol, operator, size), with the columns of its observations."""
    noise = settings.noise.model_dump(mode="json", exclude={"tasks"})
    return kept_models.planned(settings, models, settings.noise.tasks, noise=noise)


def main(
    settings: Settings, operator: str | None = None, size: str | None = None, protocol: str | None = None
) -> dict | None:
    plan = planned(settings, settings.finetuned(operator, size, protocol))
    work = [jobs.Job(run["name"], run, (Path(run["model"]), TASK_FOLDER / run["task"], TOKENIZER)) for _, run in plan]
    done = jobs.run(test_model, work, "noise", settings.workers, on_gpu=True)
    if operator:
        return None
    measured = [
        row for (columns, run), (_, result) in zip(plan, done, strict=True) for row in rows(run, result, columns)
    ]
    results.hand_on("noise", [folder for folder, _ in done])
    observations.write(observations.FOLDER / "noise.csv", measured)
    return {}
