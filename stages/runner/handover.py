"""What one stage hands to another: dvc.yaml names it, and the maker's record in data/runs has the SHA-256 of each file.

A stage stops with the name of a file among its inputs that is missing, is not as its maker left it, or that no stage
has left. The check reads all of them, several at a time: 0.6 GB a second on a core without instructions for SHA-256.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import nan
from pathlib import Path

from stages.files.documents import read_yaml
from stages.files.paths import CHECKED, PREDICTIONS, RESULTS, RUNS, TASK_FOLDER
from stages.files.storage import digests, visible
from stages.schema.settings import Settings

MAY_LACK = {"analysis": {PREDICTIONS, TASK_FOLDER}}  # inputs that a study of pre-training does not make
PIPELINE = Path(__file__).parents[2] / "dvc.yaml"


@dataclass(frozen=True)
class Command:
    """One command of dvc.yaml.

    stage: the name of its stage. arguments: its values of the stage's matrix, by name; empty without a matrix. reads,
    writes: the paths under `deps` (folders of code among them) and `outs`.
    """

    stage: str
    arguments: dict[str, str]
    reads: tuple[Path, ...]
    writes: tuple[Path, ...]


@cache
def pipeline() -> dict:
    """The entries of dvc.yaml by the names of the stages, in the order of the file; read once."""
    return read_yaml(PIPELINE)["stages"]


def commands(settings: Settings) -> dict[str, Command]:
    """Returns all commands of dvc.yaml by the names that DVC gives them, each after those whose outputs it reads.

    A stage with a matrix has a command for every combination of its values (`pretraining@original-tiny`); every other
    stage has one command, under its own name.
    """
    by_name = {}
    for stage, entry in pipeline().items():  # ${operators} in a matrix is the list of this name in params.yaml
        matrix = {argument: getattr(settings, key.strip("${}")) for argument, key in entry.get("matrix", {}).items()}
        for values in product(*matrix.values()):
            arguments = dict(zip(matrix, values, strict=True))
            reads, writes = (paths(entry[key], arguments) for key in ("deps", "outs"))
            by_name[_name(stage, arguments)] = Command(stage, arguments, reads, writes)
    return by_name


def paths(entries: list, arguments: dict[str, str]) -> tuple[Path, ...]:
    """Returns the paths under `deps` or `outs` of one stage of dvc.yaml.

    entries: those there, each a text or, for a path with options, a dictionary {path: options}. arguments: values by
    name, which replace `${item.NAME}`; where a name is missing, `${item.NAME}` stays.
    """
    texts = [entry if isinstance(entry, str) else next(iter(entry)) for entry in entries]
    for argument, value in arguments.items():
        texts = [text.replace(f"${{item.{argument}}}", value) for text in texts]
    return tuple(map(Path, texts))


def require_inputs(settings: Settings, stage: str, arguments: dict[str, str]) -> None:
    """Checks the inputs of a stage, as dvc.yaml lists them, that other stages make; every file of them by its SHA-256.

    Where several stages add to one folder (data/observations), a pipeline may leave out some of these stages: of such a
    folder, and of MAY_LACK, only the files that are there are checked.

    Args:
        settings, stage: of params.yaml, and a name in dvc.yaml; a stage that is not there has nothing to check.
        arguments: the arguments that the stage was given, by name: the values of its matrix, or the part of its work
            that it is to do. Commands of other values do not count as makers of its inputs.

    Raises:
        ValueError: an input that is a whole output has yet to be made; a file is missing, or is not as its maker left
            it; a file stands in an input that is in no record; or a record is no JSON.
    """
    entry = pipeline().get(stage, {"deps": []})
    inputs = [path for path in paths(entry["deps"], arguments) if path != CHECKED]
    makers = {
        path: name
        for name, command in commands(settings).items()
        if all(command.arguments.get(argument, value) == value for argument, value in arguments.items())
        for path in command.writes
    }
    required = []
    for path in (path for path in inputs if path not in MAY_LACK.get(stage, ())):
        parts = [output for output in makers if output.is_relative_to(path)]
        if _below(path, makers):  # one output, or a part of one
            required.append(path)
        elif len({makers[output].partition("@")[0] for output in parts}) == 1:  # a folder that one stage fills
            required += parts
    for path in required:
        if path in makers and not path.exists():
            target = _name(stage, arguments if "matrix" in entry else {})
            raise ValueError(f"{path}: not made yet; `dvc repro {target}` runs what comes before {stage}, and {stage}")
    records = {record: _recorded(record) for record in sorted(RUNS.glob("*.json"))}
    for command in dict.fromkeys(makers.values()):
        record = record_of(command)
        left = {file: digest for file, digest in records.get(record, {}).items() if _below(file, inputs)}
        checked = [file for file in left if Path(file).exists() or _below(file, required)]
        for file, digest in digests(checked).items():
            if digest != left[file]:
                raise ValueError(
                    f"{file}: {'damaged' if digest else 'missing'}, not as its stage left it ({record} has its "
                    f"SHA-256); {'delete it, and ' if digest else ''}`dvc repro {command}` makes it again"
                )
    recorded = set().union(*records.values())  # also of what is no longer asked for
    for path in inputs:  # of what was left without any record nothing is known
        files = _files(path) if any(_below(file, [path]) for file in recorded) else []
        if strange := [file for file in files if file not in recorded]:
            raise ValueError(
                f"{strange[0]}: no stage has left it (no record in {RUNS} has it), and {stage} would count it; delete "
                "it, or move it elsewhere"
            )


def output_digests(stage: str, arguments: dict[str, str]) -> dict[str, str | None]:
    """Computes the SHA-256 of every file that a stage has left, by the file's path; None for a link that leads nowhere.

    Left out are its record in data/runs, which will hold these digests, and finished jobs in data/results, which no
    other stage reads and which have checksums of their own. A stage that is not in dvc.yaml has left nothing.
    arguments: the values of the stage's matrix, by name.
    """
    outputs = paths(pipeline().get(stage, {"outs": []})["outs"], arguments)
    files = [file for path in outputs if not _below(path, (RUNS, RESULTS)) for file in _files(path)]
    return digests(files)


def seconds_taken(command: str) -> float:
    """Returns how many seconds a command took, by its record; NaN where there is no record, or no time in it."""
    record = record_of(command)  # which is JSON, as `require_inputs` has found before
    return json.loads(record.read_text()).get("seconds", nan) if record.exists() else nan


def _name(stage: str, arguments: dict[str, str]) -> str:
    """DVC's name of a command: STAGE, and for a stage with a matrix STAGE@VALUE-VALUE."""
    return "@".join(filter(None, (stage, "-".join(arguments.values()))))


def record_of(command: str) -> Path:
    """The record of a command: data/runs/pretraining-original-tiny.json for `pretraining@original-tiny`."""
    return RUNS / f"{command.replace('@', '-')}.json"


def _recorded(record: Path) -> dict[str, str]:
    """The SHA-256 of each file that a record names, by the file's path. ValueError for what is no record."""
    try:
        return json.loads(record.read_bytes()).get("files", {})
    except (ValueError, AttributeError):
        command = record.stem.replace("-", "@", 1)  # no name of a stage has a hyphen
        raise ValueError(f"{record}: damaged, not JSON; delete it, and `dvc repro {command}` makes it again") from None


def _files(path: Path) -> list[str]:
    """The path itself where it is a file, else all files and links below it that `visible` lists."""
    return [file.as_posix() for file in (path, *visible(path)) if file.is_file() or file.is_symlink()]


def _below(file: Path | str, folders: Iterable[Path]) -> bool:
    """Whether a path is one of `folders`, or lies in one of them."""
    return any(Path(file).is_relative_to(folder) for folder in folders)
