"""Errors on the command line: what a user can mend is one clear message, without a traceback."""

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def said(error: BaseException) -> str:
    """Words what a user can mend: the message of an error and, where memory or disk ran out, the remedy.

    PyTorch's errors are known by name and message, as it is not loaded here; safetensors words those of the disk.
    """
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError" or _allocating(error):
        return f"out of memory ({error}); lower a batch size, or `workers`"
    remedy = "free some space and run the same command again"
    full = getattr(error, "errno", None) == errno.ENOSPC or f"os error {errno.ENOSPC}" in str(error)
    if full and remedy not in str(error):  # of a job it has been said
        return f"{error}; {remedy}"
    if getattr(error, "errno", None) in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{error}; make it, and the folder that holds it, writable and run the same command again"
    return str(error)


def _allocating(error: BaseException) -> bool:
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)


@contextmanager
def clear_errors() -> Iterator[None]:
    """Ends the program with the message alone when the body raises what a user can mend, or is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        print("interrupted; the same command goes on where it was", file=sys.stderr)
        sys.exit(130)  # as a shell says it of SIGINT
    except (MemoryError, OSError, ValueError, RuntimeError) as error:
        sys.exit(f"error: {said(error)}")
