"""Errors on the command line: what a user can mend is one clear message, without a traceback."""

import difflib
import errno
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager


def require_listed(value: str, key: str, allowed: Collection[str], where: str) -> None:
    """Checks a name that a user has given.

    Args:
        value: the name.
        key: of params.yaml, or argument of the command line, that has it.
        allowed: what it may be.
        where: the place that lists this.

    Raises:
        ValueError: it is none of them; the message has all of them, and the nearest one.
    """
    if value not in allowed:
        near = did_you_mean(value, allowed)
        raise ValueError(f"{key}: `{value}` is not in {where}: {', '.join(allowed) or 'none'}{near}")


def did_you_mean(given: str, allowed: Iterable[str]) -> str:
    """The end of an error: the allowed name that is nearest to what was given, or nothing where none is near."""
    near = difflib.get_close_matches(given, allowed, n=1)
    return f"; did you mean `{near[0]}`?" if near else ""


def message(error: BaseException) -> str:
    """The message of an error and, where memory or disk ran out or a file must not be written, the remedy.

    PyTorch's errors are recognised by name and message, as it is not loaded here; so is safetensors' of a full disk.
    """
    # a thread, which the libraries start where they load weights, is refused by the limit of a process's memory, too
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
    """Ends the program with the message alone when the body raises what a user can mend, or is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        print("interrupted; the same command goes on where it was", file=sys.stderr)
        sys.exit(130)  # as a shell says it of SIGINT
    except (MemoryError, OSError, ValueError, RuntimeError) as error:
        sys.exit(f"error: {message(error)}")
