"""Runs a list of independent jobs on all cores or GPUs of a machine, or on a Dask cluster, each at most once.

A job function takes a job's settings and the job's own folder, and returns JSON. A finished job leaves `result.json` in
data/jobs/FUNCTION/FINGERPRINT/, where any stage finds it. The fingerprint covers everything that decides the result
(fingerprints.py), so a killed or edited stage computes only what is missing or has changed. What a job has left is
checked before it is used (results.py), and computed again where it is damaged. A job at work holds the lock of its
folder; it may keep checkpoints there and go on from them. data/jobs can be deleted at any time.

A cluster (extra `cluster`): `dask scheduler`, and on every machine `dask worker tcp://HOST:8786 --nthreads 1
--nworkers N`, in an environment where this repository is installed, with its folder under the same path (a shared
file system). When a worker dies, others do its unfinished jobs again.

Several processes can instead share every job, one process per GPU, on one machine or more: `torchrun --nproc-per-node N
-m stages pretraining ...`, or `accelerate launch`. They do the jobs one after another, and the first of the processes
writes, to a folder that all of them see.
"""

import ctypes
import gc
import inspect
import os
import shutil
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import joblib
from filelock import FileLock, Timeout
from safetensors import SafetensorError

from stages.files.paths import RESULTS
from stages.runner import fingerprints, gpus, pool, results
from stages.runner.bars import Bar
from stages.runner.errors import message
from stages.runner.run import Job

FOLDER = Path("data/jobs")
# Errors that a user can mend, shown without a traceback. Writing weights to a full disk raises a SafetensorError.
MENDABLE = (ValueError, OSError, MemoryError, SafetensorError)


def run(
    function: Callable[[Any, Path], dict],
    jobs: list[Job],
    stage: str,
    workers: int | str | None = None,
    on_gpu: bool = False,
    shared: bool = False,
) -> list[tuple[Path, dict]]:
    """Calls `function(settings, folder)` for every job that has no result yet.

    Every worker computes with one thread, so a result does not depend on how many workers there are.

    Args:
        function: the job function: takes the settings and the folder of a job, and returns JSON. It imports heavy
            libraries in its own body, so that only the workers load them.
        jobs, stage: independent jobs, and the name under which their progress and errors are printed.
        workers: number of processes at a time; None for one per core; the address of a Dask scheduler for its workers.
        on_gpu: whether the jobs compute on a GPU where there is one. With `workers` None there is then one process per
            GPU; more processes than GPUs share them.
        shared: whether several processes (torchrun, accelerate) can do one job together.

    Returns:
        (folder, result) of every job, in order. Of several processes, only the first returns; the others exit.

    Raises:
        RuntimeError: jobs have failed; raised with all failures after the other jobs are done, in several processes at
            the first failure. Or the folder of a job was deleted meanwhile.
        ValueError: several processes were started for jobs that cannot be shared; the Dask cluster cannot be used
            (`pool.on_cluster`); or a worker may not lock a GPU (`gpus.take`).
        FileNotFoundError: an input of a job is missing.
    """
    if processes() > 1 and not shared:
        raise ValueError(f"{stage}: several processes cannot share its jobs; run it without torchrun or accelerate")
    prints = fingerprints.of_jobs(function, [(job.content, job.inputs) for job in jobs])
    folders = [FOLDER / function.__name__ / fingerprint for fingerprint in prints]
    outcomes = _finished_results(jobs, folders, stage)
    missing = [i for i, result in enumerate(outcomes) if result is None]
    failures, done = [], len(jobs) - len(missing)
    if rank() == 0:
        print(f"{stage}: {len(jobs)} job{'s' * (len(jobs) != 1)}, {done} of them done before", flush=True)
    with Bar(total=len(jobs), initial=done, desc=stage, unit="job", silent=rank() > 0) as bar:
        for name, error in _compute(function, [(jobs[i], folders[i]) for i in missing], workers, on_gpu):
            bar.update()
            bar.set_postfix_str(name)
            if error:
                failures.append(f"{name}\n{error}")
            else:
                done += 1
    if failures:
        raise RuntimeError(
            f"{stage}: {len(failures)} of {len(jobs)} jobs failed; {done} are done and kept.\n" + "\n".join(failures)
        )
    if rank():
        raise SystemExit  # the first process goes on alone
    for i in missing:
        outcomes[i] = results.read(folders[i])
        if outcomes[i] is None:
            raise RuntimeError(f"{folders[i]}: deleted while the stage ran; run the same command again")
    return list(zip(folders, outcomes, strict=True))


def prepare(stage: Path, workers: int | str | None) -> None:
    """Has the server of processes (pool.py) import what the jobs of a stage import, while the stage itself still loads.

    This takes longer than all that a stage does before its jobs, so both are done at once. Whether there are jobs to
    compute is not known yet: where there are none, the server ends with the stage. Nothing is done where `run` may need
    no server: on a cluster (workers: as in `run`), in one of several processes, or with a GPU. Where the stage's file,
    `stage`, has neither `jobs.run(` nor `model_jobs.run(` in its own text, the server starts later, with the first job.
    """
    runs_jobs = "jobs.run(" in stage.read_text(encoding="utf-8")  # the end of both names
    if runs_jobs and processes() == 1 and not isinstance(workers, str) and not gpus.visible():
        pool.begin_server(fingerprints.modules(stage))


