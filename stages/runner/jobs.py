"""Runs a list of independent jobs on all cores or GPUs of a machine, or on a Dask cluster, each at most once.

A job function takes a job's argument and the job's own folder, and returns JSON. A finished job leaves `result.json` in
data/jobs/FUNCTION/FINGERPRINT/, where any stage finds the result. The fingerprint (fingerprints.py) covers everything
that decides the result, so a killed or edited stage computes only missing or changed jobs. A finished job is checked
before use (results.py); a damaged job is computed again. A running job holds the lock of the folder, and may keep a
checkpoint there. data/jobs can be deleted at any time.

When a worker of a Dask cluster dies, other workers do the unfinished jobs again. With torchrun or accelerate, several
processes share every job, one process per GPU. The first process writes, to a folder that all of the processes see.
"""

import inspect
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import joblib
from filelock import Timeout

from stages.files.paths import RESULTS
from stages.files.quoting import show_controls
from stages.files.storage import acquire_lock, delete_path, read_states
from stages.runner import cluster, fingerprints, gpus, pool, results, worker
from stages.runner.bars import Bar
from stages.runner.job import Job
from stages.runner.processes import count_processes, find_rank

FOLDER = Path("data/jobs")

# Folder and result of every job.
Results = list[tuple[Path, dict]]
# Number of processes, None for a process per core, or the address of a Dask scheduler; or a function of the arguments
# `function`, `jobs` and `stage` of `run`, which takes the place of `run`.
Workers = int | str | Callable[..., Results] | None

# Seconds of the jobs that this process's stage has computed itself, by the folder of the job.
SECONDS: dict[Path, float] = {}


def run(
    function: Callable[[Any, Path], dict],
    jobs: list[Job],
    stage: str,
    workers: Workers = None,
    on_gpu: bool = False,
    shared: bool = False,
    root: Path = FOLDER,
) -> Results:
    """Calls `function(argument, folder)` for every job that has no result yet; the largest jobs start first.

    Every worker computes with one thread, so a result does not depend on the number of workers.

    Args:
        function: the job function. Heavy libraries are imported in the function's body, only in workers.
        jobs: independent jobs.
        stage: the name for progress and errors.
        workers: see `Workers`.
        on_gpu: whether the jobs compute on a GPU, if the machine has any. `workers` `None` then means a process per
            GPU.
        shared: whether several processes (torchrun, accelerate) can do a job together.
        root: the folder of all jobs.

    Returns:
        (folder, result) of every job, in order. Of several processes, only the first returns; the rest exit.

    Raises:
        RuntimeError: jobs have failed; other jobs finish before.
        ValueError: the jobs cannot be shared by processes, or the cluster or a GPU cannot be used.
        FileNotFoundError: an input of a job is missing.
    """
    if callable(workers):
        return workers(function, jobs, stage)
    if count_processes() > 1 and not shared:
        raise ValueError(
            f"{stage}: {count_processes()} processes (WORLD_SIZE) cannot share the jobs; run the stage without "
            "torchrun or accelerate, or run `unset WORLD_SIZE RANK` first"
        )
    identity = fingerprints.describe_identity(function)
    # sizes and times, read before the digests of the files, so that workers notice a file that changes later
    inputs = {path for job in jobs for path in job.inputs}
    states = {path: read_states(path) for path in inputs}
    folders = find_folders(function, identity, jobs, root)
    records: list[Any] = _recover_finished(jobs, folders, stage)
    # the indices of the jobs that have no result yet
    missing = [number for number, record in enumerate(records) if record is None]
    missing.sort(key=lambda number: _estimate_work(jobs[number], states), reverse=True)
    work = [(jobs[number], folders[number]) for number in missing]
    outcomes = _compute_jobs(function, identity, states, work, workers, on_gpu)
    _await_outcomes(outcomes, stage, len(jobs), len(jobs) - len(missing))
    # only the first of several processes writes outputs
    if find_rank():
        print(
            f"{stage}: process {find_rank()} of {count_processes()} (RANK, WORLD_SIZE) ends; "
            "process 0 writes the outputs"
        )
        raise SystemExit

    for number in missing:
        records[number] = results.read(folders[number])
        if records[number] is None:
            raise RuntimeError(f"{folders[number]}: deleted while the stage ran; run the same command again")
        # the record of the stage (data/runs) has the sum
        SECONDS[folders[number]] = records[number]["seconds"]
    return [(folder, record["result"]) for folder, record in zip(folders, records, strict=True)]


def find_folders(function: Callable, identity: list, jobs: list[Job], root: Path = FOLDER) -> list[Path]:
    """Finds the folder of every job, whether or not the job is finished; FileNotFoundError names a missing input.

    `identity` describes the code and libraries of `function` (fingerprints.describe_identity).
    """
    names = fingerprints.compute_fingerprints(identity, jobs)
    return [root / function.__name__ / name for name in names]


