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
    """Returns the GPUs that CUDA would use here, by number or UUID as in CUDA_VISIBLE_DEVICES; () where there are none.

    No library is loaded that would occupy one; a PyTorch built without CUDA uses none. Where the variable is set, its
    entries count, unchecked, up to the first that names no GPU, such as -1 or Slurm's NoDevFiles, as CUDA reads them.
    """
    if built_without_cuda():
        return ()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        names = (name.strip() for name in visible.split(","))
        return tuple(takewhile(lambda name: name.isdecimal() or name.startswith(("GPU-", "MIG-")), names))
    return _of_every_gpu(pynvml.nvmlDeviceGetUUID)  # no numbers: CUDA counts in another order


def names() -> tuple[str, ...]:
    """The product names of all NVIDIA GPUs of this machine; () where there are none."""
    return _of_every_gpu(pynvml.nvmlDeviceGetName)


def _of_every_gpu(property_of: Callable) -> tuple[str, ...]:
    """Applies a function of pynvml to the handle of every GPU; returns () where no driver answers."""
    try:
        pynvml.nvmlInit()
        numbers = range(pynvml.nvmlDeviceGetCount())
        return tuple(property_of(pynvml.nvmlDeviceGetHandleByIndex(number)) for number in numbers)
    except pynvml.NVMLError:
        return ()


def built_without_cuda() -> bool:
    """Whether the version of the installed PyTorch ends in +cpu, by which a build for CPUs alone is marked."""
    return metadata.version("torch").endswith("+cpu")


@cache  # keeps the lock alive, and a further call takes no second GPU
def take(gpus: tuple[str, ...]) -> FileLock:
    """Binds this worker process to the GPU that the fewest workers of this user hold, by CUDA_VISIBLE_DEVICES.

    It must come before any library is loaded that asks for a GPU, since the variable is read then, and only once.
    Every worker locks a numbered place on its GPU; place 0 of every GPU is tried first, then place 1 of every GPU. The
    lock is returned, and holds until the process ends. gpus: at least one identifier, as `visible` returns them.
    ValueError where another user could write to the folder of the locks, or something else stands in its place.
    """
    above = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    folder = Path(above) / f"fewer-attention-weights-{os.getuid()}"  # for what this user's processes share here
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()  # of a link itself, not of where it leads
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise ValueError(f"{folder}: not a folder that is this user's alone; delete it, or set XDG_RUNTIME_DIR")
    for place, gpu in ((place, gpu) for place in count() for gpu in gpus):
        lock = FileLock(folder / f"gpu-{gpu}-{place}.lock")
        with suppress(Timeout):
            lock.acquire(blocking=False)
            os.environ["CUDA_VISIBLE_DEVICES"] = gpu
            return lock
