"""python -m stages.studies.lengths FOLDER [--root DATA] [--workers N]"""

import argparse
from pathlib import Path

from stages.plumbing.errors import clear_errors
from stages.studies.lengths import study

parser = argparse.ArgumentParser(
    "python -m stages.studies.lengths",
    description=study.__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
)
parser.add_argument("folder", type=Path, help="gets the results")
parser.add_argument("--root", type=Path, help="folder with the data of scale `files`; else generated text alone")
parser.add_argument("--workers", type=int, help="processes; default: one a core")

if __name__ == "__main__":
    given = parser.parse_args()
    with clear_errors():
        study.main(given.folder.resolve(), given.root and given.root.resolve(), given.workers)