def prepare_server(stage: Path, workers: Workers) -> None:
    """Starts the server from which workers are forked, if the stage in file `stage` needs the server."""
    # Called early, so that the server imports the modules of jobs while the stage still loads. A stage without jobs
    # imports neither module. Workers on a cluster (`workers` is an address), of torchrun, or on GPUs are not forked.
    runs_jobs = {"stages.runner.jobs", "stages.runner.model_jobs"}.intersection(fingerprints.list_imports(stage))
    if runs_jobs and count_processes() == 1 and not isinstance(workers, str) and not gpus.list_visible_gpus():
        pool.begin_server(fingerprints.list_modules(stage))


def _estimate_work(job: Job, states: dict[Path, dict]) -> float:
    sizes = [size for path in job.inputs for size, _ in states[path].values()]
    return job.work * (1 + sum(sizes))


def _await_outcomes(outcomes: Iterator[pool.Outcome], stage: str, total: int, done: int) -> None:
    """Shows the progress of `total` jobs, of which `done` are finished, until all have ended."""
    if find_rank() == 0:
        plural = "" if total == 1 else "s"
        print(f"{stage}: {total} job{plural}, {done} of them done before", flush=True)
    # error -> names of failed jobs, because jobs that read the same file fail for the same reason
    failures = defaultdict(list)
    with Bar(total=total, initial=done, desc=stage, unit="job") as bar:
        for name, error in outcomes:
            bar.update()
            bar.set_postfix_str(show_controls(name))
            if error:
                failures[error].append(name)
            else:
                done += 1
    if failures:
        failed = sum(map(len, failures.values()))
        message = f"{stage}: {failed} of {total} jobs failed; {done} are done and kept."
        for error, names in failures.items():
            message += f"\n{', '.join(names)}\n{error}"
        raise RuntimeError(message)


def _recover_finished(jobs: list[Job], folders: list[Path], stage: str) -> list[dict | None]:
    """Reads the record of every finished job, `None` for other jobs; restores folders, and deletes damaged jobs."""

    def read_job(job: Job, folder: Path) -> dict | None:
        try:
            # not under torchrun: while one process restored the folder, other processes would see only some files
            if count_processes() == 1:
                restore(job, folder)
            return results.read_finished(folder, job.required)
        except ValueError as error:
            # of several processes, only the first deletes
            if find_rank():
                return None
            return _delete_damaged(job, folder, f"{stage}: {error}; {job.name} is computed again")

    # threads, because checksums take most of the time, and hashlib lets other threads run
    with ThreadPoolExecutor() as threads:
        return list(threads.map(read_job, jobs, folders))


def restore(job: Job, folder: Path) -> None:
    """Restores the folder of a job from data/results, unless it has a result or another process works on it."""
    if RESULTS.exists() and not (folder / results.RESULT).exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with suppress(Timeout), acquire_lock(folder.with_suffix(".lock"), wait=False):
            results.bring_back(folder, job.external_files)


def _delete_damaged(job: Job, folder: Path, message: str) -> dict | None:
    """Deletes a damaged job with a message; returns the record if another process has completed the job meanwhile."""
    # if another process holds the lock (Timeout), nothing is deleted: that process computes the job
    with suppress(Timeout), acquire_lock(folder.with_suffix(".lock"), wait=False):
        with suppress(ValueError):
            if results.read(folder):
                return results.read_finished(folder, job.required)
        # The whole folder goes: the checkpoint may be damaged, too, and the files must not be overwritten in place,
        # because outputs of stages are hard links to the files.
        print(show_controls(message), flush=True)
        delete_path(folder)
    return None


def _compute_jobs(
    function: Callable,
    identity: list,
    states: dict[Path, dict],
    work: list[tuple[Job, Path]],
    workers: Workers,
    on_gpu: bool,
) -> Iterator[pool.Outcome]:
    """Computes `work`, (job, folder) pairs; yields (name of a job, text of the error or `None`) as jobs end."""
    if not work:
        return
    on_cluster = isinstance(workers, str)
    # the GPUs to choose from, () for no GPU; None: a worker of the cluster looks for GPUs on its own machine
    devices = ()
    # torchrun has given every process its GPU already
    if on_gpu and count_processes() == 1:
        devices = None if on_cluster else gpus.list_visible_gpus()
    calls = []
    for job, folder in work:
        # the worker refuses a job if the code (`identity`) or the size or time of an input has changed
        inputs = {path: states[path] for path in job.inputs}
        calls.append((job.name, (function, job, folder.resolve(), Path.cwd(), devices, identity, inputs)))

    if count_processes() > 1:
        for name, arguments in calls:
            error = worker.do_job(*arguments)
            yield name, error
            # if this process began a further job, the other processes would wait for this process in this job forever
            if error:
                return
    elif on_cluster:
        yield from cluster.run_on_cluster(worker.do_job, calls, workers)
    else:
        number = workers or len(devices) or joblib.cpu_count()
        # a server imports these modules for all workers; without them, every worker imports for itself, because a
        # worker must choose its GPU before it imports a library that occupies a GPU
        modules = None if devices else fingerprints.list_modules(Path(inspect.getfile(function)))
        yield from pool.run_in_processes(worker.do_job, calls, min(number, len(work)), modules)
