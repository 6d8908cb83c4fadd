"""Computes jobs in processes of this machine.

On Linux, the processes are forked from a server, which has imported the modules of the jobs once for all workers and
has computed nothing, so that workers inherit no thread and no GPU. Elsewhere, and for jobs on GPUs, every worker
imports the modules.
"""

import atexit
import ctypes
import errno
import gc
import multiprocessing
import multiprocessing.forkserver
import multiprocessing.resource_tracker
import os
import signal
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import joblib
import threadpoolctl

from stages.runner import bars

# of <sys/prctl.h>
PR_SET_PDEATHSIG = 1
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
# indented, as every error of a job is printed below the job's name
KILLED = (
    "  the worker process was killed; run the same command again, with fewer `workers` or a smaller batch if memory "
    "ran out"
)
SERVER_KILLED = (
    "the process that starts the workers was killed; run the same command again, with fewer `workers` if memory ran out"
)

# name of a job; the return value of the job's call, or the text of the worker's error
Outcome = tuple[str, Any]


def run_in_processes(
    call: Callable, work: list[tuple[str, tuple]], number: int, modules: list[str] | None
) -> Iterator[Outcome]:
    """Calls `call(*arguments)` for every job in several processes of this machine.

    When a process is killed, only the job of that process fails, and another process starts. All processes end with
    the calling process, and are killed when `call` raises an error, which is raised again.

    Args:
        call: a function that can be imported.
        work: name and arguments of every job.
        number: how many processes compute at a time.
        modules: names of the modules that the jobs import; `None` if every process is to import for itself.

    Yields:
        (name of a job, return value of `call`, or KILLED) as jobs end, in any order.

    Raises:
        RuntimeError: the server, from which workers are forked, was killed.
    """
    from_server = modules is not None and sys.platform == "linux"
    if from_server:
        begin_server(modules)
    context = multiprocessing.get_context("forkserver" if from_server else "spawn")

    # every executor has one process, because a killed process breaks the executor with all its jobs
    def start_worker() -> ProcessPoolExecutor:
        return executors.enter_context(_make_executor(context, number))

    waiting = deque(work)
    # future of a running call -> (name of the job, executor)
    at_work = {}
    with ExitStack() as executors:
        idle = [start_worker() for _ in range(number)]
        try:
            while waiting or at_work:
                while waiting and idle:
                    name, arguments = waiting.popleft()
                    executor = idle.pop()
                    at_work[_submit_call(executor, call, arguments)] = name, executor
                for future in wait(at_work, return_when=FIRST_COMPLETED).done:
                    name, executor = at_work.pop(future)
                    if isinstance(future.exception(), BrokenProcessPool):
                        idle.append(start_worker())
                        yield name, KILLED
                    else:
                        idle.append(executor)
                        yield name, future.result()
        # such as Ctrl-C: nobody waits for the current jobs
        except BaseException:
            _kill_children()
            _end_server()
            raise


@contextmanager
def open_new_process() -> Iterator[ProcessPoolExecutor]:
    """Starts a process that inherits no settings of libraries and computes calls one by one, until the `with` ends.

    Raises:
        RuntimeError: the process was killed during a call whose result the body reads.
    """
    context = multiprocessing.get_context("spawn")
    with _make_executor(context, 1) as executor:
        try:
            yield executor
        except BrokenProcessPool:
            raise RuntimeError(KILLED.strip()) from None
        # such as Ctrl-C: nobody waits for the current call
        except BaseException:
            _kill_children()
            raise


def _make_executor(context: multiprocessing.context.BaseContext, number: int) -> ProcessPoolExecutor:
    """Makes an executor with a single process, one of `number` workers."""
    try:
        return ProcessPoolExecutor(1, context, initializer=prepare_worker, initargs=(number,))
    except OSError as error:
        # too many open files: /dev/shm is not the cause, so the error stays as it is
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise
        raise RuntimeError(
            f"/dev/shm: no semaphore for a worker process can be made there ({error.strerror}); mount a writable tmpfs "
            "there, with free space"
        ) from None


