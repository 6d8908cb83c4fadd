"""Runs a list of independent jobs on all cores of a machine, or of a Dask cluster, each at most once.

A finished job leaves `result.json` in data/jobs/STAGE/FINGERPRINT/. The fingerprint covers the job's settings, its
input files and the source code that computes it, so a killed or edited stage redoes only what changed. The folder is
the job's own: it may keep checkpoints there and go on from them. data/jobs can be deleted at any time.

A cluster (extra `cluster`): `dask scheduler`, and on every machine `dask worker tcp://HOST:8786 --nthreads 1
--nworkers N`, in an environment where this repository is installed, with its folder under the same path (a shared
file system). When a worker dies, others redo what it was at.

Several processes can share every job instead, one a GPU, on one machine or more: `torchrun --nproc-per-node N -m
stages.pretraining ...`, or `accelerate launch`. They run the jobs one after another, and the first of them writes, to a
folder that all of them see.
"""

import ctypes
import gc
import hashlib
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path

import joblib
from tqdm import tqdm

from stages.files import sha256, write_atomically

FOLDER = Path("data/jobs")
CONNECTION_SECONDS = 30


@dataclass(frozen=True)
class Job:
    """name: what progress and errors call it. settings: JSON; all that decides the result beside the inputs.

    inputs: files and folders whose content decides the result, the job's source code among them.
    """

    name: str
    settings: dict
    inputs: tuple[Path, ...]


def run(
    function: Callable[[dict, Path], dict],
    jobs: list[Job],
    stage: str,
    workers: int | str | None = None,
    on_gpu: bool = False,
) -> list[tuple[Path, dict]]:
    """Calls `function(settings, folder)` for every job that has no result yet; gives (folder, result) for all.

    `function` returns JSON; it imports heavy libraries in its own body, so that only the workers pay for them. Every
    worker computes with one thread, so a result does not depend on how many run beside it. workers: their number; None
    takes every core; the address of a Dask scheduler, all that it has. on_gpu: the jobs compute on a GPU where there is
    one; None then takes every GPU, and more workers than GPUs share them.
    RuntimeError when jobs fail: raised at the end, with all failures, after the others are done.
    """
    fingerprints = _fingerprints(function, jobs)
    folders = [FOLDER / stage / fingerprint for fingerprint in fingerprints]
    missing = [i for i, folder in enumerate(folders) if not (folder / "result.json").exists()]
    print(f"{stage}: {len(jobs)} jobs, {len(jobs) - len(missing)} of them done before", flush=True)
    silent = bool(rank()) or None  # None: where there is no terminal
    with tqdm(total=len(jobs), initial=len(jobs) - len(missing), desc=stage, unit="job", disable=silent) as bar:
        failures = []
        for name, error in _compute(function, [(jobs[i], folders[i]) for i in missing], workers, on_gpu):
            bar.update()
            bar.set_postfix_str(name)
            if error:
                failures.append(f"{name}\n{error}")
    if failures:
        raise RuntimeError(
            f"{stage}: {len(failures)} of {len(jobs)} jobs failed; the others are done and kept.\n"
            + "\n".join(failures)
        )
    if rank():
        raise SystemExit  # the first process goes on alone
    return [(folder, json.loads((folder / "result.json").read_text())) for folder in folders]


def rank() -> int:
    """Which of `processes()` this one is, from 0."""
    return int(os.environ.get("RANK", 0))


def processes() -> int:
    """How many processes `torchrun` or `accelerate launch` started to share every job; 1 without them."""
    return int(os.environ.get("WORLD_SIZE", 1))


def _compute(function: Callable, work: list[tuple[Job, Path]], workers: int | str | None, on_gpu: bool):
    """Yields (name, error or None) as jobs end, in any order."""
    if not work:
        return
    gpus = _gpus() if on_gpu else ()
    if on_gpu and isinstance(workers, str):
        gpus = None  # every worker looks on its own machine
    calls = [(function, job, folder.resolve(), Path.cwd(), gpus) for job, folder in work]
    if processes() > 1:
        yield from _compute_together(calls)
        return
    if isinstance(workers, str):
        yield from _compute_on_cluster(calls, workers)
        return
    number = min(workers or len(gpus) or joblib.cpu_count(), len(work))
    with joblib.parallel_config(backend="loky", n_jobs=number, inner_max_num_threads=1):
        parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1)
        yield from parallel(joblib.delayed(_one)(*call) for call in calls)


