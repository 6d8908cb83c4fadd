"""Trains a model of data/pretraining again, and compares the bytes of weights and losses with the recorded run.

Reads data/tokens, data/pretraining and data/observations/pretraining.csv. Trains in a temporary folder, from the first
step on. In data/, only data/live.csv changes, which shows the curves of the training. The last line is `equal`, or
names the first file that differs; the status is then 1. Other settings, code or versions of libraries may explain a
difference. By default, the command takes the first operator, size and seed of params.yaml.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from stages.files import observations
from stages.files.paths import TOKENS, find_pretrained
from stages.files.storage import compute_sha256
from stages.pretraining.stage import make_observations, plan_runs, pretrain
from stages.runner import jobs
from stages.runner.job import Job
from stages.schema.settings import Settings

LOSSES = observations.find_file("pretraining")


def main(settings: Settings, operator: str | None = None, size: str | None = None, seed: str | None = None) -> None:
    """Trains the first run with this operator, size and seed (`None` is any) again, and prints whether all is equal.

    Raises:
        FileNotFoundError: data/tokens or a file of the recorded run is missing.
        RuntimeError: the training fails.
        SystemExit: weights or losses differ.
    """
    plan = plan_runs(settings, settings.list_pretrained(operator, size))
    run = next(run for run in plan if seed in (None, str(run.seed)))
    weights = find_pretrained(run.operator, run.size, run.seed) / "model.safetensors"
    # as inputs of the job, missing files are an error before the training
    job = Job(run.name, run, (TOKENS, weights, LOSSES))
    with TemporaryDirectory() as temporary:
        [(folder, result)] = jobs.run(pretrain, [job], "verify", 1, on_gpu=True, root=Path(temporary))
        if compute_sha256(folder / "model" / weights.name) != compute_sha256(weights):
            sys.exit(f"{weights}: different")
        losses = folder / LOSSES.name
        observations.write(losses, make_observations(run, result["log"]))
        # observations of the new training that the recorded run does not have
        new_rows = set(losses.read_text().splitlines()) - set(LOSSES.read_text().splitlines())
    if new_rows:
        sys.exit(f"{LOSSES}: different: {min(new_rows)}")
    print("equal")
