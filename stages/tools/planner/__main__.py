"""Says what `dvc repro` will take, before anyone starts it: runs, tokens, operations, time here and disk, by stage.

Reads params.yaml, data/published and, of what an earlier run has made of the same settings, dvc.lock, data/tokens,
data/tasks and data/jobs. Times a few steps on this machine. Prints a table and leaves the seconds of the commands that
it can time in data/plan.json, by which `dvc repro` says how long it still takes.
"""

import argparse
import json
import shutil
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import joblib
import numpy as np
import pandas as pd
import torch
from tqdm import tqdm

from stages.attention.counts import training_flops
from stages.classification.training import Encoded
from stages.runner import handover, jobs, progress, results
from stages.runner.errors import clear_errors
from stages.runner.progress import duration
from stages.runner.run import Run
from stages.schema.settings import REFERENCE, Settings, load_settings
from stages.timing.speed import Finetuning
from stages.tools.planner import work
from stages.training.optimisation import device

SECONDS = 2.0  # of one timing, about, at most; but one step is always timed
STEPS = 50  # at most, of one timing
LAYERS = 2  # at most, of the model that is timed
TOKENS = 1024  # of a batch on a CPU, at most, but one sequence at least
FIRST = 5  # the first id after those of [PAD], [UNK], [CLS], [SEP] and [MASK]

gigabytes = partial(tqdm.format_sizeof, suffix="B")  # in the unit that fits: `2.30GB`, `4.00MB`


