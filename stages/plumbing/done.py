"""Which commands dvc.yaml stands for, and which of them are done, as far as dvc.lock tells."""

import re
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from stages.plumbing.handover import pipeline
from stages.plumbing.settings import Settings

LOCK = Path("dvc.lock")


class _Lock(yaml.CSafeLoader):
    """Reads a float such as 1e-08 as YAML 1.2, in which DVC writes it; to YAML 1.1 that is a text."""


_Lock.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def commands(settings: Settings, stage: str, size: str | None = None) -> dict[str, dict[str, str]]:
    """Names all commands of a stage of dvc.yaml, with the arguments of each: none where the stage has no matrix.

    Args:
        settings: of params.yaml.
        stage: a name in dvc.yaml.
        size: one of `sizes`, where the commands of one size are wanted.
    """
    matrix = pipeline()[stage].get("matrix", {})
    present = settings.model_dump(mode="json") if matrix else {}
    values = {key: _value(present, text.strip("${}")) for key, text in matrix.items()}
    if size and "size" in values:
        values["size"] = [size]
    chosen = [dict(zip(values, each, strict=True)) for each in product(*values.values())]
    return {"@".join(filter(None, (stage, "-".join(each.values())))): each for each in chosen}


def made(settings: Settings, *names: str) -> list[str]:
    """Those of the commands that dvc.lock has with the parameters of today and with inputs that were not written since.

    Their outputs are there. Edited code and original data do not count here; `dvc status` compares them, too, and takes
    its time.

    Args:
        settings: of params.yaml.
        names: of commands, as in dvc.lock: `corpus`, `pretraining@original-tiny`.
    """
    stages = yaml.load(LOCK.read_text(), _Lock)["stages"] if LOCK.exists() else {}
    present = settings.model_dump(mode="json", exclude_unset=True)
    written = {out["path"]: out["md5"] for stage in stages.values() for out in stage.get("outs", [])}
    return [name for name in names if name in stages and _is_made(stages[name], present, written)]


def _is_made(stage: dict, present: dict, written: dict[str, str]) -> bool:
    used = stage.get("params", {}).get("params.yaml", {})
    return (
        all(_value(present, key) == value for key, value in used.items())
        and all(written.get(dep["path"], dep["md5"]) == dep["md5"] for dep in stage.get("deps", []))
        and all(Path(out["path"]).exists() for out in stage.get("outs", []))
    )


def _value(section: Any, key: str) -> Any:
    for part in key.split("."):
        section = section.get(part) if isinstance(section, dict) else None
    return section
