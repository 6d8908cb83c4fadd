"""Computes jobs on the workers of a Dask cluster."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError

from stages.runner.pool import Outcome

# how long to wait for a scheduler, and then for its first worker
CONNECTION_SECONDS = 30


def run_on_cluster(call: Callable, work: list[tuple[str, tuple]], address: str) -> Iterator[Outcome]:
    """Calls `call(*arguments)` for every job on the workers of a Dask scheduler, at an address such as tcp://HOST:8786.

    `work` has name and arguments of every job. Yields as jobs end: (name of a job; return value of `call`, or the text
    of a worker's error).

    Raises:
        ValueError: the package `distributed`, the scheduler or workers are missing, or workers cannot take these jobs.
    """
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise ValueError(f"workers: {address} needs the package distributed; run `pip install '.[cluster]'`") from None
    command = f"dask worker {address} --nthreads 1 --nworkers N"
    try:
        client = Client(address, timeout=CONNECTION_SECONDS)
    except OSError as error:
        raise ValueError(
            f"workers: no Dask scheduler answers at {address} ({error}); start `dask scheduler` there, "
            "or set workers to null for the cores of this machine"
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=CONNECTION_SECONDS)
        except TimeoutError:
            raise ValueError(f"workers: {address} has no workers; start some: `{command}`") from None
        if any(threads > 1 for threads in client.nthreads().values()):
            raise ValueError(
                f"workers: some workers of {address} take several jobs at a time, whose random numbers would come from "
                f"one generator; start the workers with one thread each: `{command}`"
            )
        # with WORLD_SIZE, a worker would do only a share of a job, as under torchrun
        if any(size not in (None, "", "1") for size in client.run(os.getenv, "WORLD_SIZE").values()):
            raise ValueError(
                f"workers: WORLD_SIZE is set for some workers of {address}; `unset WORLD_SIZE` before `{command}`"
            )
        # pure=False, because Dask would otherwise return the result of an earlier equal call, whose files may be gone
        futures = {client.submit(call, *arguments, pure=False): name for name, arguments in work}
        for future in as_completed(futures):
            try:
                # not an error of the job, which `call` would return as text, but an error of the worker
                error = future.exception()
                outcome = f"  {error}" if error else future.result()
            except CancelledError:
                raise RuntimeError(
                    f"workers: the Dask scheduler at {address} is gone; start `dask scheduler` and `{command}` again, "
                    "and run the same command again, which keeps finished jobs"
                ) from None
            yield futures[future], outcome
