"""The files of a finished job: `result.json` names every other file in the job's folder with a SHA-256.

The result is written last and holds a checksum of its own content, so a job is finished, unfinished or damaged. Stages
with jobs of several models publish results in data/results/STAGE/FINGERPRINT, an output that DVC keeps. A clone that
has pulled this output, or an experiment of DVC in a separate folder, takes finished jobs from there.
"""

import hashlib
import json
import math
from collections.abc import Container, Iterable
from pathlib import Path, PurePath

from stages.files.paths import RESULTS
from stages.files.quoting import quote_value
from stages.files.storage import (
    compute_sha256,
    link_file,
    list_visible,
    make_read_only,
    make_temporary_sibling,
    write_atomically,
)

RESULT = "result.json"
# name and settings of the job, for a reader
DESCRIPTION = "job.json"
# The ways in which reading fails for a file that is no record. Any other error of the disk stops the stage, because a
# damaged job is deleted.
NO_RECORD = (IsADirectoryError, ValueError, KeyError, AttributeError, TypeError, RecursionError)
# characters of a name in a result, at most
LONGEST = 200
# has no checksum in RESULT: `training.checkpoints` checks the file when it is loaded
CHECKPOINT = "checkpoint.safetensors"


def write(folder: Path, name: str, settings: dict, result: dict, seconds: float) -> None:
    """Finishes a job: writes a description for a reader, and the result with the checksums of all other files.

    The other files become read-only, because stages publish hard links and an edit of any link edits all.

    Args:
        folder: the folder of the job.
        name: the name of the job.
        settings: the settings that decide the result, as JSON.
        result: the job function's return value, JSON.
        seconds: how long the function took.

    Raises:
        ValueError: a number of the result is not finite; the message names the place.
    """
    _require_finite(result, "its result")
    files = {}
    for path in list_visible(folder):
        if path.is_file() and path.name not in (RESULT, DESCRIPTION, CHECKPOINT):
            files[path.relative_to(folder).as_posix()] = compute_sha256(path)
    record = {"files": files, "result": result, "seconds": seconds}
    record["sha256"] = _digest_record(record)
    write_atomically(folder / DESCRIPTION, json.dumps({"name": name, "settings": settings}, indent=1, sort_keys=True))
    write_atomically(folder / RESULT, json.dumps(record, sort_keys=True))
    for file in files:
        make_read_only(folder / file)


def read(folder: Path) -> dict | None:
    """Reads and checks the record of a job: `result`, `seconds` and `files` (SHA-256 by name); `None` if unfinished.

    Raises:
        ValueError: the result is damaged, or a file is damaged or missing; the message names the file.
    """
    path = folder / RESULT
    if not path.exists():
        return None
    try:
        record = json.loads(path.read_bytes())
        intact = (
            record.pop("sha256") == _digest_record(record) and isinstance(record["files"], dict) and "result" in record
        )
    except NO_RECORD:
        intact = False
    if not intact:
        raise ValueError(f"{path} is damaged")
    _require_inside(record["files"], path)
    for name, digest in record["files"].items():
        if not (folder / name).is_file() or compute_sha256(folder / name) != digest:
            raise ValueError(f"{folder / name} is damaged")
    return record


def hand_on(stage: str, external_files: dict[Path, Container[str]]) -> None:
    """Replaces the results of a stage in data/results, which `dvc push` and `dvc pull` carry to other clones.

    Args:
        stage: the name of the stage.
        external_files: the folder of each job -> names of external files and folders in the folder, left out here.
    """
    with make_temporary_sibling(RESULTS / stage) as output:
        output.mkdir()
        for folder, external in external_files.items():
            for name in (RESULT, DESCRIPTION, *_list_files(folder)):
                if name.partition("/")[0] not in external:
                    _link_file(folder / name, output / folder.name / name)


def bring_back(folder: Path, external_files: dict[str, Path]) -> None:
    """Restores the folder of a job from data/results, as after `dvc pull` in a new clone, if all files are there.

    The caller checks the files.

    Args:
        folder: the folder of the job, in data/jobs, whose name is the fingerprint.
        external_files: name of an external file or folder -> path in another output of the stage.

    Raises:
        ValueError: a result names a file that could lie outside the folder.
    """
    for handed_on in RESULTS.glob(f"*/{folder.name}"):
        sources = {name: handed_on / name for name in (RESULT, DESCRIPTION)}
        for name in _list_files(handed_on):
            first, _, rest = name.partition("/")
            sources[name] = external_files[first] / rest if first in external_files else handed_on / name
        if all(source.is_file() for source in sources.values()):
            with make_temporary_sibling(folder) as temporary:
                for name, source in sources.items():
                    _link_file(source, temporary / name)
            return


def _link_file(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    link_file(source, target)


def _list_files(folder: Path) -> list[str]:
    """Lists the files that a result names, by relative name; empty if the result cannot be read.

    Raises:
        ValueError: a name could lead out of the folder.
    """
    path = folder / RESULT
    try:
        names = list(json.loads(path.read_bytes())["files"].keys())
    except (FileNotFoundError, *NO_RECORD):
        return []
    _require_inside(names, path)
    return names


def _require_inside(names: Iterable, path: Path) -> None:
    """Checks that the file names in a result stay in the folder of the result, which may come from elsewhere.

    Args:
        names: the names.
        path: the file of the result, for the message.

    Raises:
        ValueError: a name is absolute, contains `..`, is not in normal form (such as `a//b` or `./a`), is longer than
            200 characters, or has a character that cannot be printed.
    """
    for name in names:
        relative = PurePath(name)
        leads_out = relative.is_absolute() or ".." in relative.parts
        if leads_out or relative.as_posix() != name or not name.isprintable() or len(name) > LONGEST:
            raise ValueError(
                f"{path} is damaged: {quote_value(name)} is not the name of a file in the folder of the result"
            )


def _require_finite(value: object, where: str) -> None:
    """Raises a ValueError for NaN or infinity anywhere in a result; `where` names the place of `value`."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{where} is {value}, not a finite number; if the training diverged, lower the learning rate")
    parts = []
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list):
        parts = enumerate(value)
    for key, part in parts:
        _require_finite(part, f"{where}, {key}")


def _digest_record(record: dict) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
