"""Which commands of dvc.yaml are done, as far as dvc.lock tells."""

import re
from pathlib import Path
from typing import Any

import yaml

from stages.plumbing.settings import Settings

LOCK = Path("dvc.lock")


class _Lock(yaml.CSafeLoader):
    """Reads a float such as 1e-08 as YAML 1.2, in which DVC writes it; to YAML 1.1 that is a text."""


_Lock.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def finished(settings: Settings, *names: str) -> list[str]:
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
    return [name for name in names if name in stages and _is_finished(stages[name], present, written)]


def _is_finished(stage: dict, present: dict, written: dict[str, str]) -> bool:
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
