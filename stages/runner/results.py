"""What a finished job leaves in its folder: `result.json`, which names every other file there with its SHA-256.

The result is written last and holds a checksum of itself, so a job is either finished, unfinished or damaged.
A stage with jobs of several models (model_jobs.py) hands their results on in data/results/STAGE/FINGERPRINT, an output
that DVC keeps between runs: a clone that has pulled it, or an experiment that DVC runs in a folder of its own, has no
data/jobs, and takes from there what is done.
"""

import hashlib
import json
import math
from collections.abc import Container
from pathlib import Path

from stages.files.paths import RESULTS
from stages.files.storage import place, sha256, temporary_sibling, visible, write_atomically

RESULT = "result.json"
DESCRIPTION = "job.json"  # name and settings of the job, for a reader
CHECKPOINT = "checkpoint.safetensors"  # has no checksum here: it checks itself when it is loaded


def write(folder: Path, name: str, settings: dict, result: dict) -> None:
    """Finishes a job: describes it for a reader, and writes its result with the checksums of its other files.

    These files become read-only: stages hand them on as hard links, and an edit of one would be an edit of all.

    Args:
        folder, name, settings: of the job; the settings are those that decide its result, as JSON.
        result: what the job function has returned, JSON.

    Raises:
        ValueError: a number of the result is not finite; the message names its place.
    """
    _require_finite(result, "its result")
    beside = (RESULT, DESCRIPTION, CHECKPOINT)
    paths = [path for path in visible(folder) if path.is_file() and path.name not in beside]
    files = {path.relative_to(folder).as_posix(): path for path in paths}
    record = {"files": {name: sha256(path) for name, path in files.items()}, "result": result}
    write_atomically(folder / DESCRIPTION, json.dumps({"name": name, "settings": settings}, indent=1, sort_keys=True))
    write_atomically(folder / RESULT, json.dumps(record | {"sha256": _digest(record)}, sort_keys=True))
    for path in files.values():
        path.chmod(0o444)


def read(folder: Path) -> dict | None:
    """Returns the result of a job, after a check of it and of all files that it names; None for an unfinished job.

    Raises:
        ValueError: the result is damaged, or a file is damaged or missing; the message names the file.
    """
    path = folder / RESULT
    if not path.exists():
        return None
    try:
        record = json.loads(path.read_bytes())
        intact = record.pop("sha256") == _digest(record)
    except (ValueError, KeyError, AttributeError, TypeError):  # all the ways in which something that is no record fails
        intact = False
    if not intact:
        raise ValueError(f"{path} is damaged")
    for name, digest in record["files"].items():
        if not (folder / name).is_file() or sha256(folder / name) != digest:
            raise ValueError(f"{folder / name} is damaged")
    return record["result"]


def hand_on(stage: str, folders: dict[Path, Container[str]]) -> None:
    """Replaces what data/results has of a stage by what all its jobs have left; other clones take it from there.

    folders: for the folder of each job, the names of the files and folders in it that are left out, because another
    output of the stage has them.
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
    """Makes the folder of a job from what was handed on, if all of its files are there; `read` then checks them.

    folder: that of the job, in data/jobs, whose name is the fingerprint. places: where another output of the stage has
    what `hand_on` has left out, by its name in the job's folder.
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
    """The files that a job has left, next to its result, by relative name; none where that cannot be read."""
    try:
        return list(json.loads((folder / RESULT).read_bytes())["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _require_finite(value: object, place: str) -> None:
    """ValueError for a NaN or infinity anywhere in a result; `place`, where `value` stands, begins the message."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{place} is {value}, not a finite number; did the training diverge?")
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        _require_finite(part, f"{place}, {key}")


def _digest(record: dict) -> str:
    """The SHA-256 of a record, which is the same in whatever order its keys stand."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
