"""Errors on the command line: what a user can mend is one clear message, without a traceback."""

import difflib
import errno
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager


def require_listed(value: str, key: str, allowed: Collection[str], where: str) -> None:
    """Checks that a name given by a user is one of the allowed names.

    Args:
        value, key: the name, and the key of params.yaml, or the argument of the command line, that holds it.
        allowed, where: the allowed names, and what lists them, for the message.

    Raises:
        ValueError: the name is not allowed; the message lists the allowed ones and suggests the nearest.
    """
    if value not in allowed:
        near = did_you_mean(value, allowed)
        raise ValueError(f"{key}: `{value}` is not in {where}: {', '.join(allowed) or 'none'}{near}")


def did_you_mean(given: str, allowed: Iterable[str]) -> str:
    """Returns the end of an error message, suggesting the allowed name nearest to `given`; "" if difflib has none."""
    near = difflib.get_close_matches(given, allowed, n=1)
    return f"; did you mean `{near[0]}`?" if near else ""


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
