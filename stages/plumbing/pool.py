"""Where jobs are computed: in processes of this machine, or on a Dask cluster.

Processes of this machine are forked from a server that has imported what the jobs run, once for all of them, and has
computed nothing: no thread and no GPU is inherited. Where that cannot be had (macOS, Windows), and for jobs on GPUs,
every process imports for itself.
"""

import atexit
import gc
import multiprocessing
import multiprocessing.forkserver
import multiprocessing.resource_tracker
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import threadpoolctl

from stages.plumbing import bars

CONNECTION_SECONDS = 30
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

KILLED = (
    "  its process was killed; run the same command again, with fewer `workers` or a smaller batch if memory ran out"
)

Outcome = tuple[str, Any]  # name of a job; what its call has returned, or why it has not


def in_processes(
    call: Callable, work: list[tuple[str, tuple]], number: int, modules: list[str] | None
) -> Iterator[Outcome]:
    """Calls `call(*arguments)` for every job in one of several processes of this machine.

    A process that is killed fails the job that it was at, and another takes its place. All end with this process.

    Args:
        call: a function that can be imported.
        work: name and arguments of every job.
        number: how many processes compute at a time.
        modules: what the jobs import; None where every process is to import for itself.

    Yields:
        Name and what `call` returns, as jobs end, in any order.
    """
    served = modules is not None and sys.platform == "linux"
    if served:
        begin_server(modules)
    context = multiprocessing.get_context("forkserver" if served else "spawn")
    waiting, at_work = deque(work), {}
    with ExitStack() as processes:

        def begin() -> ProcessPoolExecutor:
            process = ProcessPoolExecutor(1, context, initializer=_prepare, initargs=(number,))
            return processes.enter_context(process)

        idle = [begin() for _ in range(number)]
        try:
            while waiting or at_work:
                while waiting and idle:
                    name, arguments = waiting.popleft()
                    process = idle.pop()
                    with _interrupts_later():
                        at_work[process.submit(call, *arguments)] = name, process
                for future in wait(at_work, return_when=FIRST_COMPLETED).done:
                    name, process = at_work.pop(future)
                    killed = isinstance(future.exception(), BrokenProcessPool)
                    idle.append(begin() if killed else process)
                    yield name, KILLED if killed else future.result()
        except BaseException:  # such as Ctrl-C: nobody waits for the jobs at work
            for child in multiprocessing.active_children():
                child.kill()
            _end_server()
            raise


def begin_server(modules: list[str]) -> None:
    """Starts the server of processes, which then imports `modules`.

    One that is at work already stays as it is; off Linux there is none.
    """
    if sys.platform != "linux":
        return
    multiprocessing.get_context("forkserver").set_forkserver_preload([__name__, *modules])
    before = dict(os.environ)
    os.environ.update(ONE_THREAD)  # libraries read it when they are loaded, and then start no threads
    try:
        with _interrupts_later():
            multiprocessing.forkserver.ensure_running()
    finally:
        os.environ.clear()
        os.environ.update(before)


@atexit.register  # otherwise the server takes 2 seconds to take down all that it has imported
def _end_server() -> None:
    """Kills the server of processes: one that is still importing would begin a process that finds nobody to work for.

    The library has no public way to do it at once; it starts another server where one is asked for again.
    """
    server = multiprocessing.forkserver._forkserver._forkserver_pid
    if server is not None:
        with suppress(ProcessLookupError):
            os.kill(server, signal.SIGKILL)


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Holds Ctrl-C back until the end of the body, so that a process that begins in it is known when all are ended.

    Processes that begin in it inherit that the signal is blocked, and never hear it. Blocking it here is not enough: a
    thread of a library may hear it in place of the main thread, which runs the handler all the same.
    """
    heard: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    multiprocessing.resource_tracker.ensure_running()  # when it begins, it lets interrupts through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if hasattr(signal, "pthread_sigmask") else None
    try:
        yield
    finally:
        if before is not None:  # Windows has no mask
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGINT, handler)
    if heard:
        raise KeyboardInterrupt


def _prepare(number: int) -> None:
    """What one of a number of worker processes does first: it leaves Ctrl-C to the stage, and ends when the stage does.

    Without a terminal, all of them together say how far they are as often as one alone would.
    """
    bars.EVERY *= number
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    gc.freeze()  # what was imported stays; looking at it again would copy its memory


def _end_with_parent() -> None:
    multiprocessing.parent_process().join()
    os._exit(1)


def use_one_thread() -> None:
    """Has this process compute with one thread, in libraries that are loaded and in those that will be."""
    os.environ.update(ONE_THREAD)
    threadpoolctl.threadpool_limits(1)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)  # its MKL is linked into it, where threadpoolctl does not see it


def on_cluster(call: Callable, work: list[tuple[str, tuple]], address: str) -> Iterator[Outcome]:
    """Calls `call(*arguments)` for every job on the workers of a Dask scheduler.

    Args:
        call: a function that can be imported.
        work: name and arguments of every job.
        address: of the scheduler.

    Yields:
        Name and what `call` returns, as jobs end, in any order.

    Raises:
        ValueError: the scheduler cannot be reached, or has no workers that take one job at a time.
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
            f"workers: no Dask scheduler answers at {address} ({error}); start `dask scheduler` there, or say null "
            "for the cores of this machine"
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=CONNECTION_SECONDS)
        except TimeoutError:
            raise ValueError(f"workers: {address} has no workers; start some: `{command}`") from None
        if any(threads > 1 for threads in client.nthreads().values()):
            raise ValueError(
                f"workers: some workers of {address} take several jobs at a time, whose random numbers would come from "
                f"one generator; start them with one thread each: `{command}`"
            )
        futures = {client.submit(call, *arguments, pure=False): name for name, arguments in work}
        for future in as_completed(futures):
            error = future.exception()  # a job returns its own errors; this one is of the worker
            yield futures[future], f"  {error}" if error else future.result()
