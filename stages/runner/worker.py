"""Does a job: in a process of the pool, on a Dask cluster, or in several processes that share the job."""

import ctypes
import gc
import os
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from safetensors import SafetensorError

from stages.files.storage import acquire_lock, delete_path, name_refused_writes, read_states
from stages.runner import fingerprints, gpus, pool, results
from stages.runner.errors import describe_error
from stages.runner.job import Job
from stages.runner.processes import find_rank

# Errors that a user can fix, shown without a traceback. Writing weights to a full disk raises a SafetensorError.
FIXABLE = (ValueError, OSError, MemoryError, SafetensorError)


def do_job(
    function: Callable,
    job: Job,
    folder: Path,
    directory: Path,
    devices: tuple[str, ...] | None,
    identity: list,
    inputs: dict[Path, dict],
) -> str | None:
    """Does a job in a worker, unless the job is finished; returns the text of an error, or `None` if the job is done.

    Args:
        function: the job function.
        job: the job to do.
        folder: the job's folder as an absolute path.
        directory: the working directory of the stage.
        devices: GPUs of which the worker takes the freest; empty without GPUs; `None` to look for GPUs.
        identity: `describe_identity` of the function when the jobs were planned.
        inputs: `read_states` of every input when the jobs were planned.
    """
    if identity != fingerprints.describe_identity(function, as_loaded=True):
        found = "the worker has loaded other code or other versions of libraries than the stage"
        return f"  {found}; run the same command again, on a cluster after a restart of the workers"
    # workers of a cluster were started elsewhere
    os.chdir(directory)
    pool.use_one_thread()
    if devices is None:
        devices = gpus.list_visible_gpus()
    # an error here concerns the machine and not the job, so the error is raised and not returned
    if devices:
        gpus.bind_to_gpu(devices)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        # waits while another stage computes the job; of several processes that share the job, only the first locks
        lock = nullcontext() if find_rank() else acquire_lock(folder.with_suffix(".lock"))
        with lock, name_refused_writes(folder):
            _call_job(function, job, folder, inputs)
    except Exception as error:
        if not folder.exists():
            return f"  {folder}: deleted while the job ran; run the same command again"
        return _format_error(error)
    finally:
        _free_memory()


def _call_job(function: Callable, job: Job, folder: Path, inputs: dict[Path, dict]) -> None:
    """Calls the job function and writes the result, unless the job is finished."""
    record = results.read(folder)
    lacking = results.list_lacking(record, job.required) if record else []
    if record and not lacking:
        return
    # a required file without a checksum in the result was left by a killed process, and may be incomplete
    if find_rank() == 0:
        for name in lacking:
            delete_path(folder / name)
    started = time.perf_counter()
    _require_unchanged(inputs)
    result = function(job.argument, folder)
    _require_unchanged(inputs)
    # if a user deleted the folder meanwhile, the files of the function are gone, and a result would be incomplete
    if not folder.exists():
        raise FileNotFoundError(folder)
    if find_rank() == 0:
        results.write(folder, job.name, job.content, result, time.perf_counter() - started)


def _require_unchanged(inputs: dict[Path, dict]) -> None:
    for path, states in inputs.items():
        if read_states(path) != states:
            raise ValueError(f"{path} changed after the stage began; run the same command again")


def _format_error(error: Exception) -> str:
    """Returns an indented line for an error that a user can fix, the traceback for any other error."""
    text = describe_error(error)
    # `describe_error` appends a remedy to errors that it knows
    if text != str(error) or isinstance(error, FIXABLE):
        return f"  {text}"
    return "".join(traceback.format_exception(error))


def _free_memory() -> None:
    """Returns free memory to the system, because a Dask cluster restarts a worker whose memory seems to leak."""
    # models refer to themselves in cycles
    gc.collect()
    # objects that survive, mostly of libraries, are left out of later collections
    gc.freeze()
    if sys.platform == "linux":
        library = ctypes.CDLL(None)
        # musl has no such function
        if hasattr(library, "malloc_trim"):
            library.malloc_trim(0)
