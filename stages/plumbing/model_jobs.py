"""Runs the jobs of a stage that measures models, and leaves what it measured."""

from collections.abc import Callable, Iterable
from pathlib import Path

from stages.plumbing import jobs, observations, results
from stages.plumbing.observations import Observation
from stages.plumbing.run import Run


def run(
    function: Callable[[Run, Path], dict],
    plan: list[Run],
    stage: str,
    workers: int | str | None,
    outputs: Callable[[list[tuple[Run, Path, dict]]], tuple[Iterable[Observation], dict]],
    whole: bool,
) -> dict | None:
    """Does the jobs of a plan, writes its observations and hands the results on.

    Args:
        function: as `jobs.run` calls it.
        plan: runs that have a `job`.
        stage: its name in dvc.yaml.
        workers: as `jobs.run` takes them.
        outputs: takes every run with the folder and the result of its job. It writes what the stage leaves beside, and
            returns the observations and what the record in data/runs says beside.
        whole: the plan is all of the stage's. Of a part the jobs alone are done, and nothing is left.

    Returns:
        What the stage's `main` does: the second of `outputs`, and None of a part.
    """
    left = jobs.run(function, [run.job for run in plan], stage, workers, on_gpu=True)
    if not whole:
        return None
    done = [(run, folder, result) for run, (folder, result) in zip(plan, left, strict=True)]
    rows, record = outputs(done)
    results.hand_on(stage, {folder: run.job.places for run, folder, _ in done})
    observations.write(observations.FOLDER / f"{stage}.csv", rows)
    return record
