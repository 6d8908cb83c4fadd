"""Says what `dvc repro` will take, before anyone starts it: runs, tokens, operations, time here and disk, by stage.

Reads params.yaml, data/published and, of what an earlier run has made of the same settings, dvc.lock, data/tokens and
data/tasks. Times a few steps on this machine. Prints a table and leaves the seconds of the commands that it can time
in data/plan.json, by which `dvc repro` says how long it still takes.
"""

import argparse
import math
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

import joblib
import torch
import yaml

from stages.common.sequences import packing
from stages.common.training.machine import clocked
from stages.plumbing import done, jobs
from stages.plumbing.command import clear_errors
from stages.plumbing.handover import pipeline
from stages.plumbing.progress import duration, write_plan
from stages.plumbing.settings import Settings, load_settings
from stages.tokenization import streams as tokens
from stages.tools.planner import amounts, costs, pace, work
from stages.tools.planner.amounts import Amounts
from stages.tools.planner.costs import quantity, storage
from stages.tools.planner.work import COPIES, Work

HUB_SCALES = ("courtois", "kowsher")  # whose report is to stand beside the papers
STARTED = (  # a stage; workers
    "stages.__main__, stages.plumbing.handover, stages.plumbing.observations, stages.plumbing.progress",
    "stages.pretraining.loop",
)
BUSY = 0.9  # share of the cores below which the timing is said to be disturbed
DOCUMENTS = 1000  # embedded ones that the stages of data are timed on, at most
HEADER = ("stage", "size", "done", "runs", "tokens", "FLOPs", "time here", "disk")


@dataclass(frozen=True)
class Measured:
    """Seconds by (size, recipe, "training" or "evaluation": of an operation, "load": of a run's making its model); that
    a stage takes to start; that its workers take, where they train or test. share: of the cores that the timing got."""

    seconds: dict[tuple[str, str, str], float]
    start: float
    workers: float
    share: float


@dataclass(frozen=True)
class Row:
    """One line of the table; None where a number is not known, or not counted. done: commands, of all. seconds: of the
    commands that are still to be done; of_each: of every command, done or not, by its name."""

    stage: str
    size: str
    done: str = "-"
    runs: int | None = None
    tokens: float | None = None
    flops: float | None = None
    seconds: float | None = None
    bytes: float | None = None
    of_each: dict[str, float] = field(default_factory=dict)