def _kill_children() -> None:
    for child in multiprocessing.active_children():
        child.kill()


def _submit_call(executor: ProcessPoolExecutor, call: Callable, arguments: tuple) -> Future:
    try:
        with _delay_interrupts():
            return executor.submit(call, *arguments)
    # the first call starts the process, and the server that should fork the process no longer answers
    except (EOFError, ConnectionError):
        raise RuntimeError(SERVER_KILLED) from None


def begin_server(modules: list[str]) -> None:
    """Starts the server from which workers are forked, on Linux only and at most once; the server imports `modules`."""
    if sys.platform != "linux":
        return
    # stages.runner.worker notes the times of all files before the modules of jobs are imported (fingerprints.STATES)
    preload = ["stages.runner.server", "stages.runner.worker", *modules]
    multiprocessing.get_context("forkserver").set_forkserver_preload(preload)
    before = dict(os.environ)
    # libraries that are loaded with these variables start no threads
    os.environ.update(ONE_THREAD)
    try:
        with _delay_interrupts():
            multiprocessing.forkserver.ensure_running()
    except OSError as error:
        # "AF_UNIX path too long" is no error of the system, and names no path
        if error.errno is not None:
            raise
        folder = tempfile.gettempdir()
        raise RuntimeError(
            f"{folder}: no socket for workers can be made there ({error}); set TMPDIR to another folder"
        ) from None
    finally:
        os.environ.clear()
        os.environ.update(before)


# the server would end by itself, but takes 2 seconds to unload the libraries
@atexit.register
def _end_server() -> None:
    # Killed, because a server that is still importing would go on, and then start a process whose parent is gone. The
    # library has no public way to end the server at once, and starts another server when needed.
    server = multiprocessing.forkserver._forkserver._forkserver_pid
    if server is not None:
        with suppress(ProcessLookupError):
            os.kill(server, signal.SIGKILL)


@contextmanager
def _delay_interrupts() -> Iterator[None]:
    """Holds Ctrl-C back until the body ends, so that a process which starts in the body can be found and killed."""
    # Blocking the signal is not enough: a thread of a library may receive the signal instead, and the main thread then
    # still runs the handler. So the handler only notes the signal. A process that starts inherits the blocked signal.
    heard: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    # the start of multiprocessing's resource tracker unblocks the signal, so the tracker is started before
    multiprocessing.resource_tracker.ensure_running()
    # Windows cannot block a signal
    has_mask = hasattr(signal, "pthread_sigmask")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if has_mask else set()
    try:
        yield
    finally:
        if has_mask:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGINT, handler)
    if heard:
        raise KeyboardInterrupt


def prepare_worker(number: int) -> None:
    """Sets up one of `number` worker processes, which leaves Ctrl-C to the stage and ends when the stage ends."""
    # without a terminal, every worker prints a line every `EVERY` seconds: more workers, longer intervals
    bars.EVERY *= number
    # PyTorch compiles GPU code with a thread per core, at most 32; the workers share the cores
    threads = min(max(joblib.cpu_count() // number, 1), 32)
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", str(threads))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # if the stage ended before this call, the kernel sends no signal, but the thread notices
    end_with_parent()
    threading.Thread(target=_wait_for_end, daemon=True).start()
    # a garbage collection that visits imported objects would copy memory shared with the server
    gc.freeze()


def end_with_parent() -> None:
    """Asks the kernel of Linux to kill this process when the process that started this process ends."""
    # No thread could do so while native code holds the global interpreter lock. The kernel watches the thread that has
    # started this process: the main thread of the stage or of the server.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _wait_for_end() -> None:
    stage: Any = multiprocessing.parent_process()
    stage.join()
    os._exit(1)


def use_one_thread() -> None:
    """Limits this process to a single thread of computation, in libraries loaded before or later."""
    os.environ.update(ONE_THREAD)
    threadpoolctl.threadpool_limits(1)
    torch = sys.modules.get("torch")
    # the MKL of torch is linked into torch, where threadpoolctl does not see it
    if torch is not None:
        torch.set_num_threads(1)
