"""The ledger of filtering, which accounts for every document and byte.

A row is (shard, fate, rule, reason, documents, bytes, all_documents, all_bytes). Fates: `in` = `kept` (selected)
+ `not_selected` (sound, but beyond the limit on documents) + `malformed` + `dropped`, in documents and bytes, for each
shard and for the shard `total`. Only `dropped` has a rule and a reason: a rule of stages/filtering/rules.py, or `text`
with the reason `empty` for a document without text, which no other rule judges. A dropped document counts in
`documents` and `bytes` under the first reason that applies, in `all_documents` and `all_bytes` under every reason that
applies. The numbers are equal for all other fates.
"""

from pathlib import Path

import pandas as pd

TOTAL = "total"
COUNTS = ["documents", "bytes", "all_documents", "all_bytes"]
COLUMNS = ["shard", "fate", "rule", "reason", *COUNTS]


def add_total(rows: list[tuple]) -> pd.DataFrame:
    """Makes a ledger of rows, and appends the sums over all shards as rows of the shard `total`."""
    ledger = pd.DataFrame(rows, columns=COLUMNS)
    by_fate = ledger.groupby(["fate", "rule", "reason"], sort=False, as_index=False)
    total = by_fate[COUNTS].sum()
    total["shard"] = TOTAL
    return pd.concat([ledger, total[COLUMNS]], ignore_index=True)


def read_ledger(path: Path) -> pd.DataFrame:
    """Reads a ledger; a row without a rule has empty texts. ValueError when the file is missing or not a ledger."""
    if not path.exists():
        raise ValueError(f"{path}: no such file; run `dvc repro filtering` to make it")
    header = ",".join(COLUMNS)
    # pandas would also read other tables, so the first line is checked
    with path.open(encoding="utf-8", errors="replace") as file:
        first = file.readline().rstrip("\n")
    if first != header:
        raise ValueError(f"{path}: not a ledger: the first line is not {header}; run `dvc repro filtering`")
    return pd.read_csv(path, keep_default_na=False)