def _finished_results(jobs: list[Job], folders: list[Path], stage: str) -> list[dict | None]:
    """Returns the result of every finished job and None for every other, in order.

    A damaged job is reported and its folder deleted, so that it begins anew: its checkpoint is no safer than the rest,
    and files to which stages hold hard links must not be overwritten in place.
    """

    def result_of(job: Job, folder: Path) -> dict | None:
        try:
            # a job that is missing is restored from data/results, unless another stage computes (locks) it
            if RESULTS.exists() and not rank() and not (folder / results.RESULT).exists():
                folder.parent.mkdir(parents=True, exist_ok=True)
                with suppress(Timeout), FileLock(folder.with_suffix(".lock"), blocking=False):
                    results.bring_back(folder, job.places)
            return _finished(job, folder)
        except ValueError as error:
            if rank() == 0:
                print(f"{stage}: {error}; {job.name} is computed again", flush=True)
                shutil.rmtree(folder)
            return None

    with ThreadPoolExecutor() as threads:  # checksums take the time, and leave other threads free
        return list(threads.map(result_of, jobs, folders))


def _finished(job: Job, folder: Path) -> dict | None:
    """The result of a job; None where the job is not finished, or one of the files that it must leave is missing."""
    result = results.read(folder)
    return result if all((folder / name).exists() for name in job.leaves) else None


def rank() -> int:
    """The number of this process among all `processes()`, from 0; 0 also without torchrun or accelerate."""
    return int(os.environ.get("RANK", 0))


def processes() -> int:
    """How many processes `torchrun` or `accelerate launch` started to share every job; 1 without them."""
    return int(os.environ.get("WORLD_SIZE", 1))


def _compute(function: Callable, work: list[tuple[Job, Path]], workers: int | str | None, on_gpu: bool):
    """Does jobs in their folders, as `run` is told; yields (name, error's text or None) as they end, in any order."""
    if not work:
        return
    on_cluster = isinstance(workers, str)
    # (): no GPU, or none to choose, as the launcher has; None: every worker of a cluster looks for its own
    devices = () if processes() > 1 or not on_gpu else None if on_cluster else gpus.visible()
    identity = fingerprints.identity(function) if on_cluster else None
    calls = [(job.name, (function, job, folder.resolve(), Path.cwd(), devices, identity)) for job, folder in work]
    if processes() > 1:
        for name, arguments in calls:
            yield name, (error := _one(*arguments))
            if error:  # in a further job, the other processes would wait for this one
                return
    elif on_cluster:
        yield from pool.on_cluster(_one, calls, workers)
    else:
        number = min(workers or len(devices) or joblib.cpu_count(), len(work))
        # a worker must choose its GPU before it imports what asks for one
        modules = None if devices else fingerprints.modules(Path(inspect.getfile(function)))
        yield from pool.in_processes(_one, calls, number, modules)


def _one(
    function: Callable,
    job: Job,
    folder: Path,
    directory: Path,
    devices: tuple[str, ...] | None,
    identity: list | None,
) -> str | None:
    """Does one job in a worker process, unless another has done it; returns the text of an error, None if it is done.

    Args:
        function, job, folder: the job function, the job to do, and the job's folder as an absolute path.
        directory: the working directory of the stage, to which all relative paths refer.
        devices: GPUs of which the worker takes one; empty for none; None where it is to look for those of its machine.
        identity: `fingerprints.identity` of the function where the jobs were planned, for a worker of a cluster, which
            may have loaded other code long before; None for a worker that this stage has started.
    """
    if identity is not None and identity != fingerprints.identity(function, as_loaded=True):
        found = "its worker has loaded other code, or has other versions of libraries, than this checkout"
        return f"  {found}; restart the worker"
    os.chdir(directory)  # workers of a cluster were started elsewhere
    pool.use_one_thread()
    devices = gpus.visible() if devices is None else devices
    if devices:
        gpus.take(devices)  # its error is raised, not returned: the job has not begun
    folder.mkdir(parents=True, exist_ok=True)
    try:
        # another stage that is at the job is waited for; of several processes that share it, the first has the lock
        with nullcontext() if rank() else FileLock(folder.with_suffix(".lock")):
            if _finished(job, folder) is None:
                result = function(job.settings, folder)
                if not rank():
                    results.write(folder, job.name, job.content, result)
    except Exception as error:  # `run` reports it with all others: without a traceback where a user can mend it
        text = message(error)  # which appends a remedy to what it knows one for
        return f"  {text}" if isinstance(error, MENDABLE) or text != str(error) else traceback.format_exc()
    finally:  # a cluster takes a worker whose memory grows to be leaking, and replaces it
        gc.collect()  # models refer to themselves in cycles
        gc.freeze()  # what survives, libraries above all, later collections need not look at again
        if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "malloc_trim"):
            library.malloc_trim(0)  # the C library keeps freed memory
