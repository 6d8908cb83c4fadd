"""Where the numbers come from: the records in data/runs, and the digest of dvc.lock."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import yaml

from stages.plumbing.observations import RUNS

FACTS = ("commit", "python", "system", "processor", "cores", "device")


def records(names: Iterable[str]) -> list[dict]:
    """Reads the record of every named stage instance that has one, in the given order."""
    paths = (RUNS / f"{name}.json" for name in names)
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.exists()]


def facts(runs: list[dict], lock: Path) -> pd.DataFrame:
    """Lists what the stages of these records ran on: commit, digest of dvc.lock, versions, machine.

    Values that differ between stages stand side by side. Columns: fact and value; a row for every fact that is known.
    """
    rows = [(key.capitalize(), _distinct(run.get(key) for run in runs)) for key in FACTS]
    packages = sorted({name for run in runs for name in run.get("packages", {})})
    rows += [(name, _distinct(run.get("packages", {}).get(name) for run in runs)) for name in packages]
    rows.insert(1, ("dvc.lock", lock_digest(lock)))
    rows += [(f"Read by {run['stage']}", "; ".join(run["read"])) for run in runs if "read" in run]
    return pd.DataFrame([row for row in rows if row[1]], columns=["fact", "value"])


def lock_digest(lock: Path) -> str:
    """Computes the SHA-256 of dvc.lock without this stage's entry, which DVC writes after the report is made."""
    if not lock.exists():
        return "none: this run was not made by `dvc repro`"
    stages = yaml.safe_load(lock.read_text(encoding="utf-8")).get("stages", {})
    stages.pop("report", None)
    digest = hashlib.sha256(json.dumps(stages, sort_keys=True).encode()).hexdigest()
    return f"SHA-256 {digest} ({len(stages)} stages, without `report`)"


def _distinct(values: Iterable) -> str:
    return "; ".join(dict.fromkeys(str(value) for value in values if value is not None))
