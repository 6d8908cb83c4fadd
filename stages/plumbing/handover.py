"""What one stage hands to another: dvc.yaml names it, and the maker's record in data/runs has the SHA-256 of each file.

A stage that finds its input missing or other than it was left, or a file there that no stage has left, stops with the
file's name. That costs one reading of the inputs more, files in parallel, at 0.6 GB a second on one core without
instructions for SHA-256.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import product
from pathlib import Path

from stages.plumbing.documents import read_yaml
from stages.plumbing.files import CHECKED, PREDICTIONS, RESULTS, sha256
from stages.plumbing.observations import RUNS
from stages.plumbing.settings import Settings

MAY_LACK = {PREDICTIONS.as_posix()}  # as in a study of pre-training
PIPELINE = Path(__file__).parents[2] / "dvc.yaml"


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
    stages = pipeline()
    entry = stages.get(stage, {"deps": []})
    inputs = [filled(dep, arguments) for dep in entry["deps"] if dep != CHECKED.as_posix()]
    made = {
        filled(out, given): (maker, command)
        for maker in stages
        for command, given in commands(settings, maker).items()
        for out in paths(stages[maker]["outs"])
        if all(given.get(argument, value) == value for argument, value in arguments.items())
    }
    required = []
    for path in (path for path in inputs if path not in MAY_LACK):
        parts = [out for out in made if Path(out).is_relative_to(path)]
        if any(Path(path).is_relative_to(out) for out in made):
            required.append(path)
        elif len({made[out][0] for out in parts}) == 1:
            required += parts
    for path in required:
        if path in made and not Path(path).exists():
            target = "@".join(filter(None, (stage, "-".join(arguments.values()) if "matrix" in entry else "")))
            raise ValueError(f"{path}: not made yet; `dvc repro {target}` runs what comes before {stage}, and {stage}")
    records = {record: _left(record) for record in sorted(RUNS.glob("*.json"))}
    for command in dict.fromkeys(command for _, command in made.values()):
        record = RUNS / f"{command.replace('@', '-')}.json"
        left = {file: digest for file, digest in records.get(record, {}).items() if _below(file, inputs)}
        asked = [file for file in left if Path(file).exists() or _below(file, required)]
        for file, digest in zip(asked, _digests(asked), strict=True):
            if digest != left[file]:
                raise ValueError(
                    f"{file}: {'damaged' if digest else 'missing'}, not as its stage left it ({record} has its "
                    f"SHA-256); {'delete it, and ' if digest else ''}`dvc repro {command}` makes it again"
                )
    recorded = set().union(*records.values())  # also of what is no longer asked for
    for path in inputs:  # of what was left without any record nothing is known
        files = _files(Path(path)) if any(_below(file, [path]) for file in recorded) else []
        if strange := [file for file in files if file not in recorded]:
            raise ValueError(
                f"{strange[0]}: no stage has left it (no record in {RUNS} has it), and {stage} would count it; delete "
                "it, or move it elsewhere"
            )


def left_by(stage: str, arguments: dict[str, str]) -> dict[str, str]:
    """The SHA-256 of every file that a stage has left, by its path.

    Not of its record in data/runs, which is to hold them, nor of what it hands on in data/results to itself alone.
    """
    outs = [Path(filled(out, arguments)) for out in paths(pipeline().get(stage, {"outs": []})["outs"])]
    told = [path for path in outs if not any(path.is_relative_to(other) for other in (RUNS, RESULTS))]
    files = [file for path in told for file in _files(path)]
    return dict(zip(files, _digests(files), strict=True))


@cache
def pipeline() -> dict:
    """The stages of dvc.yaml."""
    return read_yaml(PIPELINE)["stages"]


def commands(settings: Settings, stage: str, size: str | None = None) -> dict[str, dict[str, str]]:
    """Names all commands of a stage of dvc.yaml, with the arguments of each: none where the stage has no matrix.

    Args:
        settings: of params.yaml.
        stage: a name in dvc.yaml.
        size: one of `sizes`, where the commands of one size are wanted.
    """
    matrix = pipeline()[stage].get("matrix", {})
    values = {argument: getattr(settings, key.strip("${}")) for argument, key in matrix.items()}
    if size and "size" in values:
        values["size"] = [size]
    chosen = [dict(zip(values, each, strict=True)) for each in product(*values.values())]
    return {"@".join(filter(None, (stage, "-".join(each.values())))): each for each in chosen}


def paths(entries: list) -> list[str]:
    """The paths of `deps` or `outs`, of which some have options."""
    return [entry if isinstance(entry, str) else next(iter(entry)) for entry in entries]


def filled(path: str, arguments: dict[str, str]) -> str:
    """A path of dvc.yaml with the arguments of one command of a matrix in their places."""
    for argument, value in arguments.items():
        path = path.replace(f"${{item.{argument}}}", value)
    return path


def _left(record: Path) -> dict[str, str]:
    try:
        return json.loads(record.read_bytes()).get("files", {})
    except (ValueError, AttributeError):
        command = record.stem.replace("-", "@", 1)
        raise ValueError(f"{record}: damaged, not JSON; delete it, and `dvc repro {command}` makes it again") from None


def _files(path: Path) -> list[str]:
    """A file, or those below a folder and links to others; hidden ones, of a stage that is at work, left out."""
    below = sorted(each for each in path.rglob("*") if not any(part.startswith(".") for part in each.parts))
    return [each.as_posix() for each in (path, *below) if each.is_file() or each.is_symlink()]


def _below(file: str, folders: list[str]) -> bool:
    return any(Path(file).is_relative_to(folder) for folder in folders)


def _digests(files: list[str]) -> list[str | None]:
    """SHA-256 of each file; None for one that is not there."""
    with ThreadPoolExecutor() as threads:
        return list(threads.map(lambda file: sha256(Path(file)) if Path(file).is_file() else None, files))
