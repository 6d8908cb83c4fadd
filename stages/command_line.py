"""Runs a stage of dvc.yaml: `python -m stages NAME ...`; `--help` describes the inputs and outputs of the stage.

`python -m stages scale NAME` writes the whole params.yaml of a scale. `python -m stages verify` trains a model of the
recorded run again, and compares the bytes.

A stage NAME is the function `main` of stages/NAME/stage.py. Arguments after the settings come from the command line; an
argument that is left out is `None`. The dictionary that `main` returns goes into data/runs, with times, versions and
processor of the run. `None` leaves no record, as after a part of the jobs, `settings` and `report`.
"""

import argparse
import ast
import importlib
import json
import os
import time
from pathlib import Path

from stages.files.paths import RUNS
from stages.files.quoting import show_controls
from stages.files.storage import write_atomically
from stages.runner import jobs, pipeline
from stages.runner.provenance import describe_provenance
from stages.schema import scales
from stages.schema.names import require_listed
from stages.schema.settings import PATH, Settings, load_settings

FOLDER = Path(__file__).parent
# the key of params.yaml that lists the values of an argument
LISTS = {"protocol": "protocols", "operator": "operators", "size": "sizes", "seed": "seeds"}


def run(words: list[str]) -> None:
    """Runs a command, given as the words after `python -m stages`; without words, prints the help."""
    arguments = vars(build_parser().parse_args(words or ["--help"]))
    name = arguments.pop("stage")
    # an argument that the command line leaves out is None
    given = {argument: value for argument, value in arguments.items() if value}
    if name == "scale":
        print(show_controls(scales.write(arguments["scale"], PATH)))
    elif name == "verify":
        verify(given)
    else:
        run_stage(name, given)


def verify(arguments: dict[str, str]) -> None:
    """Trains a model of stage `pretraining` again and compares weights and losses with the recorded run.

    Args:
        arguments: operator, size and seed, as far as the command line names them.
    """
    settings = load_settings()
    require_arguments(settings, "pretraining", arguments)
    # by name, as `run_stage` imports stages: an import statement for a module of a stage is allowed only in the
    # stage's own folder
    verification = importlib.import_module("stages.pretraining.verification")
    verification.main(settings, **arguments)


def run_stage(name: str, arguments: dict[str, str]) -> None:
    """Runs a stage, and writes the record of the run to data/runs/STAGE.json.

    Args:
        name: the name of the stage.
        arguments: the arguments of the stage that the command line gives, such as {"size": "tiny"}.
    """
    settings = load_settings()
    inputs = pipeline.read_inputs(name, settings)
    # workers are forked from a server, which starts here to import the modules of jobs while this process goes on
    jobs.prepare_server(FOLDER / name / "stage.py", settings.workers)
    require_arguments(settings, name, arguments)
    # DVC sets this variable for every command, also of a dvc.yaml elsewhere
    stages = list(pipeline.read_pipeline())
    if "DVC_STAGE" in os.environ and name in stages:
        print(f"{name}: stage {stages.index(name) + 1} of {len(stages)}", flush=True)
    pipeline.require_inputs(name)
    # Without DVC, the user's own operators may have changed since stage `settings` tried these. The check is not in
    # stages/pretraining, because jobs begin anew after a change of any code that the stage imports.
    if name == "pretraining" and "DVC_STAGE" not in os.environ:
        operators = [arguments["operator"]] if "operator" in arguments else settings.operators
        importlib.import_module("stages.settings.stage").require_own_operators(settings, operators)

    stage = importlib.import_module(f"stages.{name}.stage")
    started = time.perf_counter()
    record = describe_provenance()
    entries = stage.main(settings, **arguments)
    pipeline.require_unchanged(name, inputs)
    # as for stages `settings` and `report`, and for a run of only some jobs of a stage
    if entries is None:
        return
    record |= entries
    record["stage"] = name
    record["seconds"] = round(time.perf_counter() - started, 1)
    if jobs.SECONDS:
        record["seconds_of_jobs"] = round(sum(jobs.SECONDS.values()), 1)
    write_atomically(RUNS / f"{name}.json", json.dumps(record, indent=1, sort_keys=True) + "\n")


def require_arguments(settings: Settings, stage: str, arguments: dict[str, str]) -> None:
    """Checks that params.yaml lists the values of arguments of a stage.

    Args:
        settings: the content of params.yaml.
        stage: the name of the stage.
        arguments: the values on the command line by argument, such as {"size": "tiny"}.

    Raises:
        ValueError: a value is not listed; the message names the key of params.yaml.
    """
    for argument, value in arguments.items():
        key = LISTS[argument]
        place = f"{key} of params.yaml"
        # the section of a stage may have a list for its own models, such as `translation.operators`
        section = getattr(settings, stage, None)
        if hasattr(section, key):
            place = f"{stage}.{place}"
        else:
            section = settings
        # seeds are numbers in params.yaml, and texts on the command line
        listed = [str(entry) for entry in getattr(section, key)]
        require_listed(value, argument, listed, place)


def build_parser() -> argparse.ArgumentParser:
    """Builds the parser of the command line: a sub-command for every stage, and `scale` and `verify`."""
    parser = argparse.ArgumentParser(
        prog="python -m stages",
        description="Runs a stage of the pipeline, or the command `scale` or `verify`. `python -m stages NAME --help` "
        "describes the inputs and outputs of NAME.",
    )
    commands = parser.add_subparsers(dest="stage", metavar="NAME", required=True)
    replaces = "Replaces params.yaml with the settings of a scale, and prints your edits that are lost."
    scale = commands.add_parser("scale", help=replaces, description=replaces)
    scale.add_argument("scale", choices=scales.list_scales(), help="Name of the scale.")
    _add_command(commands, "verify", FOLDER / "pretraining" / "verification.py")
    for source in sorted(FOLDER.glob("*/stage.py")):
        _add_command(commands, source.parent.name, source)
    return parser


def _add_command(commands: argparse._SubParsersAction, name: str, source: Path) -> None:
    """Adds the sub-command that runs the function `main` of a file, with the docstring of the file as help.

    The arguments of the sub-command are the arguments of `main` after the settings; all are optional.
    """
    # parsed and not imported, so that help answers at once
    tree = ast.parse(source.read_text(encoding="utf-8"))
    description = ast.get_docstring(tree) or ""
    command = commands.add_parser(
        name,
        help=description.splitlines()[0],
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "main":
            # the first argument is the settings
            for argument in node.args.args[1:]:
                help_text = f"Only this {argument.arg}, which `{LISTS[argument.arg]}` in params.yaml lists."
                command.add_argument(argument.arg, nargs="?", help=help_text)
