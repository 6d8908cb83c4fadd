"""What one stage hands to another: dvc.yaml names it, and the maker's record in data/runs has the SHA-256 of each file.

A stage that finds its input missing or other than it was left stops with the file's name. That costs one reading of the
inputs more, files in parallel, at 0.6 GB a second on one core without instructions for SHA-256.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from stages.plumbing.documents import read_yaml
from stages.plumbing.files import CHECKED, sha256
from stages.plumbing.observations import RUNS

PIPELINE = Path(__file__).parents[2] / "dvc.yaml"


def require_inputs(stage: str, arguments: dict[str, str]) -> None:
    """Checks all data that dvc.yaml lists for a stage and that another stage makes.

    Args:
        stage: its name in dvc.yaml.
        arguments: of its matrix, by name.

    Raises:
        ValueError: some of it has yet to be made, or a file is not what its stage left.
    """
    stages = pipeline()
    inputs = [filled(dep, arguments) for dep in stages.get(stage, {"deps": []})["deps"] if dep != CHECKED.as_posix()]
    made = [filled(out, arguments) for entry in stages.values() for out in entry["outs"] if isinstance(out, str)]
    for path in inputs:
        if path in made and not Path(path).exists():
            target = "@".join(filter(None, (stage, "-".join(arguments.values()))))
            raise ValueError(f"{path}: not made yet; `dvc repro {target}` runs what comes before {stage}, and {stage}")
    whole = [path for path in inputs if any(Path(path).is_relative_to(out) for out in made)]
    for record in sorted(RUNS.glob("*.json")):
        left = {file: digest for file, digest in _left(record).items() if _below(file, inputs)}
        asked = [file for file in left if Path(file).exists() or _below(file, whole)]
        for file, digest in zip(asked, _digests(asked), strict=True):
            if digest != left[file]:
                raise ValueError(
                    f"{file}: {'damaged' if digest else 'missing'}, not as its stage left it ({record} has its "
                    f"SHA-256); `dvc repro -f -s {record.stem.replace('-', '@', 1)}` makes it again"
                )


def left_by(stage: str, arguments: dict[str, str]) -> dict[str, str]:
    """The SHA-256 of every file that a stage has left, by its path; its record in data/runs is not among them."""
    outs = [filled(out, arguments) for out in pipeline().get(stage, {"outs": []})["outs"] if isinstance(out, str)]
    paths = [Path(out) for out in outs if not Path(out).is_relative_to(RUNS)]
    files = [file.as_posix() for path in paths for file in (path, *sorted(path.rglob("*"))) if file.is_file()]
    return dict(zip(files, _digests(files), strict=True))


@cache
def pipeline() -> dict:
    """The stages of dvc.yaml; none in a wheel, which holds the code alone."""
    return read_yaml(PIPELINE)["stages"] if PIPELINE.exists() else {}


def filled(path: str, arguments: dict[str, str]) -> str:
    """A path of dvc.yaml with the arguments of one command of a matrix in their places."""
    for argument, value in arguments.items():
        path = path.replace(f"${{item.{argument}}}", value)
    return path


def _left(record: Path) -> dict[str, str]:
    try:
        return json.loads(record.read_bytes()).get("files", {})
    except (ValueError, AttributeError):
        target = record.stem.replace("-", "@", 1)
        raise ValueError(f"{record}: damaged, not JSON; `dvc repro -f -s {target}` makes it again") from None


def _below(file: str, folders: list[str]) -> bool:
    return any(Path(file).is_relative_to(folder) for folder in folders)


def _digests(files: list[str]) -> list[str | None]:
    """SHA-256 of each file; None for one that is not there."""
    with ThreadPoolExecutor() as threads:
        return list(threads.map(lambda file: sha256(Path(file)) if Path(file).is_file() else None, files))
