"""Says what `dvc repro` will take, before anyone starts it: runs, tokens, operations, time here and disk, by stage.

Reads params.yaml, data/published and, of what an earlier run has made of the same settings, dvc.lock, data/tokens,
data/tasks and data/jobs. Times a few steps on this machine. Prints a table and leaves the seconds of the commands that
it can time in data/plan.json, by which `dvc repro` says how long it still takes.
"""

import argparse
import json
import math
import shutil
import time
from collections import defaultdict
from pathlib import Path

import joblib
import pandas as pd
import torch

from stages.plumbing import jobs, progress, results
from stages.plumbing.command import clear_errors
from stages.plumbing.done import made
from stages.plumbing.handover import commands, pipeline
from stages.plumbing.progress import duration
from stages.plumbing.settings import Settings, load_settings
from stages.tools.planner import amounts, pace, work
from stages.tools.planner.amounts import Amounts
from stages.tools.planner.work import COPIES, Work

H100 = 989.4e12  # operations a second, bfloat16, dense: NVIDIA's data sheet of the H100 SXM
UTILISATION = 0.4  # assumed
WORTH_SAYING = 60.0  # seconds of an H100


def main() -> None:
    argparse.ArgumentParser(
        prog="python -m stages.tools.planner", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    start = time.process_time()  # of importing what a stage imports, too
    settings = load_settings()
    data = amounts.of(settings)
    planned = work.planned(settings, data)
    finished, pace_of = done_of(settings, planned), pace.measured(settings, data.vocabulary_size, planned)
    groups, rows, by_command = defaultdict(list), [], {}
    for each in planned:
        groups[each.stage, each.size].append(each)
    for (stage, size), jobs_of in groups.items():
        names = commands(settings, stage, size)
        seconds = taken(jobs_of, pace_of, len(names), workers(settings, stage), start)
        rows.append(row(jobs_of, sum(id(job) in finished for job in jobs_of), seconds))
        for name in names if seconds else ():
            by_command[name] = by_command.get(name, 0.0) + seconds / len(names)
    progress.write_plan(by_command)
    print("\n".join([f"scale {settings.scale}", "", table(rows), "", *remarks(settings, data, planned)]))


def workers(settings: Settings, stage: str) -> int:
    """Jobs that run at the same time; 1 for a Dask cluster, whose size is known when it is there."""
    if isinstance(settings.workers, str) or stage == "timing":
        return 1
    return settings.workers or torch.cuda.device_count() or joblib.cpu_count()


def done_of(settings: Settings, planned: list[Work]) -> set[int]:
    """Those of the jobs (their `id`) that are done: by dvc.lock with their stage or, before that, by data/jobs.

    There a job counts that has the settings of today and is no older than the model that it starts from, of a stage
    whose inputs are all made.
    """
    known = progress.every_command(settings)
    left = set(progress.still_to_come(settings, known, ""))
    coming = {path for name in left for path in known[name].writes}
    waiting = {known[name].stage for name in left if any(progress.touch(path, coming) for path in known[name].reads)}
    ended = {}
    for result in jobs.FOLDER.glob(f"*/*/{results.RESULT}"):
        description = json.loads(result.with_name(results.DESCRIPTION).read_text())
        ended[_key(**description)] = result.stat().st_mtime
    finished = set()
    for job in planned:
        command = f"{job.stage}@{job.run.operator}-{job.size}" if job.stage == "pretraining" else job.stage
        if command not in left:
            finished.add(id(job))
        elif job.run and job.stage not in waiting:
            start = Path(getattr(job.run, "weights", getattr(job.run, "folder", "")), "model.safetensors")
            since = start.stat().st_mtime if start.exists() else 0.0
            if ended.get(_key(job.run.name, job.run.content), -1.0) >= since:
                finished.add(id(job))
    return finished


def _key(name: str, settings: dict) -> str:
    """A job without the place of its weights, which the planner does not know of a model after TriviaQA."""
    return json.dumps([name, {key: value for key, value in settings.items() if key != "weights"}], sort_keys=True)


def taken(
    planned: list[Work], pace: dict[tuple[str, str], float], commands: int, workers: int, start: float
) -> float | None:
    """Seconds of jobs that `commands` share equally, one command after the other, each in rounds of `workers`.

    Args:
        planned: jobs of one stage at one size.
        pace: seconds an operation, by size and recipe.
        commands: of dvc.yaml that do them.
        workers: jobs at a time.
        start: seconds that a command takes to begin.

    Returns:
        None where the operations are not known.
    """
    if not all(job.passes for job in planned):
        return None
    mean = sum(job.flops * pace[job.size, job.recipe] for job in planned) / len(planned)
    return commands * (start + mean * math.ceil(len(planned) / commands / workers))


def row(planned: list[Work], done: int, seconds: float | None) -> dict:
    """A line of the table, for the jobs of a stage at one size; None for what is not known.

    Args:
        planned: the jobs.
        done: how many of them are done.
        seconds: that all of them take.
    """
    known = seconds is not None
    return {
        "stage": planned[0].stage,
        "size": planned[0].size,
        "runs": len(planned),
        "done": done,
        "tokens": sum(tokens for job in planned for tokens, _, _ in job.passes) if known else None,
        "FLOPs": sum(job.flops for job in planned) if known else None,
        "time here": seconds * (1 - done / len(planned)) if known else None,
        "disk": sum(job.bytes for job in planned),
    }


def table(rows: list[dict]) -> str:
    """The rows and their sums as text; a dash for nothing, and for what is not known (in pandas NaN, unlike itself)."""
    sums = {name: sum(each[name] or 0 for each in rows) for name in list(rows[0])[2:]}
    frame = pd.DataFrame([*rows, {"stage": "all", "size": ""} | sums]).astype(object)
    for name, show in {"tokens": quantity, "FLOPs": quantity, "time here": duration, "disk": storage}.items():
        frame[name] = [show(value) if value and value == value else "-" for value in frame[name]]
    return frame.to_string(index=False)


def quantity(value: float) -> str:
    """As in 1.6e19."""
    return f"{value:.1e}".replace("e+", "e").replace("e0", "e") if value >= 1e4 else f"{value:.0f}"


def storage(number_of_bytes: float) -> str:
    """Bytes as text: `2.3 GB`, `15 MB`."""
    return f"{number_of_bytes / 1e9:.1f} GB" if number_of_bytes >= 1e9 else f"{number_of_bytes / 1e6:.0f} MB"


def remarks(settings: Settings, data: Amounts, planned: list[Work]) -> list[str]:
    """What the table rests on, and what it leaves out."""
    on_h100 = sum(job.flops for job in planned) / H100 / UTILISATION
    need, free = sum(job.bytes for job in planned), shutil.disk_usage(".").free
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else f"a CPU of {joblib.cpu_count()} cores"
    others = set(pipeline()) - {job.stage for job in planned}
    lines = [
        f"Time here: of what is not done, {workers(settings, '')} at once on {device}, of which nothing else takes a "
        "share; `original` is timed, other operators and testing follow by their operations.",
        "Done: by dvc.lock, or jobs in data/jobs with the settings of today; whether code was edited is not looked at.",
        f"Disk: {storage(need)} for models in {COPIES} copies (data/jobs, output, DVC's cache), without the data; "
        f"{storage(free)} free here.",
        f"Not counted: {', '.join(stage for stage in pipeline() if stage in others)}; probes of noise; of translation "
        "more than runs.",
    ]
    if need > free:
        lines.append("WARNING: the disk does not suffice; name fewer seeds, tasks or steps of convergence.")
    if on_h100 >= WORTH_SAYING:
        lines.append(
            f"One H100: about {duration(on_h100)} for all of it, if it reaches {UTILISATION:.0%} of its "
            f"{H100 / 1e12:.0f} TFLOP/s (bfloat16, dense)."
        )
    if isinstance(settings.workers, str):
        lines.append("workers: a Dask cluster; the times are those of one of its workers: divide them by their number.")
    if not data.sequences:
        lines.append(
            "Until data/tokens is there: the vocabulary is taken to be as large as allowed, validation during "
            "pre-training is not counted, nor is what pretraining.epochs asks for."
        )
    if not made(settings, "tasks"):
        lines.append("Until data/tasks is there: tasks have the published numbers of examples, or as many as allowed.")
    return [f"- {line}" for line in lines]


if __name__ == "__main__":
    with clear_errors():
        main()
