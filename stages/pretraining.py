"""Pre-trains one operator at one size, once for every seed of `pretraining.seeds`.

Reads data/tokens. Writes data/pretraining/OPERATOR-SIZE/seed-N (a Hugging Face model folder),
data/checkpoints/OPERATOR-SIZE/seed-N/step-M (the same after the steps that `convergence` asks for) and
data/observations/pretraining-OPERATOR-SIZE.csv: training and validation loss by step. A run that was killed goes on
from its last checkpoint (data/jobs). data/live/OPERATOR-SIZE-seed-N has its curves while it goes on: loss, learning
rate, gradient norm, tokens a second, share of the machine's peak.

Several GPUs share a run under `torchrun --nproc-per-node N -m stages.pretraining OPERATOR SIZE`, or under
`accelerate launch`.
"""

import shutil
from pathlib import Path

from stages import command, jobs, observations
from stages.files import place, temporary_sibling
from stages.observations import Observation
from stages.settings import Settings, load_settings

TOKENS = Path("data/tokens")
MODELS, CHECKPOINTS, LIVE = Path("data/pretraining"), Path("data/checkpoints"), Path("data/live")
SOURCES = (
    Path("stages/attention/bert.py"),
    Path("stages/attention/operators.py"),
    Path("stages/attention/products.py"),
    Path("stages/documents/packing.py"),
    Path("stages/learning/checkpoints.py"),
    Path("stages/learning/corpus.py"),
    Path("stages/learning/distributed.py"),
    Path("stages/learning/masking.py"),
    Path("stages/learning/optimisation.py"),
    Path("stages/learning/pretraining.py"),
)


def pretrain(run: dict, folder: Path) -> dict:
    from stages.learning.pretraining import pretrain

    return pretrain(run, TOKENS, folder, LIVE / f"{run['operator']}-{run['size']}-seed-{run['seed']}")


def rows(run: dict, log: list[dict]) -> list[Observation]:
    """The log of one run as observations."""
    return [
        Observation(
            stage="pretraining",
            operator=run["operator"],
            size=run["size"],
            condition=f"step={entry['step']}",
            metric=metric,
            pretraining_seed=run["seed"],
            value=entry[metric],
            n=entry["masked_tokens"] if metric == "validation_loss" else None,
        )
        for entry in log
        for metric in ("training_loss", "validation_loss")
    ]


def planned(settings: Settings, operator: str, size: str) -> list[dict]:
    """One run for every seed. Settings of an operator's own stand in the runs of that operator alone."""
    training = settings.pretraining.model_dump(mode="json")
    own = settings.attention.model_dump() if operator == "pairwise" else {}
    shared = {
        "operator": operator,
        "size": size,
        "model": settings.models[size].model_dump(),
        "attention": own,
        "kept": list(settings.convergence.steps),
    }
    return [shared | {"seed": seed, "training": training} for seed in training.pop("seeds")]


def main() -> None:
    columns = command.operator_arguments(command.parser("pretraining", __doc__))
    settings = load_settings()
    name = "-".join(columns.values())
    with observations.provenance(f"pretraining-{name}") as record:
        runs = planned(settings, **columns)
        work = [jobs.Job(f"{name} seed {run['seed']}", run, (TOKENS, *SOURCES)) for run in runs]
        done = list(zip(runs, jobs.run(pretrain, work, "pretraining", settings.workers, on_gpu=True), strict=True))
        record["seconds_by_seed"] = {run["seed"]: result["seconds"] for run, (_, result) in done}
        for part, outputs in (("model", MODELS), ("checkpoints", CHECKPOINTS)):
            with temporary_sibling(outputs / name) as output:
                for run, (folder, _) in done:
                    shutil.copytree(folder / part, output / f"seed-{run['seed']}", copy_function=place)
        losses = [row for run, (_, result) in done for row in rows(run, result["log"])]
        observations.write(observations.FOLDER / f"pretraining-{name}.csv", losses)


if __name__ == "__main__":
    command.run(main)
