"""The GPUs of this machine, and the GPU that a worker takes."""

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
from filelock import AcquireReturnProxy, Timeout

from stages.files.storage import acquire_lock


def list_visible_gpus() -> tuple[str, ...]:
    """Lists the GPUs that CUDA would use in this process, as UUIDs or numbers; () without a GPU.

    No library is loaded that would occupy a GPU.
    """
    if is_built_without_cuda():
        return ()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        # UUIDs and not numbers, because CUDA counts in another order
        return _ask_every_gpu(pynvml.nvmlDeviceGetUUID)
    # CUDA stops at the first entry that names no GPU, such as -1: "0,1,-1,2" gives ("0", "1")
    entries = [name.strip() for name in visible.split(",")]
    return tuple(takewhile(_is_name_of_gpu, entries))


def _is_name_of_gpu(name: str) -> bool:
    return name.isdecimal() or name.startswith(("GPU-", "MIG-"))


def list_product_names() -> tuple[str, ...]:
    """Lists the product names of all NVIDIA GPUs of this machine."""
    return _ask_every_gpu(pynvml.nvmlDeviceGetName)


def _ask_every_gpu(property_of: Callable) -> tuple[str, ...]:
    """Calls a function of pynvml, such as `nvmlDeviceGetName`, for every GPU; () without a GPU."""
    try:
        pynvml.nvmlInit()
        numbers = range(pynvml.nvmlDeviceGetCount())
        return tuple(property_of(pynvml.nvmlDeviceGetHandleByIndex(number)) for number in numbers)
    except pynvml.NVMLError:
        return ()


def is_built_without_cuda() -> bool:
    """Whether the installed PyTorch is a build for CPUs only."""
    # the mark of such a build
    return metadata.version("torch").endswith("+cpu")


# the cache keeps the lock alive, and a further call takes no second GPU
@cache
def bind_to_gpu(gpus: tuple[str, ...]) -> AcquireReturnProxy:
    """Binds this worker process to the GPU (number or UUID) with the fewest workers of this user.

    The call must come before any library is loaded that asks for a GPU. Returns the lock, which holds until the process
    ends.

    Raises:
        ValueError: the folder of the locks is open to other users.
    """
    parent = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    # all processes of this user on this machine share the folder
    folder = Path(parent) / f"fewer-attention-weights-{os.getuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    # `lstat` does not follow a link, which another user may have made
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise ValueError(
            f"{folder}: the folder does not belong to this user only; delete the folder, or set XDG_RUNTIME_DIR"
        )
    # every worker locks a numbered place on a GPU; place 0 of every GPU is tried first, then place 1 of every GPU
    for place in count():
        for gpu in gpus:
            with suppress(Timeout):
                lock = acquire_lock(folder / f"gpu-{gpu}-{place}.lock", wait=False)
                # CUDA reads the variable only once, when a library first asks for a GPU
                os.environ["CUDA_VISIBLE_DEVICES"] = gpu
                return lock
    raise AssertionError("the loop ends only by `return`")
