"""Which GPUs this machine has, and which of them a worker takes."""

import os
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import metadata
from itertools import count, takewhile
from pathlib import Path

import pynvml
from filelock import FileLock, Timeout


def visible() -> tuple[str, ...]:
    """What CUDA_VISIBLE_DEVICES calls the GPUs of this machine; found without loading a library that would take one.

    A PyTorch that is built without CUDA has none. Of a list CUDA takes what stands before the first name that is none,
    such as -1 or Slurm's NoDevFiles.
    """
    if built_without_cuda():
        return ()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        names = (name.strip() for name in visible.split(","))
        return tuple(takewhile(lambda name: name.isdecimal() or name.startswith(("GPU-", "MIG-")), names))
    return _of_every_gpu(pynvml.nvmlDeviceGetUUID)  # not their numbers, as CUDA has them in another order


def names() -> tuple[str, ...]:
    """The product names of all GPUs of this machine."""
    return _of_every_gpu(pynvml.nvmlDeviceGetName)


def _of_every_gpu(property_of: Callable) -> tuple[str, ...]:
    """Asks the driver for a property of every GPU; nothing where there is no driver, or none that answers."""
    try:
        pynvml.nvmlInit()
        numbers = range(pynvml.nvmlDeviceGetCount())
        return tuple(property_of(pynvml.nvmlDeviceGetHandleByIndex(number)) for number in numbers)
    except pynvml.NVMLError:
        return ()


def built_without_cuda() -> bool:
    """Whether the installed PyTorch is the build that computes on CPUs alone."""
    return metadata.version("torch").endswith("+cpu")


@cache  # which keeps the lock
def take(gpus: tuple[str, ...]) -> FileLock:
    """Binds this worker process to the GPU that the fewest workers of this user hold.

    It must come before a library is loaded that asks for a GPU: CUDA_VISIBLE_DEVICES is read then, and once.

    Args:
        gpus: identifiers, as `visible` returns them.

    Returns:
        The lock, which holds until the process ends.
    """
    folder = private_folder()
    for place, gpu in ((place, gpu) for place in count() for gpu in gpus):
        lock = FileLock(folder / f"gpu-{gpu}-{place}.lock")
        with suppress(Timeout):
            lock.acquire(blocking=False)
            os.environ["CUDA_VISIBLE_DEVICES"] = gpu
            return lock


def private_folder() -> Path:
    """A folder for what the processes of one user share on one machine.

    Raises:
        ValueError: another could write there too, or has put something else in its place.
    """
    above = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    folder = Path(above) / f"fewer-attention-weights-{os.getuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()  # of a link itself, not of where it leads
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise ValueError(f"{folder}: not a folder that is this user's alone; delete it, or set XDG_RUNTIME_DIR")
    return folder
