"""Trains a model of data/pretraining again, and compares weights and losses with the recorded run byte for byte.

Reads data/tokens and the recorded run: data/pretraining, data/observations/pretraining.csv, data/results/pretraining
and data/runs/pretraining.json. Trains in a temporary folder, from the first step on, and changes nothing in data/.
Prints a line for each file, `equal` or the first difference; then the processor and the versions of the recorded run
and of this machine. Ends with status 1 on a difference. Without arguments, the command takes the first operator, size
and seed of params.yaml.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from safetensors import SafetensorError
from safetensors.numpy import load_file

from stages.files import observations
from stages.files.documents import read_yaml
from stages.files.paths import LIVE, RESULTS, RUNS, TOKENS, find_pretrained
from stages.files.quoting import quote_bare, quote_value
from stages.masked_lm.run import PretrainingRun
from stages.pretraining.stage import make_observations, plan_runs, pretrain
from stages.runner import fingerprints, jobs
from stages.runner.provenance import describe_provenance
from stages.schema.settings import Settings

WEIGHTS = "model.safetensors"
OBSERVATIONS = observations.FOLDER / "pretraining.csv"
RECORD = RUNS / "pretraining.json"
FINISHED = RESULTS / "pretraining"
# entries of a record that describe the machine
MACHINE = ("processor", "device", "system", "python")


def main(
    settings: Settings,
    operator: str | None = None,
    size: str | None = None,
    seed: str | None = None,
) -> None:
    """Verifies the first run of the plan that has this operator, size and seed; `None` is any.

    Raises:
        ValueError: a file of the recorded run is missing or damaged.
        RuntimeError: the training fails.
        SystemExit: weights or losses differ.
    """
    plan = plan_runs(settings, settings.list_pretrained(operator, size))
    run = next(run for run in plan if seed in (None, str(run.seed)))
    weights = find_pretrained(run.operator, run.size, run.seed) / WEIGHTS
    require_recorded([TOKENS, weights, OBSERVATIONS, FINISHED, RECORD])
    print(f"verify: {run.name}: {describe_inputs(run)}", flush=True)
    # models of earlier steps are not compared, so none is saved
    run = run.model_copy(update={"saved_steps": ()})

    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / "job"
        rows = Path(temporary) / OBSERVATIONS.name
        result = jobs.run_again(recompute, run.job, folder, "verify")
        observations.write(rows, make_observations(run, result["log"]))
        differences = {
            weights: compare_weights(weights, folder / "model" / WEIGHTS),
            OBSERVATIONS: compare_rows(run, OBSERVATIONS, rows),
        }

    for path, difference in differences.items():
        print(f"{path}: {difference or 'equal'}")
    for line in compare_machines(read_yaml(RECORD), describe_provenance()):
        print(line)
    if any(differences.values()):
        sys.exit(1)


def recompute(run: PretrainingRun, folder: Path) -> dict:
    """Job: pre-trains a model again, to be compared with the recorded model.

    Returns:
        The log and the seconds of training. The curves go to the folder of the job, and data/live.csv stays as it is.
    """
    # torch is imported only in the worker
    from stages.pretraining.loop import train

    return train(run, TOKENS, folder, folder / LIVE.name)


def require_recorded(paths: list[Path]) -> None:
    """Raises a ValueError for a missing file or folder of the recorded run."""
    for path in paths:
        if not path.exists():
            raise ValueError(
                f"{path}: missing; `dvc pull tokenization pretraining` fetches the published run, and "
                "`dvc repro pretraining` makes one"
            )


def describe_inputs(run: PretrainingRun) -> str:
    """Says in a clause whether this run has the same settings, data, code and libraries as the recorded run.

    Differing inputs may explain differing weights. The inputs are the same if data/results has a finished job with the
    run's fingerprint, a hash of all inputs.
    """
    [fingerprint] = fingerprints.compute_fingerprints(fingerprints.describe_identity(pretrain), [run.job])
    inputs = "settings, data/tokens, code and versions of libraries"
    if (FINISHED / fingerprint).exists():
        return f"{inputs} are the same as in the recorded run"
    return f"{inputs} are not all the same as in the recorded run"


def compare_weights(recorded: Path, recomputed: Path) -> str:
    """Compares two files of weights; returns the first difference in words, "" for equal bytes."""
    if recorded.read_bytes() == recomputed.read_bytes():
        return ""
    after = load_file(recomputed)
    try:
        before = load_file(recorded)
    except SafetensorError as error:
        return f"damaged ({quote_value(error)})"
    for name, weights in after.items():
        if name not in before or before[name].shape != weights.shape or before[name].dtype != weights.dtype:
            return f"different: no {name} of {weights.dtype} and shape {weights.shape} is recorded"
        places = find_differences(before[name], weights)
        if len(places):
            first = [int(index) for index in np.unravel_index(places[0], weights.shape)]
            values = f"{before[name].flat[places[0]]} recorded, {weights.flat[places[0]]} here"
            return f"different: {name} in {len(places)} of {weights.size} weights, first at {first}: {values}"
    return "different: all weights are equal, and the rest of the file is not"


def find_differences(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Returns the flat indices, in order, at which arrays of one type and shape differ in their bytes."""
    old_bytes = np.frombuffer(before.tobytes(), np.uint8)
    new_bytes = np.frombuffer(after.tobytes(), np.uint8)
    return np.unique(np.flatnonzero(old_bytes != new_bytes) // before.itemsize)


def compare_rows(run: PretrainingRun, recorded: Path, recomputed: Path) -> str:
    """Compares the rows of a run in two files of observations; returns the first difference in words, "" for none."""
    # the first of these reports a damaged file
    observations.read([recorded])
    before, after = read_rows(run, recorded), read_rows(run, recomputed)
    if len(before) != len(after):
        return f"different: {len(before)} rows of the run are recorded, {len(after)} rows here"
    differs = (before != after).to_numpy()
    places = np.argwhere(differs)
    if not len(places):
        return ""
    row, column = places[0]
    where = f"{after.at[row, 'condition']}, {after.at[row, 'metric']}"
    old_text, new_text = quote_bare(before.iat[row, column]), after.iat[row, column]
    values = f"{after.columns[column]} is {old_text} recorded, {new_text} here"
    return f"different: {differs.any(axis=1).sum()} of {len(after)} rows of the run, first {where}: {values}"


def read_rows(run: PretrainingRun, path: Path) -> pd.DataFrame:
    """Reads the rows of a run from a file of observations, by operator, size and seed; every cell is text."""
    frame = pd.read_csv(path, dtype="str", keep_default_na=False)
    of_model = (frame["operator"] == run.operator) & (frame["size"] == run.size)
    of_run = of_model & (frame["pretraining_seed"] == str(run.seed))
    return frame[of_run].reset_index(drop=True)


def compare_machines(recorded: dict, here: dict) -> list[str]:
    """Compares two machines: processor, device, system, Python and every package.

    Args:
        recorded: record of the recorded run, data/runs/pretraining.json.
        here: the description of this machine, with the same keys.

    Returns:
        A line per item, with both values if the values differ.
    """
    before = {name: recorded.get(name) for name in MACHINE} | recorded.get("packages", {})
    after = {name: here[name] for name in MACHINE} | here["packages"]
    lines = []
    for name, value in after.items():
        old_value = before.get(name)
        if old_value == value:
            lines.append(f"{name}: {value}")
        else:
            lines.append(f"{name}: {quote_bare(old_value)} recorded, {value} here")
    return lines
