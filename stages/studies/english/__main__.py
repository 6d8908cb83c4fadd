"""python -m stages.studies.english FOLDER"""

import argparse
from pathlib import Path

from stages.plumbing.errors import clear_errors
from stages.studies.english import study

parser = argparse.ArgumentParser(
    "python -m stages.studies.english",
    description=study.__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
)
parser.add_argument("folder", type=Path, help="has params.yaml and observations; gets the results")

if __name__ == "__main__":
    given = parser.parse_args()
    with clear_errors():
        study.main(given.folder)
