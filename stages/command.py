"""What the command lines of all stages share: help from the module's own docstring, errors in one clear line."""

import argparse
import errno
import sys
from collections.abc import Callable


def parser(stage: str, description: str) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog=f"python -m stages.{stage}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def operator_arguments(parser: argparse.ArgumentParser) -> dict[str, str]:
    """operator and size from the command line: the instance of a stage that trains."""
    parser.add_argument("operator", help="a name of `operators` in params.yaml")
    parser.add_argument("size", help="a name of `models` in params.yaml")
    return vars(parser.parse_args())


def model_arguments(parser: argparse.ArgumentParser) -> dict[str, str]:
    """protocol, operator and size from the command line, in this order: the instance of a stage that tests models."""
    parser.add_argument("protocol", help="a name of `finetuning` in params.yaml")
    return operator_arguments(parser)


def run(main: Callable[[], None]) -> None:
    """Calls `main`; an error that a user can mend ends the program with its message, without a traceback."""
    try:
        main()
    except OSError as error:
        full = error.errno == errno.ENOSPC
        sys.exit(f"error: {error}{'; free some space and run the same command again' if full else ''}")
    except (ValueError, RuntimeError) as error:
        sys.exit(f"error: {error}")
