"""The files of a finished job: `result.json` names every other file in the job's folder with a SHA-256.

The result is written last and has a checksum of its own, so a job is finished, unfinished or damaged. Stages with jobs
of several models hand results on in data/results/STAGE/FINGERPRINT, an output of DVC, from which a clone takes finished
jobs after `dvc pull`. External files, such as the weights of models, are left out there, because another output of the
stage has them.
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

    `settings` decide the result; `seconds` is the time that the job function took.

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
    # stages link to the files, and an edit of any hard link edits all
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
        digest = record.pop("sha256")
        intact = digest == _digest_record(record) and isinstance(record["files"], dict) and "result" in record
    # what the lines above raise for a file that is no record
    except NO_RECORD:
        intact = False
    if not intact:
        raise ValueError(f"{path} is damaged")
    _require_inside(record["files"], path)
    for name, sha256 in record["files"].items():
        if not (folder / name).is_file() or compute_sha256(folder / name) != sha256:
            raise ValueError(f"{folder / name} is damaged")
    return record


def read_finished(folder: Path, required: tuple[str, ...]) -> dict | None:
    """Returns the checked record of a job; `None` if the job is unfinished, or the record lacks a required file."""
    record = read(folder)
    return None if record is None or list_lacking(record, required) else record


def list_lacking(record: dict, required: tuple[str, ...]) -> list[str]:
    """Lists the required files and folders, such as `model`, of which a record has no checksum."""
    lacking = []
    for name in required:
        if not any(PurePath(file).is_relative_to(name) for file in record["files"]):
            lacking.append(name)
    return lacking


def hand_on(stage: str, external_files: dict[Path, Container[str]]) -> None:
    """Replaces the results of a stage in data/results, which `dvc push` and `dvc pull` carry to other clones.

    `external_files` maps the folder of each job to the files and folders in the folder that are left out.
    """
    with make_temporary_sibling(RESULTS / stage) as output:
        output.mkdir()
        for folder, external in external_files.items():
            for name in (RESULT, DESCRIPTION, *_list_files(folder)):
                # the first part of a name: `model` for model/config.json
                if name.partition("/")[0] not in external:
                    link_file(folder / name, output / folder.name / name)


def bring_back(folder: Path, external_files: dict[str, Path]) -> None:
    """Restores a finished job from data/results, so that a pulled run is not computed again; the caller checks sums.

    Files that data/results lacks, such as weights, are in other outputs of the stage: `external_files` maps the name of
    such a file or folder to the path.
    """
    for handed_on in RESULTS.glob(f"*/{folder.name}"):
        sources = {name: handed_on / name for name in (RESULT, DESCRIPTION)}
        for name in _list_files(handed_on):
            # "model/config.json" -> "model", "config.json"
            first, _, rest = name.partition("/")
            sources[name] = external_files[first] / rest if first in external_files else handed_on / name
        if all(source.is_file() for source in sources.values()):
            with make_temporary_sibling(folder) as temporary:
                for name, source in sources.items():
                    link_file(source, temporary / name)
            return


def _list_files(folder: Path) -> list[str]:
    """Lists the files that a result names; empty if the result cannot be read."""
    path = folder / RESULT
    try:
        names = list(json.loads(path.read_bytes())["files"].keys())
    except (FileNotFoundError, *NO_RECORD):
        return []
    _require_inside(names, path)
    return names


def _require_inside(names: Iterable, path: Path) -> None:
    """Raises a ValueError if a name in the result at `path` could lead out of the folder."""
    for name in names:
        relative = PurePath(name)
        # `write` never writes a name that leads out
        leads_out = relative.is_absolute() or ".." in relative.parts
        if leads_out or relative.as_posix() != name or not name.isprintable() or len(name) > LONGEST:
            raise ValueError(
                f"{path} is damaged: {quote_value(name)} is not the name of a file in the folder of the result"
            )


def _require_finite(value: object, where: str) -> None:
    # `where` names the place of a nested value, such as "its result, log, 3, validation_loss"
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
