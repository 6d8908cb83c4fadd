"""Several processes that train the same model, each on a separate device, with `torchrun` or `accelerate launch`.

Every process draws the same batch and trains on a part of the batch; only the first process writes files.
"""

import atexit
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from stages.files.quoting import quote_value
from stages.runner.processes import LAUNCHER, count_processes, find_rank
from stages.training.machine import find_device


def join() -> None:
    """Connects this process with all other processes, if any, and binds the process to the GPU of the local rank.

    Raises:
        ValueError: the machine has fewer GPUs than processes, or the processes cannot meet.
    """
    if count_processes() == 1 or distributed.is_initialized():
        return
    backend = "gloo"
    if torch.cuda.is_available():
        backend = "nccl"
        gpus = torch.cuda.device_count()
        # launchers that start a single process per machine may leave LOCAL_RANK out
        local_rank = find_rank("LOCAL_RANK", missing="0")
        if local_rank >= gpus:
            raise ValueError(
                f"LOCAL_RANK is {local_rank}, but there are {gpus} GPUs; run `torchrun --nproc-per-node {gpus}`"
            )
        torch.cuda.set_device(local_rank)
    # a line before `init_process_group`, which waits for up to half an hour and prints nothing
    print(f"process {find_rank()} of {count_processes()} (RANK, WORLD_SIZE) waits for the other processes", flush=True)
    try:
        distributed.init_process_group(backend)
    except distributed.DistError as error:
        raise ValueError(
            f"the {count_processes()} processes (WORLD_SIZE) cannot meet: {quote_value(error)}; {LAUNCHER}"
        ) from None
    atexit.register(distributed.destroy_process_group)


def replicate_module(module: nn.Module) -> nn.Module:
    """Wraps a module so that `backward` averages the gradients over all processes, except in `keep_gradients`."""
    if count_processes() == 1:
        return module
    return DistributedDataParallel(module)


def keep_gradients(module: nn.Module) -> AbstractContextManager:
    """Returns a context in which gradients of a replicated module add up in this process without an exchange."""
    if count_processes() == 1:
        return nullcontext()
    return module.no_sync()


def take_share(rows: Tensor) -> Tensor:
    """Returns this process's part of the rows of a batch, [rows, ...]; sizes of parts differ by a row at most."""
    return rows.tensor_split(count_processes())[find_rank()]


def sum_on_all(values: Tensor) -> Tensor:
    """Returns the elementwise sum of `values` over all processes, in every process; may overwrite `values`."""
    if count_processes() > 1:
        values = values.to(find_device())
        distributed.all_reduce(values)
    return values


def sum_on_first(value: float) -> float:
    """Returns the sum of `value` over all processes in the first process, and 0 in every other process."""
    # Callers add to the result, and pass the new value to a later call. If every process held the total, the later call
    # would count the total once per process.
    total = sum_on_all(torch.tensor(value, dtype=torch.float64)).item()
    return total if find_rank() == 0 else 0.0


def require_equal(value: int, name: str) -> None:
    """Raises ValueError unless all processes have read the same `value` in data/jobs; `name` says of what."""
    if count_processes() == 1:
        return
    values = [None] * count_processes()
    distributed.all_gather_object(values, value)
    if len(set(values)) > 1:
        raise ValueError(f"{name}: {values} by process; data/jobs must be one folder, shared by all machines")
