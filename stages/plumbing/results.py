"""What a finished job leaves in its folder: `result.json`, which names every file beside it with its SHA-256.

The result is written last and holds a checksum of itself, so a job is finished, or it is not, or it is damaged.

A stage with jobs of several models (model_jobs.py) hands their results on in data/results/STAGE, an output that DVC
keeps between runs: a clone that has pulled them, or an experiment beside the workspace, has no data/jobs, and takes
from there what is done.
"""

import hashlib
import json
import math
from collections.abc import Container
from pathlib import Path

from stages.plumbing.files import RESULTS, place, sha256, temporary_sibling, write_atomically

RESULT = "result.json"
DESCRIPTION = "job.json"
CHECKPOINT = "checkpoint.safetensors"  # checks itself when it is loaded; no other stage uses it


def write(folder: Path, name: str, settings: dict, result: dict) -> None:
    """Finishes a job: describes it for a reader, and writes its result with the checksums of what it has left.

    The files become read-only: stages hand them on as links, and an edit of one would be an edit of all.

    Args:
        folder: of the job.
        name: of the job.
        settings: of the job, as JSON.
        result: what its function has returned, JSON.

    Raises:
        ValueError: a number of the result is not finite; the message names its place.
    """
    _require_finite(result, "its result")
    beside = (RESULT, DESCRIPTION, CHECKPOINT)
    # hidden: what a worker has left that was killed while it wrote; it goes when the same name is written again
    paths = [path for path in sorted(folder.rglob("[!.]*")) if path.is_file() and path.name not in beside]
    files = {path.relative_to(folder).as_posix(): path for path in paths}
    record = {"files": {name: sha256(path) for name, path in files.items()}, "result": result}
    write_atomically(folder / DESCRIPTION, json.dumps({"name": name, "settings": settings}, indent=1, sort_keys=True))
    write_atomically(folder / RESULT, json.dumps(record | {"sha256": _digest(record)}, sort_keys=True))
    for path in files.values():
        path.chmod(0o444)


def read(folder: Path) -> dict | None:
    """The result of a job, or None where it is not finished.

    Raises:
        ValueError: it is damaged; the message names the file.
    """
    path = folder / RESULT
    if not path.exists():
        return None
    try:
        record = json.loads(path.read_bytes())
        intact = record.pop("sha256") == _digest(record)
    except (ValueError, KeyError, AttributeError, TypeError):  # as what is no record happens to fail
        intact = False
    if not intact:
        raise ValueError(f"{path} is damaged")
    for name, digest in record["files"].items():
        if not (folder / name).is_file() or sha256(folder / name) != digest:
            raise ValueError(f"{folder / name} is damaged")
    return record["result"]


def hand_on(stage: str, folders: dict[Path, Container[str]]) -> None:
    """Leaves what all jobs of a stage have left in data/results, from which other clones take it.

    folders: of the jobs, and the files and folders in each that are left out, as another output of the stage has them.
    """
    with temporary_sibling(RESULTS / stage) as output:
        output.mkdir()
        for folder, without in folders.items():
            for name in (RESULT, DESCRIPTION, *_files(folder)):
                if name.partition("/")[0] not in without:
                    target = output / folder.name / name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    place(folder / name, target)


def bring_back(folder: Path, places: dict[str, Path]) -> None:
    """Makes the folder of a job from what was handed on, where all of its files are there; `read` checks them.

    Args:
        folder: of the job.
        places: where another output of the stage has what `hand_on` left out, by its name.
    """
    for handed_on in RESULTS.glob(f"*/{folder.name}"):
        sources = {name: handed_on / name for name in (RESULT, DESCRIPTION)}
        for name in _files(handed_on):
            first, _, rest = name.partition("/")
            sources[name] = places[first] / rest if first in places else handed_on / name
        if all(source.is_file() for source in sources.values()):
            with temporary_sibling(folder) as temporary:
                for name, source in sources.items():
                    (temporary / name).parent.mkdir(parents=True, exist_ok=True)
                    place(source, temporary / name)
            return


def _files(folder: Path) -> list[str]:
    """What a job has left beside its result; nothing where the result is damaged."""
    try:
        return list(json.loads((folder / RESULT).read_bytes())["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _require_finite(value: object, place: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{place} is {value}, not a finite number; did the training diverge?")
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        _require_finite(part, f"{place}, {key}")


def _digest(record: dict) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
