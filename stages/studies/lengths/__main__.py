"""python -m stages.studies.lengths FOLDER [--root DATA] [--workers N]"""

from pathlib import Path

from stages.plumbing.errors import clear_errors
from stages.studies.command import parser
from stages.studies.lengths import study

if __name__ == "__main__":
    options = parser(study, "gets the results")
    options.add_argument("--root", type=Path, help="folder with the data of scale `files`; else generated text alone")
    options.add_argument("--workers", type=int, help="processes; default: one a core")
    given = options.parse_args()
    with clear_errors():
        study.main(given.folder.resolve(), given.root and given.root.resolve(), given.workers)
