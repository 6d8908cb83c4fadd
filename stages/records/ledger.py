"""The ledger of filtering: a table (ledger.csv) that accounts for every document and byte of a corpus.

A row is (shard, fate, rule, reason, documents, bytes, all_documents, all_bytes). The fate is how documents ended:
- `in`: all documents, the sum of the other fates
- `kept`: selected
- `not_selected`: sound, but beyond the limit on documents
- `malformed`: no sound record
- `dropped`: dropped by a rule of stages/filtering/rules.py, or by the rule `text` with the reason `empty` (no text)

Only `dropped` has a rule and a reason. A dropped document counts in `documents` and `bytes` under the first reason that
applies, in `all_documents` and `all_bytes` under every reason that applies. The shard `total` sums over all shards.
"""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

TOTAL = "total"
KEYS = ["shard", "fate", "rule", "reason"]
COUNTS = ["documents", "bytes", "all_documents", "all_bytes"]
COLUMNS = [*KEYS, *COUNTS]


def add_total(rows: Iterable[tuple]) -> pd.DataFrame:
    """Makes the ledger from rows of all shards, and adds rows of the shard `total`, the sums over all shards."""
    ledger = pd.DataFrame(rows, columns=COLUMNS)
    # rows with equal fate, rule and reason
    groups = ledger.assign(shard=TOTAL).groupby(KEYS, sort=False, as_index=False)
    return pd.concat([ledger, groups[COUNTS].sum()], ignore_index=True)


def read_ledger(path: Path) -> pd.DataFrame:
    """Reads ledger.csv; a row without a rule has empty texts. ValueError if the file is missing or not a ledger."""
    if not path.exists():
        raise ValueError(f"{path}: no such file; run `dvc repro filtering` to make it")
    header = ",".join(COLUMNS)
    # pandas would also read other tables, so the first line is checked
    with path.open(encoding="utf-8", errors="replace") as file:
        first = file.readline().rstrip("\n")
    if first != header:
        raise ValueError(f"{path}: not a ledger: the first line is not {header}; run `dvc repro filtering`")
    return pd.read_csv(path, keep_default_na=False)
