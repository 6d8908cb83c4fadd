"""Runs the jobs of a stage that trains or tests models, and writes the observations of the stage."""

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
    shared: bool = False,
) -> dict | None:
    """Does the jobs of a plan, writes the observations and hands the results on.

    Args:
        function: the job function, as in `jobs.run`.
        plan: runs with a property `job`, a Job.
        stage: the stage's name in dvc.yaml.
        workers: as in `jobs.run`.
        outputs: takes (run, folder of the job, result of the job) for every run, in the order of the plan. The function
            writes the further outputs of the stage and returns the observations, and the entries that the record of the
            stage has in addition to those that every record has.
        whole: whether the plan is all the work of the stage. Of a part, only the jobs are done: no output is written.
        shared: as in `jobs.run`.

    Returns:
        The entries for the record of the stage; `None` for a part.

    Raises:
        RuntimeError, FileNotFoundError, ValueError: as in `jobs.run`; ValueError also if a value is not finite.
    """
    plan_jobs = [run.job for run in plan]
    left = jobs.run(function, plan_jobs, stage, workers, on_gpu=True, shared=shared)
    if not whole:
        return None
    done = [(run, folder, result) for run, (folder, result) in zip(plan, left, strict=True)]
    rows, record = outputs(done)
    kept_elsewhere = {folder: job.published for job, (folder, _) in zip(plan_jobs, left, strict=True)}
    results.hand_on(stage, kept_elsewhere)
    observations.write(observations.FOLDER / f"{stage}.csv", rows)
    return record
