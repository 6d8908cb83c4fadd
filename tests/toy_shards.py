"""Shards of documents, the settings that filter them, and what is left of them, for the tests of filtering."""

from pathlib import Path

import pandas as pd

from stages.plumbing.sections import Filtering
from stages.records import reading
from stages.records.ledger import TOTAL, read_ledger

EXCLUDED = ["agressif", "adult", "cryptojacking", "dangerous_material", "phishing", "warez", "ddos"]
EXCLUDED += ["hacking", "malware", "mixed_adult", "sect"]


def settings(**changes) -> Filtering:
    values = {
        "excluded_categories": EXCLUDED,
        "harmful_pp": {"above": 5.0, "below": 100_000.0},
        "missing_harmful_pp": "drop",
        "quality_warnings": "drop",
        "annotation": {"blocklists": None, "kenlm_model": None, "quality_rules": False},
        "documents": None,
        "selection": "first",
        "seed": 1,
        "malformed_share": 0.99,
    }
    return Filtering(**(values | changes))


def write_shard(path: Path, lines: list[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with reading.zstd_writer(path) as file:
        file.write(b"\n".join(lines))


def totals(folder: Path) -> pd.DataFrame:
    ledger = read_ledger(folder / "ledger.csv")
    return ledger[ledger["shard"] == TOTAL]


def kept_lines(folder: Path) -> list[bytes]:
    return [line for shard in reading.shards(folder) for line in reading.lines(shard)]