def main() -> None:
    argparse.ArgumentParser(
        prog="python -m stages.tools.planner", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    settings = load_settings()
    known = amounts.of(settings)
    planned, workers = work.planned(settings, known), at_once(settings)
    print("\n".join([f"scale {settings.scale}", "", *at_first(planned)]), flush=True)
    measured = measure(settings, known, planned, workers)
    rows = [*data_rows(settings, known, workers, measured.start), *training_rows(settings, planned, measured, workers)]
    write_plan(sum((Counter(row.of_each) for row in rows), Counter()))
    print("\n".join(["", *table(rows), "", *remarks(settings, known, rows, workers, measured.share)]))
    if settings.scale in HUB_SCALES:
        protocol = yaml.safe_load(amounts.PROTOCOL.read_text())
        print("\n".join(["", *costs.courtois(protocol), *costs.kowsher(protocol)]))


def at_first(planned: list[Work]) -> list[str]:
    """What is known before anything is timed."""
    flops, recipes = sum(each.flops or 0 for each in planned), {(each.size, each.recipe) for each in planned}
    return [
        f"{sum(each.runs for each in planned)} runs of {quantity(flops)} FLOPs: on one H100 about "
        f"{duration(costs.on_h100(flops))}.",
        f"Timing {len(recipes)} recipes on this machine; a step of BERT-base takes a CPU some seconds.",
    ]


def at_once(settings: Settings) -> int:
    """Jobs that run at the same time; 1 for a Dask cluster, whose size is known when it is there."""
    if isinstance(settings.workers, str):
        return 1
    return settings.workers or torch.cuda.device_count() or joblib.cpu_count()


def measure(settings: Settings, known: Amounts, planned: list[Work], workers: int) -> Measured:
    """Times every recipe at every size, by as many workers at once as will share its runs."""
    imports = [[sys.executable, "-c", f"import {names}"] for names in STARTED]
    starts = [clocked(partial(subprocess.run, arguments, check=True)) for arguments in imports]
    work_of, keys, timings = {}, [], []
    for each in planned:
        if each.flops:
            work_of.setdefault((each.size, each.recipe), each)
    for (size, recipe), each in work_of.items():
        for copy in range(max(1, min(workers, each.runs // each.commands))):
            what = timing_of(settings, known, each) | {"copy": copy}
            keys.append((size, recipe))
            timings.append(jobs.Job(f"{recipe} of {size}", what, ()))
    folder = jobs.FOLDER / "plan"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        results = [result for _, result in jobs.run(pace.timed, timings, "plan", settings.workers, on_gpu=True)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    seconds = {
        (*key, name): fmean(result[name] for other, result in zip(keys, results, strict=True) if other == key)
        for key in work_of
        for name in ("training", "evaluation", "load")
    }
    return Measured(seconds, *starts, fmean(result["share"] for result in results))


def timing_of(settings: Settings, known: Amounts, each: Work) -> dict:
    """What pace.timed takes."""
    section = settings
    for name in each.recipe.split("."):
        section = section[name] if isinstance(section, dict) else getattr(section, name)
    return {
        "size": settings.models[each.size].model_dump(),
        "training": section.model_dump(mode="json"),
        "vocabulary_size": known.vocabulary_size,
        "length": each.length,
        "masked": settings.pretraining.mask_probability if each.recipe == "pretraining" else 0.0,
    }


def training_rows(settings: Settings, planned: list[Work], measured: Measured, workers: int) -> list[Row]:
    """One row a stage and size. Its time is that of the commands that are still to be done."""
    rows = []
    for stage, size in dict.fromkeys((each.stage, each.size) for each in planned):
        here = [each for each in planned if (each.stage, each.size) == (stage, size)]
        recipes = dict.fromkeys(each.recipe for each in here)
        names = done.commands(settings, stage, size)
        left = len(names) - len(done.made(settings, *names))
        groups = [[each for each in here if each.recipe == recipe] for recipe in recipes]
        seconds = total(seconds_of(group, measured, workers) for group in groups)
        rows.append(
            Row(
                stage,
                size,
                runs=sum(each.runs for each in here),
                tokens=total(each.tokens for each in here),
                flops=total(each.flops for each in here),
                done=f"{len(names) - left}/{len(names)}",
                seconds=seconds and seconds * left / len(names),
                bytes=sum(each.bytes for each in here),
                of_each=dict.fromkeys(names, seconds / len(names)) if seconds else {},
            )
        )
    return rows


def seconds_of(group: list[Work], measured: Measured, workers: int) -> float | None:
    """Of all commands of a stage at one size by one recipe, one after the other; runs go in rounds of `workers`."""
    if any(each.flops is None for each in group):
        return None
    runs, commands = sum(each.runs for each in group), group[0].commands
    if not runs:  # all of them are another stage's
        return commands * measured.start
    computing = 0.0
    for each in group:
        kind = "evaluation" if each.kind == "evaluation" else "training"
        key = each.size, each.recipe
        computing += each.flops * measured.seconds[*key, kind] + each.runs * measured.seconds[*key, "load"]
    share = runs / commands
    return computing / share * math.ceil(share / workers) + commands * (measured.start + measured.workers)


def data_rows(settings: Settings, known: Amounts, workers: int, start: float) -> list[Row]:
    """The stages before training; their time is known for embedded documents alone."""
    sequences = [known.sequences[split] for split in tokens.SPLITS]
    words = total(None if n is None else n * settings.tokenization.sequence_length for n in sequences)
    disk = None if words is None else words * packing.ITEM.itemsize * COPIES
    if settings.data.source != "embedded":
        return [Row("corpus", "-"), Row("filtering", "-"), Row("tokenization", "-", tokens=words, bytes=disk)]
    documents = min(settings.corpus.documents, DOCUMENTS)
    with TemporaryDirectory() as folder:
        seconds, sizes = pace.sampled(settings, Path(folder), documents)
    times = settings.corpus.documents / documents
    shared = min(workers, settings.corpus.shards)
    took = {
        "corpus": start + seconds[0] * times,
        "filtering": start + seconds[1] * times / shared,
        "tokenization": start + seconds[2] * times / shared,
    }
    left = {"corpus": COPIES * sizes[0] * times, "filtering": COPIES * sizes[1] * times, "tokenization": disk}
    tokens_of = {"tokenization": words}
    made = done.made(settings, *took)
    return [
        Row(
            name,
            "-",
            done=f"{int(name in made)}/1",
            tokens=tokens_of.get(name),
            seconds=0.0 if name in made else value,
            bytes=left[name],
            of_each={name: value},
        )
        for name, value in took.items()
    ]


def table(rows: list[Row]) -> list[str]:
    """The rows and their sums as lines of equal columns."""
    sums = {name: sum(getattr(row, name) or 0 for row in rows) for name in ("runs", "flops", "seconds", "bytes")}
    lines = [HEADER, *(cells(row) for row in rows), cells(Row("all", "", "", **sums))]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligns = [str.ljust] * 3 + [str.rjust] * (len(HEADER) - 3)
    aligned = [
        "  ".join(align(cell, width) for align, cell, width in zip(aligns, line, widths, strict=True)) for line in lines
    ]
    return [aligned[0], "-" * len(aligned[0]), *aligned[1:]]


def cells(row: Row) -> tuple[str, ...]:
    """The numbers of a row as text; a dash for what is not known."""
    values = (
        (row.runs, str),
        (row.tokens, quantity),
        (row.flops, quantity),
        (row.seconds, duration),
        (row.bytes, storage),
    )
    return (row.stage, row.size, row.done, *("-" if value is None else show(value) for value, show in values))


def remarks(settings: Settings, known: Amounts, rows: list[Row], workers: int, share: float) -> list[str]:
    """What the table rests on, and what it leaves out. share: of the cores that the timing got."""
    flops, need = sum(row.flops or 0 for row in rows), sum(row.bytes or 0 for row in rows)
    free = shutil.disk_usage(".").free
    counted = {row.stage for row in rows}
    others = [stage for stage in pipeline() if stage not in counted]
    tables = [name for name in (*known.lengths, *known.questions) if name not in known.counted]
    lines = [
        f"One H100: {duration(costs.on_h100(flops))} of training and testing, an estimate: {costs.H100 / 1e12:.0f} "
        f"TFLOP/s (bfloat16, dense), of which {costs.UTILISATION:.0%} assumed reached.",
        f"Disk: {storage(need)} needed, in {COPIES} copies (data/jobs, output, DVC's cache); {storage(free)} free here."
        + (" WARNING: that is not enough; name fewer seeds, tasks or steps of convergence." if need > free else ""),
        f"Time here: {workers} at once, on {described()}; `original` timed, other operators by their FLOPs. Commands "
        "that dvc.lock has with these parameters are taken as done.",
    ]
    if share < BUSY:
        idle = duration(share * sum(row.seconds or 0 for row in rows))
        lines.append(f"Timed while other processes took {1 - share:.0%} of the cores: on an idle machine about {idle}.")
    if isinstance(settings.workers, str):
        lines.append("workers: a Dask cluster; the times are those of one of its workers: divide them by their number.")
    lines.append("Of translation, runs are counted, but not their operations, time and disk.")
    uncounted = [row for row in rows if row.runs and row.flops is None and row.stage != "translation"]
    if unknown := [f"{row.stage} of {row.size}" for row in uncounted]:
        lines.append(
            f"Unknown until data/tokens is there, as pretraining.epochs counts it: {', '.join(unknown)}; not in sums."
        )
    if known.sequences["validation"] is None:
        lines.append("The validation documents' length is unknown: validation during pre-training is not counted.")
    if tables:
        lines.append(f"Published sizes and mean lengths (no data here yet): {', '.join(tables)}.")
    if settings.data.source != "embedded":
        lines.append("corpus, filtering and tokenization: bound by reading, time not counted; data/corpus not in disk.")
    lines.append(f"Not counted: {', '.join(others)}; probes of noise; text that is tokenised; what DVC checks.")
    return [f"- {line}" for line in lines]


def described() -> str:
    """The device."""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else f"a CPU of {joblib.cpu_count()} cores"


def total(values: Iterable[float | None]) -> float | None:
    """Their sum; None where one is unknown."""
    values = list(values)
    return None if None in values else sum(values)


if __name__ == "__main__":
    with clear_errors():
        main()