def _compute_together(calls: list[tuple]):
    """As `_compute`, every job by all processes; ends at the first failure, for which the others would wait."""
    for function, job, folder, directory, _ in calls:
        name, error = _one(function, job, folder, directory)
        yield name, error
        if error:
            return


def _gpus() -> tuple[str, ...]:
    """What CUDA_VISIBLE_DEVICES calls the GPUs of this machine; found without loading a library that would take one."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return tuple(filter(None, visible.split(",")))
    return tuple(str(i) for i, _ in enumerate(Path("/proc/driver/nvidia/gpus").glob("*")))


@cache
def _take_gpu(gpus: tuple[str, ...]) -> object:
    """Binds this worker process to a GPU, before it loads a library that asks for one.

    Gives the lock, which holds until the process ends: the n-th of the workers at work takes GPU n.
    """
    import fcntl  # of POSIX, as are the machines with GPUs that this is for

    for place in count():
        path = Path(tempfile.gettempdir()) / f"gpu-worker-{os.getuid()}-{place}.lock"
        lock = path.open("w")  # closed with the process
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            continue
        os.environ["CUDA_VISIBLE_DEVICES"] = gpus[place % len(gpus)]
        return lock


def _compute_on_cluster(calls: list[tuple], address: str):
    """As `_compute`. ValueError when no scheduler, or no worker, can be reached."""
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise ValueError(f"workers: {address} needs the package distributed; run `pip install '.[cluster]'`") from None
    try:
        client = Client(address, timeout=CONNECTION_SECONDS)
    except OSError as error:
        raise ValueError(
            f"workers: no Dask scheduler answers at {address} ({error}); start `dask scheduler` there, or say null "
            "for the cores of this machine"
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=CONNECTION_SECONDS)
        except TimeoutError:
            raise ValueError(f"workers: {address} has no workers; start some: `dask worker {address}`") from None
        futures = {client.submit(_one, *call, pure=False): call[1].name for call in calls}
        for future in as_completed(futures):
            error = future.exception()  # `_one` gives its own errors as results; this one is of the worker
            yield (futures[future], f"  {error}") if error else future.result()


def _one(
    function: Callable, job: Job, folder: Path, directory: Path, gpus: tuple[str, ...] | None = ()
) -> tuple[str, str | None]:
    """Does one job in a worker process; gives its name and what went wrong, if anything."""
    os.chdir(directory)  # worker processes outlive a run and stay where they were started
    gpus = _gpus() if gpus is None else gpus
    if gpus:
        _take_gpu(gpus)
    try:
        return job.name, _done(function, job, folder)
    finally:
        _free_memory()


def _done(function: Callable, job: Job, folder: Path) -> str | None:
    if (folder / "result.json").exists():  # of a worker that died before it could say so
        return None
    folder.mkdir(parents=True, exist_ok=True)
    try:
        result = function(job.settings, folder)
    except (ValueError, OSError) as error:  # what the user can mend; reported with all the others by `run`
        return f"  {error}"
    except Exception:
        return traceback.format_exc()
    if rank():
        return None
    description = {"name": job.name, "settings": job.settings}
    write_atomically(folder / "job.json", json.dumps(description, indent=1, sort_keys=True))
    write_atomically(folder / "result.json", json.dumps(result, sort_keys=True))
    return None


def _free_memory() -> None:
    """Hands back what a job has left: models hold themselves in cycles, and the C library keeps freed memory.

    A pool takes a worker that grows for leaking, and starts another in its place. What is still there, the libraries
    above all, stays; later collections need not look at it again.
    """
    gc.collect()
    gc.freeze()
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "malloc_trim"):
        library.malloc_trim(0)


def _fingerprints(function: Callable, jobs: list[Job]) -> list[str]:
    paths = {path for job in jobs for path in job.inputs}  # jobs share inputs
    with ThreadPoolExecutor() as pool:
        digests = dict(zip(paths, pool.map(sha256, paths), strict=True))
    source = Path(sys.modules[function.__module__].__file__)
    identity = f"{source.stem}.{function.__qualname__} {sha256(source)}"
    return [
        hashlib.sha256(
            json.dumps(
                [identity, job.settings, [[os.path.relpath(path), digests[path]] for path in job.inputs]],
                sort_keys=True,
            ).encode()
        ).hexdigest()[:32]
        for job in jobs
    ]