def main() -> None:
    """Prints the table and what it rests on, and leaves the expected seconds of the commands in data/plan.json."""
    argparse.ArgumentParser(
        prog="python -m stages.tools.planner", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    start = time.process_time()  # seconds of this process, so far all for imports: about those of every command
    settings = load_settings()
    data = work.amounts(settings)
    planned = work.planned(settings, data)
    planned["done"] = done(settings, planned)
    # what is not counted has no length, and is not timed either
    lengths = planned.groupby(["size", "recipe"], sort=False)["length"].mean().dropna()
    paces = {key: pace(settings, data.vocabulary_size, *key, round(length)) for key, length in lengths.items()}
    keys = zip(planned["size"], planned["recipe"], strict=True)
    planned["seconds"] = planned["flops"] * [paces.get(key, np.nan) for key in keys]
    groups = planned.groupby(["command", "stage", "size"], sort=False)
    rows = groups[["done", "tokens", "flops", "seconds", "bytes"]].sum(skipna=False).assign(runs=groups.size())
    at_once = [workers(settings, stage) for stage in rows.index.get_level_values("stage")]  # jobs in one round
    rows["seconds"] = start + rows["seconds"] / rows["runs"] * np.ceil(rows["runs"] / at_once)
    rows["time here"] = rows["seconds"] * (1 - rows["done"] / rows["runs"])
    progress.write_plan(rows["seconds"].groupby("command").sum(skipna=False).dropna().to_dict())
    rows = rows.groupby(["stage", "size"], sort=False).sum(skipna=False)
    print("\n".join([f"scale {settings.scale}", "", table(rows), "", *remarks(settings, data, rows)]))


def pace(settings: Settings, vocabulary_size: int, size: str, recipe: str, length: int) -> float:
    """Times a few steps of training a fresh classifier with the operator `original` on random sequences.

    It has two layers at most, for layers are alike. A CPU is timed by the seconds that it computes, so that waiting for
    other processes does not count.

    Args:
        settings, vocabulary_size: of params.yaml, and in word pieces.
        size, recipe: in `models`; `pretraining`, `question_answering` or a name in `finetuning`.
        length: tokens of a sequence, as jobs of this size and recipe have them on average in what they train on first.

    Returns:
        Seconds per floating-point operation, as `training_flops` counts them.
    """
    shape = settings.models[size].model_dump()
    shape["layers"] = min(shape["layers"], LAYERS)
    section = settings.finetuning.get(recipe) or getattr(settings, recipe)
    batch, clock = getattr(section, "micro_batch_size", None) or section.batch_size, time.perf_counter
    if device().type == "cpu":
        torch.set_num_threads(1)  # as every worker
        batch, clock = max(1, min(batch, TOKENS // length)), time.process_time
    changes = section.model_dump(include={"precision", "hidden_dropout", "attention_dropout"})
    changes |= {"epochs": 1, "batch_size": batch}
    training = settings.finetuning[settings.timing.protocol].model_copy(update=changes)
    model = Finetuning({"operator": REFERENCE}, "sst2", training, shape, vocabulary_size)

    def seconds(steps: int) -> float:  # of one epoch of so many steps
        ids = np.random.default_rng(0).integers(FIRST, vocabulary_size, (steps * batch, length))
        examples = Encoded(tuple(ids), tuple(np.zeros_like(ids)), np.zeros(len(ids), dtype=np.int64))
        began = clock()
        model.train(examples)
        return clock() - began

    steps = max(1, min(STEPS, int(SECONDS / seconds(1))))  # the first step allocates memory
    operations = training_flops(REFERENCE, shape, vocabulary_size, length, masked=0.0)  # without masked-LM head
    return seconds(steps) / (steps * batch * length * operations)


def workers(settings: Settings, stage: str) -> int:
    """Returns how many jobs of a stage run at once: 1 of timing, which must be undisturbed, and on a Dask cluster."""
    if isinstance(settings.workers, str) or stage == "timing":
        return 1  # the size of a cluster is not known before it is there
    return settings.workers or torch.cuda.device_count() or joblib.cpu_count()  # of any other stage, "" included


def done(settings: Settings, planned: pd.DataFrame) -> list[bool]:
    """Determines for each row of `planned`, as `work.planned` returns it, whether the job is done.

    All jobs of a command are done where DVC need not run it again. Otherwise a job is done where all inputs of the
    command are made, and data/jobs has a result of the same settings that is no older than the model that it starts
    from; a run that starts from no model needs the result alone.
    """
    commands = handover.commands(settings)
    remaining = set(progress.still_to_come(settings, commands, ""))
    unmade = {path for name in remaining for path in commands[name].writes}
    waiting = {name for name in remaining if any(progress.touch(path, unmade) for path in commands[name].reads)}
    ended = {}  # when each job in data/jobs did, by its text
    for result in jobs.FOLDER.glob(f"*/*/{results.RESULT}"):
        description = json.loads(result.with_name(results.DESCRIPTION).read_text())  # {"name": ..., "settings": ...}
        ended[_key(**description)] = result.stat().st_mtime

    def is_done(command: str, run: Run | SimpleNamespace) -> bool:
        if command not in remaining:
            return True
        if command in waiting or not isinstance(run, Run):
            return False
        # Fine-tuning names the model in `weights`, a test in `folder`; pre-training has neither, so any result will do.
        model = Path(getattr(run, "weights", getattr(run, "folder", "")), "model.safetensors")
        since = model.stat().st_mtime if model.exists() else 0.0
        return ended.get(_key(run.name, run.content), -1.0) >= since

    return [is_done(*job) for job in planned[["command", "run"]].itertuples(index=False)]


def _key(name: str, settings: dict) -> str:
    """Returns a job as text, without the folder of its weights, which is not known here for a model after TriviaQA."""
    return json.dumps([name, {key: value for key, value in settings.items() if key != "weights"}], sort_keys=True)


def table(rows: pd.DataFrame) -> str:
    """Formats the rows, by stage and size, and their sums as text; a dash stands for zero and for what is unknown.

    rows: index stage, size; columns runs and done (jobs), tokens, flops, time here (seconds), bytes. Sums skip NaN.
    """
    shown = rows.reset_index()[["stage", "size", "runs", "done", "tokens", "flops", "time here", "bytes"]]
    shown = pd.concat([shown, pd.DataFrame([{"stage": "all", "size": "", **rows.sum()}])], join="inner")
    formats = {"tokens": "{:.1e}".format, "flops": "{:.1e}".format, "time here": duration, "bytes": gigabytes}
    for name, show in formats.items():
        shown[name] = [show(value) if value > 0 else "-" for value in shown[name]]
    shown = shown.astype({"runs": int, "done": int}).rename(columns={"flops": "FLOPs", "bytes": "disk"})
    return shown.to_string(index=False)


def remarks(settings: Settings, data: work.Amounts, rows: pd.DataFrame) -> list[str]:
    """Says in sentences, as the items of a Markdown list, what the rows of the table rest on and leave out.

    Args:
        settings, data: of params.yaml, and the amounts of data that the rows were computed from.
        rows: as `table` takes them.
    """
    need, free = rows["bytes"].sum(), shutil.disk_usage(".").free
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else f"a CPU of {joblib.cpu_count()} cores"
    others = [stage for stage in handover.pipeline() if stage not in rows.index.get_level_values("stage")]
    lines = [
        f"Time here: of what is not done, {workers(settings, '')} at once on {device}, of which nothing else takes a "
        "share; `original` is timed, other operators and testing follow by their operations.",
        "Done: by dvc.lock, or jobs in data/jobs with the settings of today; whether code was edited is not looked at.",
        f"Disk: {gigabytes(need)} for models in {work.COPIES} copies (data/jobs, output, DVC's cache), without the "
        f"data; {gigabytes(free)} free here.",
        f"Not counted: {', '.join(others)}; probes of noise; of translation more than runs.",
    ]
    if not data.sequences:
        lines.append(
            "Until data/tokens is there: the vocabulary is taken to be as large as allowed, validation during "
            "pre-training is not counted, nor is what pretraining.epochs asks for."
        )
    if not data.tasks:
        lines.append("Until data/tasks is there: tasks have the published numbers of examples, or as many as allowed.")
    if need > free:
        lines.append("WARNING: the disk does not suffice; name fewer seeds, tasks or steps of convergence.")
    if isinstance(settings.workers, str):
        lines.append("workers: a Dask cluster; the times are those of one of its workers: divide them by their number.")
    return [f"- {line}" for line in lines]


if __name__ == "__main__":
    with clear_errors():
        main()
