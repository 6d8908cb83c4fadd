"""Pre-trains one operator at one size, once for every seed of `pretraining.seeds`.

Reads data/tokens. Writes data/pretraining/OPERATOR-SIZE/seed-N (a Hugging Face model folder) and
data/observations/pretraining-OPERATOR-SIZE.csv: training and validation loss by step. A run that was killed goes on
from its last checkpoint (data/jobs).
"""

import shutil
from pathlib import Path

from stages import command, jobs, observations
from stages.files import temporary_sibling
from stages.observations import Observation
from stages.settings import Settings, load_settings

TOKENS = Path("data/tokens")
SOURCES = (
    Path("stages/attention/bert.py"),
    Path("stages/attention/operators.py"),
    Path("stages/attention/products.py"),
    Path("stages/documents/packing.py"),
    Path("stages/learning/checkpoints.py"),
    Path("stages/learning/masking.py"),
    Path("stages/learning/optimisation.py"),
    Path("stages/learning/pretraining.py"),
)


def pretrain(run: dict, folder: Path) -> dict:
    from stages.learning.pretraining import pretrain

    return pretrain(run, TOKENS, folder)


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
    model = settings.models[size].model_dump()
    return [
        {"operator": operator, "size": size, "model": model, "attention": own, "seed": seed, "training": training}
        for seed in training.pop("seeds")
    ]


def main() -> None:
    parser = command.parser("pretraining", __doc__)
    parser.add_argument("operator", help="a name of `operators` in params.yaml")
    parser.add_argument("size", help="a name of `models` in params.yaml")
    arguments = parser.parse_args()
    settings = load_settings()
    name = f"{arguments.operator}-{arguments.size}"
    with observations.provenance(f"pretraining-{name}") as record:
        runs = planned(settings, arguments.operator, arguments.size)
        work = [jobs.Job(f"{name} seed {run['seed']}", run, (TOKENS, *SOURCES)) for run in runs]
        done = list(zip(runs, jobs.run(pretrain, work, "pretraining", settings.workers), strict=True))
        record["seconds_by_seed"] = {run["seed"]: result["seconds"] for run, (_, result) in done}
        with temporary_sibling(Path("data/pretraining") / name) as output:
            for run, (folder, _) in done:
                shutil.copytree(folder / "model", output / f"seed-{run['seed']}")
        losses = [row for run, (_, result) in done for row in rows(run, result["log"])]
        observations.write(observations.FOLDER / f"pretraining-{name}.csv", losses)


if __name__ == "__main__":
    command.run(main)
