"""What the stage report reads: the tables that earlier stages left, and the records of the run."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import yaml

from stages.evidence import published
from stages.evidence.baselines import AT_CHANCE
from stages.evidence.statistics import TOO_FEW
from stages.files.paths import ANALYSIS, AUDIT, RUNS, SENTENCE_PAIRS, STATISTICS
from stages.runner import handover
from stages.schema.settings import REFERENCE

KEYS = {name: "str" for name in ("stage", "metric", "protocol", "evaluated_on", "operator", "size")}
TEXTS = {"protocol": "str", "direction": "str"}  # columns of `contrasts` which may be empty
HIGHER, LOWER, UNDECIDED = "higher", "lower", "undecided"
FACTS = ("commit", "python", "system", "processor", "cores", "device")  # of a record


def read(name: str, **options) -> pd.DataFrame:
    """Reads one table that the stage analysis left, by its name; options: of pandas.read_csv."""
    return pd.read_csv(ANALYSIS / f"{name}.csv", **options)


def select(rows: pd.DataFrame, **wanted: object) -> pd.DataFrame:
    """Selects the rows that have these values in these columns; of a list or tuple of values, one is enough."""
    for field, value in wanted.items() if len(rows) else ():  # an empty frame may lack the columns
        rows = rows[rows[field].isin(value if isinstance(value, (list, tuple)) else [value])]
    return rows


def summaries() -> pd.DataFrame:
    """Reads the summaries of this run's counts, losses and scores (fractions); KEYS that do not apply are empty.

    mean, sd, and an interval, low to high: over the n units (`unit`, such as pre-training seeds). at_chance: whether a
    score is no better than a constant answer's. words_and_overlap: what a model of words scores.
    """
    return read("summaries", dtype=KEYS).fillna(dict.fromkeys(KEYS, ""))


def audited() -> pd.DataFrame:
    """Reads the checks of the published numbers: check (its name), source, statement, verdict, arithmetic, by, fact."""
    return pd.read_csv(AUDIT, keep_default_na=False)


def studies() -> pd.DataFrame:
    """Reads what this repository's own studies found of operators against the original, without what this run found.

    A run of the chain can be such a study itself, and its report has these differences elsewhere.
    """
    told, run = pd.read_csv(published.FOLDER / "studies.csv"), select(read("contrasts"), source="reproduced")
    told_ends, run_ends = (pd.MultiIndex.from_frame(frame[["estimate", "low"]]) for frame in (told, run))
    return told[~told_ends.isin(run_ends)]  # equal to the last digit in the estimate and in the lower end: this run's


def task_statistics() -> pd.DataFrame:
    """Reads what every split of every task has: task, split, examples, subset (of the original data), and more."""
    return pd.read_csv(STATISTICS)


def pairs_ledger() -> pd.DataFrame:
    """Counts what became of sentence pairs; it is empty where a study of one part of the chain made none."""
    path = SENTENCE_PAIRS / "ledger.csv"
    return (
        pd.read_csv(path) if path.exists() else pd.DataFrame(columns=["protocol", "split", "fate", "reason", "pairs"])
    )


def baseline_scores(name: str, metric: str, protocol: str = "") -> dict[str, float]:
    """Selects a baseline's `score` by a protocol, or a raw metric (`accuracy`) without: column or split -> per cent."""
    rows = read("baselines").fillna({"protocol": ""})
    rows = select(rows, operator=name, metric=metric, protocol=protocol)
    return (100 * rows.set_index("evaluated_on")["value"]).to_dict()


def run_records() -> list[dict]:
    """Reads the records in data/runs that this run consists of, in the order of the pipeline."""
    return records(handover.pipeline())


def contrasts(further: bool = False, **wanted: object) -> pd.DataFrame:
    """Selects comparisons of an operator with the original, or the further pairs of `analysis.pairs`.

    stages/analysis/contrasts.yaml describes the columns, such as quantity, source (reproduced or released), at (column,
    split or milestone), arm, estimate, its interval low to high, verdict and direction (HIGHER, LOWER or empty).

    Args:
        further: whether the further pairs are selected, in place of the comparisons with the original.
        wanted: as for `select`.
    """
    rows = read("contrasts", dtype=TEXTS).fillna(dict.fromkeys(TEXTS, ""))
    plain = (rows["reference"] == REFERENCE) & ~rows["arm"].str.contains(" - ", regex=False)
    return select(rows[plain != further], **wanted)


def finding(row: dict) -> str:
    """Returns HIGHER or LOWER where a row of `contrasts` shows it; else AT_CHANCE, TOO_FEW or UNDECIDED."""
    shown = row["verdict"] in (AT_CHANCE, TOO_FEW)
    return row["direction"] or (row["verdict"] if shown else UNDECIDED)


def records(names: Iterable[str]) -> list[dict]:
    """Reads the record of every named stage that has one, in order."""
    paths = (RUNS / f"{name}.json" for name in names)
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.exists()]


def environment(runs: list[dict], lock: Path) -> pd.DataFrame:
    """Lists what the stages of these records ran on: commit, digest of dvc.lock, versions, machine; and what they read.

    A row (fact, value) for every fact that is known; values that differ are joined by "; ". runs: of `records`.
    """
    rows = [(key.capitalize(), _distinct(run.get(key) for run in runs)) for key in FACTS]
    packages = sorted({name for run in runs for name in run.get("packages", {})})
    rows += [(name, _distinct(run.get("packages", {}).get(name) for run in runs)) for name in packages]
    rows.insert(1, ("dvc.lock", lock_digest(lock)))  # behind the commit
    rows += [(f"Read by {run['stage']}", "; ".join(run["read"])) for run in runs if "read" in run]
    return pd.DataFrame([row for row in rows if row[1]], columns=["fact", "value"])


def lock_digest(lock: Path) -> str:
    """Says in words the SHA-256 of dvc.lock without this stage's entry, which DVC writes after the report is made."""
    if not lock.exists():
        return "none: this run was not made by `dvc repro`"
    stages = yaml.safe_load(lock.read_text(encoding="utf-8")).get("stages", {})
    stages.pop("report", None)
    digest = hashlib.sha256(json.dumps(stages, sort_keys=True).encode()).hexdigest()
    return f"SHA-256 {digest} ({len(stages)} stages, without `report`)"


def _distinct(values: Iterable) -> str:
    """Joins the distinct values, None left out, in the order of their first appearance."""
    return "; ".join(dict.fromkeys(str(value) for value in values if value is not None))
