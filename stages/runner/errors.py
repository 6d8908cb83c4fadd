"""Errors on the command line: an error that a user can fix is one clear message, without a traceback."""

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from stages.files.quoting import show_controls

# libraries start a thread to load weights, which the system refuses if the memory of a process is limited
NO_MEMORY = ("can't allocate memory", "can't start new thread")
FREE_SPACE = "free some space and run the same command again"


def describe_error(error: BaseException) -> str:
    """Returns the message of an error, with a remedy for errors of memory, disk, file permissions and packages."""
    # PyTorch and safetensors are not loaded here, so their errors are recognised by name or message
    text = str(error)
    cannot_allocate = any(words in text for words in NO_MEMORY)
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError" or cannot_allocate:
        return f"out of memory ({error}); lower a batch size, or `workers`"
    number = getattr(error, "errno", None)
    disk_is_full = number in (errno.ENOSPC, errno.EDQUOT) or f"os error {errno.ENOSPC}" in text
    # a RuntimeError of failed jobs quotes their messages, which have the remedy already
    if disk_is_full and FREE_SPACE not in text:
        return f"{error}; {FREE_SPACE}"
    if number in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{error}; make the file and its folder writable and run the same command again"
    if number == errno.EFBIG:
        return f"{error}; raise the limit (`ulimit -f`), or move to a file system that takes larger files"
    if number in (errno.EMFILE, errno.ENFILE):
        return f"{error}; raise the limit (`ulimit -n`), or lower `workers`"
    if isinstance(error, ImportError) and not _is_own_bug(error):
        return (
            f"{error} ({sys.executable}); activate the environment of this repository, or install the packages as "
            "README.md says"
        )
    return text


def _is_own_bug(error: ImportError) -> bool:
    # a missing module or name of this repository, such as `stages.runner.x`, is a bug, which the user cannot fix
    return (error.name or "").partition(".")[0] == "stages"


@contextmanager
def clear_errors() -> Iterator[None]:
    """Ends the program with a message: status 1 for an error that a user can fix, 130 for Ctrl-C."""
    try:
        yield
    except KeyboardInterrupt:
        print("interrupted; run the same command again to resume", file=sys.stderr)
        # the status that shells report for a program that SIGINT (Ctrl-C) ended: 128 + 2
        sys.exit(130)
    # errors that a user can fix; `jobs.run` raises a RuntimeError if jobs have failed; other errors get a traceback
    except (ImportError, MemoryError, OSError, ValueError, RuntimeError) as error:
        if isinstance(error, ImportError) and _is_own_bug(error):
            raise
        sys.exit(f"error: {show_controls(describe_error(error))}")
