"""Errors on the command line: what a user can mend is one clear message, without a traceback."""

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def message(error: BaseException) -> str:
    """Returns the message of an error, with a remedy where memory or disk ran out or a file may not be written.

    PyTorch's errors, and that of safetensors for a full disk, are known by name or message: neither is loaded here.
    """
    # the thread that libraries start to load weights is refused where the memory of a process is limited
    refused = ("can't allocate memory", "can't start new thread")
    cannot_allocate = isinstance(error, RuntimeError) and any(words in str(error) for words in refused)
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
    """Ends the program with a message, not a traceback: status 1 for an error that a user can mend, 130 for Ctrl-C."""
    try:
        yield
    except KeyboardInterrupt:
        print("interrupted; the same command goes on where it was", file=sys.stderr)
        sys.exit(130)  # as a shell says it of SIGINT
    except (MemoryError, OSError, ValueError, RuntimeError) as error:  # the last: of `jobs.run`, among others
        sys.exit(f"error: {message(error)}")
