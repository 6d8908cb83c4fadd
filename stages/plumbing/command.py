"""Errors on the command line: what a user can mend is one clear message, without a traceback."""

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def clear_errors() -> Iterator[None]:
    """Ends the program with the message alone when the body raises what a user can mend, or is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        print("interrupted; the same command goes on where it was", file=sys.stderr)
        sys.exit(130)  # as a shell says it of SIGINT
    except MemoryError as error:
        sys.exit(f"error: out of memory ({error}); lower a batch size, or `workers`")
    except OSError as error:
        full = error.errno == errno.ENOSPC
        sys.exit(f"error: {error}{'; free some space and run the same command again' if full else ''}")
    except (ValueError, RuntimeError) as error:
        sys.exit(f"error: {error}")
