"""The processes that `torchrun` or `accelerate launch` started to share every job, by their environment variables.

The module imports no torch, because the runner asks before a worker has chosen a GPU.
"""

import os

LAUNCHER = "use torchrun or accelerate, which set all such variables, or run `unset WORLD_SIZE RANK` first"


def find_rank(variable: str = "RANK", missing: str = "") -> int:
    """Returns the number of this process among the processes that share every job, from 0; 0 for a single process.

    `variable` RANK counts all processes, LOCAL_RANK the processes of a machine; `missing` replaces a missing variable.
    ValueError if the variable is not the number of a process.
    """
    # a RANK without a WORLD_SIZE above 1 has another meaning
    if count_processes() == 1:
        return 0
    text = os.environ.get(variable, missing)
    if text not in map(str, range(count_processes())):
        raise ValueError(f"{variable} is {text!r}, expected a number below WORLD_SIZE, {count_processes()}; {LAUNCHER}")
    return int(text)


def count_processes() -> int:
    """Returns how many processes share every job; 1 without a launcher. ValueError for a bad WORLD_SIZE."""
    text = os.environ.get("WORLD_SIZE") or "1"
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"WORLD_SIZE is {text!r}, expected a number of processes; {LAUNCHER}")
    if int(text) > 1 and "MASTER_ADDR" not in os.environ:
        raise ValueError(f"WORLD_SIZE is {text}, but MASTER_ADDR is not set; {LAUNCHER}")
    return int(text)
