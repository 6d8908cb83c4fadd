"""Runs the jobs of a stage that measures models, and leaves what it measured."""

from collections.abc import Callable, Iterable
from pathlib import Path

from stages.files import observations
from stages.files.observations import Observation
from stages.runner import jobs, results
from stages.runner.run import Run


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
        function, workers: as in `jobs.run`.
        plan, stage: runs with a property `job`, a Job; the stage's name in dvc.yaml.
        outputs: takes (run, folder of its job, result of its job) for every run, in the order of the plan. It writes
            the further outputs of the stage, and returns the observations and what the record in data/runs is to hold
            in addition to what every record holds.
        whole: whether the plan is all that the stage does. Of a part only the jobs are done, and no output is written.

    Returns:
        What the stage's `main` returns: the second of what `outputs` returns; None for a part.

    Raises:
        RuntimeError, FileNotFoundError, ValueError: as in `jobs.run`; ValueError also where a value is not finite.
    """
    left = jobs.run(function, [run.job for run in plan], stage, workers, on_gpu=True)
    if not whole:
        return None
    done = [(run, folder, result) for run, (folder, result) in zip(plan, left, strict=True)]
    rows, record = outputs(done)
    results.hand_on(stage, {folder: run.job.places for run, folder, _ in done})
    observations.write(observations.FOLDER / f"{stage}.csv", rows)
    return record
