"""What the studies share: their command line, and how they read the runs that they judge."""

import argparse
from pathlib import Path
from types import ModuleType

import pandas as pd

from stages.plumbing import observations
from stages.plumbing.documents import read_yaml
from stages.plumbing.errors import clear_errors


def parser(study: ModuleType, folder: str) -> argparse.ArgumentParser:
    """Returns a parser whose help is the docstring of `study`; `folder` is the help text of its argument, a path."""
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
    """Reads params.yaml in `folder`, as a dict, and the rows of all files, .csv or .csv.gz, in its folder observations.

    Raises FileNotFoundError without params.yaml, and ValueError where a file is damaged; without observations, no rows.
    """
    files = sorted((folder / "observations").glob("*.csv*"))
    return read_yaml(folder / "params.yaml"), observations.read(files)
