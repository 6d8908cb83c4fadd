"""Reads the files that earlier stages left, as they are; table_rows.py has the frames that are computed for a table."""

import json
from collections.abc import Iterable

import pandas as pd

from stages.evidence import cells
from stages.evidence.fields import select_rows
from stages.evidence.verdicts import AUDITED
from stages.files.paths import ANALYSIS, RUNS, SENTENCE_PAIRS
from stages.runner.pipeline import read_pipeline
from stages.schema.settings import REFERENCE

# columns of the summaries that are texts, and may be empty
KEYS = dict.fromkeys(("stage", "metric", "protocol", "evaluated_on", "operator", "size"), "str")


def read_table(name: str, **options) -> pd.DataFrame:
    """Reads one table that the stage analysis left."""
    return pd.read_csv(ANALYSIS / f"{name}.csv", **options)


def read_summaries() -> pd.DataFrame:
    """Reads the summaries of the counts, losses and scores (fractions) of this run, a row per quantity.

    Fields that do not apply are empty texts. `n` counts the units that `unit` names, such as pre-training seeds.
    """
    return read_table("summaries", dtype=KEYS).fillna(dict.fromkeys(KEYS, ""))


def read_cells() -> pd.DataFrame:
    """Reads the filled cells of the published tables; stages/evidence/cells.py describes the columns."""
    return read_table("cells", dtype=cells.TYPES)


def read_claims() -> pd.DataFrame:
    """Reads the judged claims, all texts; `numbers` has the words of the audit."""
    return read_table("claims").fillna("").replace({"numbers": AUDITED})


def select_contrasts(further: bool = False, **wanted: object) -> pd.DataFrame:
    """Selects comparisons of operators with the original, or, with `further`, all other comparisons (`analysis.pairs`).

    `wanted` gives the value, or a list of values, by column, such as `size="base"`. stages/analysis/contrasts.yaml
    describes the columns.
    """
    rows = read_table("contrasts", dtype={"protocol": "str"}).fillna({"protocol": ""})
    # an arm such as `symmetric - original` is a difference of two arms
    single = ~rows["arm"].str.contains(" - ", regex=False)
    with_original = single & (rows["reference"] == REFERENCE)
    # `with_original` itself, or the opposite if `further`
    return select_rows(rows[with_original != further], **wanted)


def read_sentence_pairs() -> pd.DataFrame:
    """Reads the ledger that counts sentence pairs; empty if this run translates nothing."""
    path = SENTENCE_PAIRS / "ledger.csv"
    if path.exists():
        return pd.read_csv(path)
    return pd.DataFrame(columns=["protocol", "split", "fate", "reason", "pairs"])


def read_run_records() -> list[dict]:
    """Reads the records of the stages of this run, in the order of the pipeline."""
    return read_records(read_pipeline())


def read_records(names: Iterable[str]) -> list[dict]:
    """Reads the records of data/runs with these names, in order. Missing records are left out."""
    paths = [RUNS / f"{name}.json" for name in names]
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.exists()]


def list_environment(runs: list[dict]) -> pd.DataFrame:
    """Lists commit, machine, versions and inputs from records of stages; differing values are joined by "; "."""
    # pairs of fact and value, such as ("Cores", "2")
    facts = []
    keys = ("commit", "python", "system", "processor", "cores", "device")
    for run in runs:
        facts += [(key.capitalize(), str(run[key])) for key in keys if key in run]
        facts += run.get("packages", {}).items()
    # in a second loop, so that inputs stand below the facts of all stages
    for run in runs:
        facts += [(f"Read by {run['stage']}", name) for name in run.get("read", [])]
    rows = pd.DataFrame(facts, columns=["fact", "value"]).drop_duplicates()
    return rows.groupby("fact", sort=False)["value"].agg("; ".join).reset_index()
