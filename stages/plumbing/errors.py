"""Errors on the command line: what a user can mend is one clear message, without a traceback."""

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def message(error: BaseException) -> str:
    """The message of an error and, where memory or disk ran out or a file must not be written, the remedy.

    PyTorch's errors are recognised by name and message, as it is not loaded here; so is safetensors' of a full disk.
    """
    cannot_allocate = isinstance(error, RuntimeError) and "can't allocate memory" in str(error)
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError" or cannot_allocate:
        return f"out of memory ({error}); lower a batch size, or `workers`"
    remedy = "free some space and run the same command again"
    full = getattr(error, "errno", None) == errno.ENOSPC or f"os error {errno.ENOSPC}" in str(error)
    if full and remedy not in str(error):  # the message of a failed job has it already
        return f"{error}; {remedy}"
    if getattr(error, "errno", None) in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{error}; make it, and the folder that holds it, writable and run the same command again"
    return str(error)


@contextmanager
def clear_errors() -> Iterator[None]:
    """Ends the program with the message alone when the body raises what a user can mend, or is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        print("interrupted; the same command goes on where it was", file=sys.stderr)
        sys.exit(130)  # as a shell says it of SIGINT
    except (MemoryError, OSError, ValueError, RuntimeError) as error:
        sys.exit(f"error: {message(error)}")
