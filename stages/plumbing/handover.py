"""What one stage hands to another: dvc.yaml names it, and the maker's record in data/runs has the SHA-256 of each file.

A stage that finds its input missing or other than it was left, or a file there that no stage has left, stops with the
file's name. This costs one more reading of the inputs, several files at a time: 0.6 GB a second on a core without
instructions for SHA-256.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import nan
from pathlib import Path

from stages.plumbing.documents import read_yaml
from stages.plumbing.files import CHECKED, PREDICTIONS, RESULTS, digests
from stages.plumbing.observations import RUNS
from stages.plumbing.settings import Settings

MAY_LACK = {PREDICTIONS}  # as in a study of pre-training
PIPELINE = Path(__file__).parents[2] / "dvc.yaml"


@dataclass(frozen=True)
class Command:
    """One command of dvc.yaml: its stage, the arguments from the stage's matrix, the paths that it reads and writes."""

    stage: str
    arguments: dict[str, str]
    reads: tuple[Path, ...]
    writes: tuple[Path, ...]


@cache
def pipeline() -> dict:
    """The stages of dvc.yaml."""
    return read_yaml(PIPELINE)["stages"]


def commands(settings: Settings) -> dict[str, Command]:
    """All commands of dvc.yaml by the names that DVC gives them, in an order in which each comes after what it reads.

    A stage with a matrix has a command for every combination of its values (`pretraining@original-tiny`), every other
    stage has one, of its own name.
    """
    by_name = {}
    for stage, entry in pipeline().items():
        matrix = {argument: getattr(settings, key.strip("${}")) for argument, key in entry.get("matrix", {}).items()}
        for values in product(*matrix.values()):
            arguments = dict(zip(matrix, values, strict=True))
            reads, writes = (paths(entry[key], arguments) for key in ("deps", "outs"))
            by_name[_name(stage, arguments)] = Command(stage, arguments, reads, writes)
    return by_name


def paths(entries: list, arguments: dict[str, str]) -> tuple[Path, ...]:
    """The paths of `deps` or `outs` of dvc.yaml, some of which have options.

    Args:
        entries: of one stage.
        arguments: of one command of its matrix, which take the places of `${item.NAME}`; empty leaves these.
    """
    texts = [entry if isinstance(entry, str) else next(iter(entry)) for entry in entries]
    for argument, value in arguments.items():
        texts = [text.replace(f"${{item.{argument}}}", value) for text in texts]
    return tuple(map(Path, texts))


def require_inputs(settings: Settings, stage: str, arguments: dict[str, str]) -> None:
    """Checks all data that dvc.yaml lists for a stage and that another stage makes.

    Of a folder to which several stages add, a pipeline may leave some out: what is there is checked.

    Args:
        settings: of params.yaml.
        stage: its name in dvc.yaml.
        arguments: that it was given, by name: those of its matrix, or of the part that it does.

    Raises:
        ValueError: some of it has yet to be made, or a file is not what its stage left, or was left by none.
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
    for path in (path for path in inputs if path not in MAY_LACK):
        parts = [output for output in makers if output.is_relative_to(path)]
        if _below(path, makers):
            required.append(path)
        elif len({makers[output].partition("@")[0] for output in parts}) == 1:
            required += parts
    for path in required:
        if path in makers and not path.exists():
            target = _name(stage, arguments if "matrix" in entry else {})
            raise ValueError(f"{path}: not made yet; `dvc repro {target}` runs what comes before {stage}, and {stage}")
    records = {record: _recorded(record) for record in sorted(RUNS.glob("*.json"))}
    for command in dict.fromkeys(makers.values()):
        record = _record(command)
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
    """The SHA-256 of every file that a stage has left, by its path.

    Left out are its record in data/runs, which will hold these digests, and finished jobs in data/results, which no
    other stage reads and which have checksums of their own.
    """
    outputs = paths(pipeline().get(stage, {"outs": []})["outs"], arguments)
    files = [file for path in outputs if not _below(path, (RUNS, RESULTS)) for file in _files(path)]
    return digests(files)


def seconds_taken(command: str) -> float:
    """How long a command took, by its record, which `require_inputs` has found to be JSON; NaN where it has none."""
    record = _record(command)
    return json.loads(record.read_text()).get("seconds", nan) if record.exists() else nan


def _name(stage: str, arguments: dict[str, str]) -> str:
    return "@".join(filter(None, (stage, "-".join(arguments.values()))))


def _record(command: str) -> Path:
    return RUNS / f"{command.replace('@', '-')}.json"


def _recorded(record: Path) -> dict[str, str]:
    try:
        return json.loads(record.read_bytes()).get("files", {})
    except (ValueError, AttributeError):
        command = record.stem.replace("-", "@", 1)
        raise ValueError(f"{record}: damaged, not JSON; delete it, and `dvc repro {command}` makes it again") from None


def _files(path: Path) -> list[str]:
    """The path itself where it is a file, else all files and links below it; not hidden ones, still being written."""
    below = sorted(file for file in path.rglob("*") if not any(part.startswith(".") for part in file.parts))
    return [file.as_posix() for file in (path, *below) if file.is_file() or file.is_symlink()]


def _below(file: Path | str, folders: Iterable[Path]) -> bool:
    return any(Path(file).is_relative_to(folder) for folder in folders)
