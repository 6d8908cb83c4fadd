"""The ledger of filtering, which accounts for every document and byte.

A row is (shard, fate, rule, reason, documents, bytes, all_documents, all_bytes). Fates: `in` = `kept`
+ `not_selected` + `malformed` + `dropped`, in documents and bytes, for each shard and for the shard `total`.
A dropped document counts in `documents` under the first reason that applies to it, in `all_documents` under
every one.
"""

from pathlib import Path

import pandas as pd

TOTAL = "total"
COUNTS = ["documents", "bytes", "all_documents", "all_bytes"]
COLUMNS = ["shard", "fate", "rule", "reason", *COUNTS]


def with_total(rows: list[tuple]) -> pd.DataFrame:
    """Makes a ledger of rows (COLUMNS) and, after them, their sums over shards as rows of the shard `total`."""
    ledger = pd.DataFrame(rows, columns=COLUMNS)
    total = ledger.groupby(["fate", "rule", "reason"], sort=False, as_index=False)[COUNTS].sum()
    return pd.concat([ledger, total.assign(shard=TOTAL)[COLUMNS]], ignore_index=True)


def read_ledger(path: Path) -> pd.DataFrame:
    """Reads a ledger; no rule or reason is the empty text. ValueError when the file is missing or not a ledger."""
    if not path.exists():
        raise ValueError(f"{path}: no such file; run `dvc repro filtering` to make it")
    ledger = pd.read_csv(path, keep_default_na=False) if path.stat().st_size else pd.DataFrame()
    if list(ledger.columns) != COLUMNS:
        raise ValueError(f"{path}: not a ledger, its first line is not {','.join(COLUMNS)}; run `dvc repro filtering`")
    return ledger
