"""Runs the jobs of a stage that trains or tests models, and writes the observations of the stage."""

from collections.abc import Callable, Iterable
from pathlib import Path

from stages.files import observations
from stages.files.observations import Observation
from stages.runner import jobs, results
from stages.runner.job import Run

# what a stage writes and records: observations, and the stage's own entries for its record
Outputs = tuple[Iterable[Observation], dict]


def run(
    function: Callable[[Run, Path], dict],
    plan: list[Run],
    stage: str,
    workers: jobs.Workers,
    outputs: Callable[[list[tuple[Run, Path, dict]]], Outputs],
    whole: bool,
    shared: bool = False,
) -> dict | None:
    """Does the jobs of a stage, writes data/observations/STAGE.csv, and links the results into data/results/STAGE.

    Args:
        function: the job function.
        plan: runs with a property `job`, a Job.
        stage: the stage's name in dvc.yaml.
        workers: see `jobs.Workers`.
        outputs: takes a list of (run, folder of the job, result of the job), in the order of the plan. Writes the
            further outputs of the stage; returns `Outputs`.
        whole: whether the plan is all the work of the stage. For a part, no output is written.
        shared: whether several processes can do a job together.

    Returns:
        The stage's own entries for the record in data/runs; `None` for a part, or if `workers` is a function.
    """
    finished = jobs.run(function, [run.job for run in plan], stage, workers, on_gpu=True, shared=shared)
    if not whole or callable(workers):
        return None
    done = [(run, folder, result) for run, (folder, result) in zip(plan, finished, strict=True)]
    rows, record = outputs(done)
    results.hand_on(stage, {folder: run.job.external_files for run, folder, _ in done})
    observations.write(observations.find_file(stage), rows)
    return record
