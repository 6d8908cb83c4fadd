"""What of a run is done already, as far as dvc.lock tells: commands whose parameters and outputs are there."""

from itertools import product
from pathlib import Path
from typing import Any

import yaml

from stages.plumbing.settings import Settings

PIPELINE = Path("dvc.yaml")
LOCK = Path("dvc.lock")


def made(settings: Settings, *names: str) -> int:
    """Counts the commands whose parameters in dvc.lock are those of today and whose outputs are there.

    Edited code or data do not count here; `dvc status` compares them, too, and takes its time.

    Args:
        settings: of params.yaml.
        names: of commands, as in dvc.lock: `corpus`, `pretraining@original-tiny`.
    """
    stages = yaml.load(LOCK.read_text(), yaml.CSafeLoader)["stages"] if LOCK.exists() else {}
    present = settings.model_dump(mode="json")
    return sum(_is_made(stages[name], present) for name in names if name in stages)


def commands(settings: Settings, stage: str, size: str) -> list[str]:
    """Names all commands of a stage of dvc.yaml at one of `sizes`; the stage itself where it has no matrix."""
    matrix = yaml.safe_load(PIPELINE.read_text())["stages"][stage].get("matrix", {})
    present = settings.model_dump(mode="json")
    values = [[size] if key == "size" else _value(present, text.strip("${}")) for key, text in matrix.items()]
    return [f"{stage}@{'-'.join(chosen)}" for chosen in product(*values)] if matrix else [stage]


def _is_made(stage: dict, present: dict) -> bool:
    used = stage.get("params", {}).get("params.yaml", {})
    outputs = [Path(output["path"]) for output in stage.get("outs", [])]
    return all(_value(present, key) == value for key, value in used.items()) and all(map(Path.exists, outputs))


def _value(section: Any, key: str) -> Any:
    for part in key.split("."):
        section = section.get(part) if isinstance(section, dict) else None
    return section
