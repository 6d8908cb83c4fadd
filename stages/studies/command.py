"""What the studies share: their command line, and how they read the runs that they judge."""

import argparse
from pathlib import Path
from types import ModuleType

import pandas as pd

from stages.plumbing import observations
from stages.plumbing.documents import read_yaml
from stages.plumbing.errors import clear_errors


def parser(study: ModuleType, folder: str) -> argparse.ArgumentParser:
    """Returns the parser of a study's command line, whose help is the docstring of its module.

    study: a module study.py. folder: the help text of the only argument, the folder of the study.
    """
    command = argparse.ArgumentParser(
        f"python -m {study.__package__}",
        description=study.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("folder", type=Path, help=folder)
    return command


def judge(study: ModuleType) -> None:
    """Runs a study that judges runs, as a command: parses the command line and calls `study.main` with the folder."""
    options = parser(study, "has params.yaml and observations; gets the results").parse_args()
    with clear_errors():
        study.main(options.folder)


def read(folder: Path) -> tuple[dict, pd.DataFrame]:
    """Reads what a study judges: the content of params.yaml in `folder`, and the rows of all of its observations.

    The files are those of the folder `observations`, .csv or compressed (.csv.gz).
    """
    files = sorted((folder / "observations").glob("*.csv*"))
    return read_yaml(folder / "params.yaml"), observations.read(files)
