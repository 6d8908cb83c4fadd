"""Where jobs are computed: in processes of this machine, or on a Dask cluster.

Processes of this machine are forked from a server that has imported what the jobs run, once for all of them, and has
computed nothing: they inherit no thread and no GPU. Without such a server (macOS, Windows), and for jobs on GPUs, every
process imports for itself.
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

from stages.runner import bars

CONNECTION_SECONDS = 30  # to wait for a scheduler, and then for its first worker
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

KILLED = (  # indented, as every error of a job is printed below the job's name
    "  its process was killed; run the same command again, with fewer `workers` or a smaller batch if memory ran out"
)

Outcome = tuple[str, Any]  # name of a job; what its call has returned, or the text of its worker's error


def in_processes(
    call: Callable, work: list[tuple[str, tuple]], number: int, modules: list[str] | None
) -> Iterator[Outcome]:
    """Calls `call(*arguments)` for every job in one of several processes of this machine.

    When a process is killed, only the job that it was doing fails, and another process takes its place. All processes
    end with this one, and are killed when `call` raises an error, which is raised again.

    Args:
        call, work: a function that can be imported; name and arguments of every job.
        number: how many processes compute at a time.
        modules: names of the modules that the jobs import; None where every process is to import for itself.

    Yields:
        The name of a job, and what `call` has returned or KILLED, as jobs end, in any order.
    """
    served = modules is not None and sys.platform == "linux"
    if served:
        begin_server(modules)
    context = multiprocessing.get_context("forkserver" if served else "spawn")
    waiting, at_work = deque(work), {}  # at_work: (name of the job, its executor) by future
    with ExitStack() as processes:

        def begin() -> ProcessPoolExecutor:  # of one process, as a kill breaks an executor with all that it does
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
    """Starts the server of processes, on Linux if none runs; it imports `modules` while this process goes on."""
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
    """Kills the server of processes, if it runs.

    One that is still importing would afterwards start a process whose parent is gone. The library has no public way to
    end it at once; where a server is needed again, the library starts another.
    """
    server = multiprocessing.forkserver._forkserver._forkserver_pid
    if server is not None:
        with suppress(ProcessLookupError):
            os.kill(server, signal.SIGKILL)


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Holds Ctrl-C back until the body ends, so that a process which starts there is known when all are killed.

    Such a process inherits that the signal is blocked, and never receives it. Blocking alone is not enough for this
    process: a thread of a library may receive the signal instead, and the main thread then runs the handler all the
    same; so for that time the handler only notes the signal.
    """
    heard: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    multiprocessing.resource_tracker.ensure_running()  # when it starts, it unblocks interrupts
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
    """Sets up one of `number` worker processes: it leaves Ctrl-C to the stage, and ends when the stage does.

    Without a terminal, each prints its progress `number` times as rarely, so that all together print as often as one.
    """
    bars.EVERY *= number
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    gc.freeze()  # what was imported stays; a collection that looks at it would copy its memory


def _end_with_parent() -> None:
    """Waits in a thread for the end of the stage, and then ends this process in the midst of its job."""
    multiprocessing.parent_process().join()
    os._exit(1)


def use_one_thread() -> None:
    """Limits this process to one thread of computation, in libraries already loaded and in those loaded later."""
    os.environ.update(ONE_THREAD)
    threadpoolctl.threadpool_limits(1)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)  # its MKL is linked into it, where threadpoolctl does not see it


def on_cluster(call: Callable, work: list[tuple[str, tuple]], address: str) -> Iterator[Outcome]:
    """Calls `call(*arguments)` for every job on the workers of a Dask scheduler.

    Args:
        call, work: as in `in_processes`.
        address: of the scheduler, such as tcp://HOST:8786.

    Yields:
        The name of a job, and what `call` has returned or the error of its worker, as jobs end, in any order.

    Raises:
        ValueError: the package `distributed` is missing; the scheduler cannot be reached or has no workers; or some of
            them take several jobs at a time.
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
        # pure: Dask would return the result of an equal call before, even where its files are gone
        futures = {client.submit(call, *arguments, pure=False): name for name, arguments in work}
        for future in as_completed(futures):
            error = future.exception()  # a job returns its own errors; this one is of the worker
            yield futures[future], f"  {error}" if error else future.result()
