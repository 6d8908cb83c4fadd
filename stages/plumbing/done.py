"""Which commands dvc.yaml stands for, and which of them are done: those whose parameters and outputs dvc.lock has."""

from itertools import product
from pathlib import Path
from typing import Any

import yaml

from stages.plumbing.handover import pipeline
from stages.plumbing.settings import Settings

LOCK = Path("dvc.lock")


def commands(settings: Settings, stage: str, size: str | None = None) -> dict[str, dict[str, str]]:
    """Names all commands of a stage of dvc.yaml, with the arguments of each: none where the stage has no matrix.

    Args:
        settings: of params.yaml.
        stage: a name in dvc.yaml.
        size: one of `sizes`, where the commands of one size are wanted.
    """
    matrix = pipeline()[stage].get("matrix", {})
    present = settings.model_dump(mode="json") if matrix else {}
    values = [[size] if key == "size" and size else _value(present, text.strip("${}")) for key, text in matrix.items()]
    chosen = [dict(zip(matrix, each, strict=True)) for each in product(*values)]
    return {"@".join(filter(None, (stage, "-".join(each.values())))): each for each in chosen}


def made(settings: Settings, *names: str) -> list[str]:
    """Those of the commands whose parameters in dvc.lock are those of today and whose outputs are there.

    Edited code or data do not count here; `dvc status` compares them, too, and takes its time.

    Args:
        settings: of params.yaml.
        names: of commands, as in dvc.lock: `corpus`, `pretraining@original-tiny`.
    """
    stages = yaml.load(LOCK.read_text(), yaml.CSafeLoader)["stages"] if LOCK.exists() else {}
    present = settings.model_dump(mode="json")
    return [name for name in names if name in stages and _is_made(stages[name], present)]


def _is_made(stage: dict, present: dict) -> bool:
    used = stage.get("params", {}).get("params.yaml", {})
    outputs = [Path(output["path"]) for output in stage.get("outs", [])]
    return all(_value(present, key) == value for key, value in used.items()) and all(map(Path.exists, outputs))


def _value(section: Any, key: str) -> Any:
    for part in key.split("."):
        section = section.get(part) if isinstance(section, dict) else None
    return section
