"""The command line that the studies share."""

import argparse
from pathlib import Path
from types import ModuleType

from stages.plumbing.errors import clear_errors


def parser(study: ModuleType, folder: str) -> argparse.ArgumentParser:
    """The parser of a study's command, whose help is the docstring of its module.

    Args:
        study: the module of the study.
        folder: what its one argument is.
    """
    made = argparse.ArgumentParser(
        f"python -m {study.__package__}",
        description=study.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("folder", type=Path, help=folder)
    return made


def judge(study: ModuleType) -> None:
    """Runs a study that judges the runs of a folder, as its command does."""
    given = parser(study, "has params.yaml and observations; gets the results").parse_args()
    with clear_errors():
        study.main(given.folder)
