"""Runs one stage of dvc.yaml: `python -m stages NAME ...`; with `--help` it says what the stage reads and writes.
`python -m stages scale NAME` writes the whole params.yaml of a scale.

A stage NAME is the function `main` of stages/NAME/stage.py. Its arguments after the settings are those of the command
line, or those in the name under which DVC runs it (`pretraining@OPERATOR-SIZE`); one that is left out is None. What it
returns, a dictionary, goes into data/runs together with the times, versions and processor of the run and the checksums
of its files; None leaves no record, where the stage did jobs alone and left no outputs, and for `settings`.
"""

import argparse
import ast
import importlib
import json
import os
import sys
import time
from pathlib import Path

from stages.files.storage import write_atomically
from stages.runner import jobs
from stages.runner.errors import clear_errors
from stages.schema import scales
from stages.schema.names import require_listed
from stages.schema.settings import PATH, load_settings

FOLDER = Path(__file__).parent
LISTS = {"protocol": "protocols", "operator": "operators", "size": "sizes"}  # argument: its key in params.yaml


def main(command_line: list[str]) -> None:
    """Does what the words after `python -m stages` say. An error that a user can mend ends it with a clear message."""
    arguments = vars(parser().parse_args(command_line))
    name = arguments.pop("stage")
    with clear_errors():
        if name == "scale":
            return print(scales.write(**arguments, path=PATH))
        settings = load_settings()
        # lets a server, from which the processes for jobs are forked, import what they need; pandas loads meanwhile
        jobs.prepare(FOLDER / name / "stage.py", settings.workers)
        from stages.files.paths import RUNS
        from stages.runner import handover, progress
        from stages.runner.provenance import provenance

        # DVC's name of the command (PATH:NAME of a dvc.yaml elsewhere); in the environment, where no shell reads it
        command = os.environ.get("DVC_STAGE", "").rpartition(":")[2]
        # no value holds a hyphen, and dvc.yaml lists the values in the order of the arguments of `main`
        if "@" in command and not any(arguments.values()):
            arguments = dict(zip(arguments, command.partition("@")[2].split("-"), strict=True))
        named = {argument: value for argument, value in arguments.items() if value}
        for argument, value in named.items():
            section, key = getattr(settings, name, None), LISTS[argument]  # the section of the stage's name, if any
            in_section = key in getattr(type(section), "model_fields", ())  # as in `translation.operators`
            allowed, place = getattr(section if in_section else settings, key), f"{name}.{key}" if in_section else key
            require_listed(value, argument, allowed, f"{place} of params.yaml")
        handover.require_inputs(settings, name, named)
        if command:
            progress.report(settings, command)
        stage = importlib.import_module(f"stages.{name}.stage")
        started, record = time.perf_counter(), provenance()
        entries = stage.main(settings, **named)
        if entries is not None:
            run = "-".join([name, *named.values()])
            record |= entries | {"stage": run, "files": handover.output_digests(name, named)}
            record["seconds"] = round(time.perf_counter() - started, 1)
            write_atomically(RUNS / f"{run}.json", json.dumps(record, indent=1, sort_keys=True) + "\n")


def parser() -> argparse.ArgumentParser:
    """Builds the parser of the command line, with a sub-command `scale` and one for every folder that holds a stage.

    The arguments of a stage are those of its function `main`, the settings left out; all of them are optional.
    """
    parser = argparse.ArgumentParser(
        prog="python -m stages", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    stages = parser.add_subparsers(dest="stage", metavar="NAME", required=True)
    scale = stages.add_parser("scale", help="Writes params.yaml anew, of one of the scales; says what it replaced.")
    scale.add_argument("scale", choices=scales.names())
    for source in sorted(FOLDER.glob("*/stage.py")):
        tree = ast.parse(source.read_text(encoding="utf-8"))  # read, not imported, so that help answers at once
        description = ast.get_docstring(tree)
        stage = stages.add_parser(
            source.parent.name,
            help=description.splitlines()[0],
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        [function] = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "main"]
        for argument in function.args.args[1:]:
            stage.add_argument(argument.arg, nargs="?", help=f"one of `{LISTS[argument.arg]}` in params.yaml")
    return parser


if __name__ == "__main__":
    main(sys.argv[1:])
