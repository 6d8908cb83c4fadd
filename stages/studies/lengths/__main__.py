"""python -m stages.studies.lengths FOLDER [--root DATA] [--workers N]"""

from pathlib import Path

from stages.plumbing.errors import clear_errors
from stages.studies.command import parser
from stages.studies.lengths import study

if __name__ == "__main__":
    command = parser(study, "gets the results")
    command.add_argument("--root", type=Path, help="folder with the data of scale `files`; else generated text alone")
    command.add_argument("--workers", type=int, help="processes; default: one a core")
    options = command.parse_args()
    with clear_errors():  # the paths become absolute, as the study changes the working directory
        study.main(options.folder.resolve(), options.root and options.root.resolve(), options.workers)
