"""What the stage report reads: the tables that earlier stages left, and the records of the run."""

import pandas as pd

from stages.evidence import baselines, published
from stages.plumbing import handover
from stages.plumbing.files import ANALYSIS, AUDIT, SENTENCE_PAIRS, STATISTICS
from stages.plumbing.settings import Settings
from stages.report import provenance

KEYS = {name: "str" for name in ("stage", "metric", "protocol", "evaluated_on", "operator", "size")}


def read(name: str, **options) -> pd.DataFrame:
    """Reads one table that the stage analysis left, by its name."""
    return pd.read_csv(ANALYSIS / f"{name}.csv", **options)


def select(rows: pd.DataFrame, **wanted: object) -> pd.DataFrame:
    """Selects the rows that have these values; where several are given, as a list or tuple, one of them."""
    for field, value in wanted.items() if len(rows) else ():
        rows = rows[rows[field].isin(value if isinstance(value, (list, tuple)) else [value])]
    return rows


def summaries() -> pd.DataFrame:
    """Reads the summaries of this run's scores, with empty text for keys that do not apply."""
    return read("summaries", dtype=KEYS).fillna(dict.fromkeys(KEYS, ""))


def audited() -> pd.DataFrame:
    """Reads the checks of the published numbers, as the stage audit left them."""
    return pd.read_csv(AUDIT, keep_default_na=False)


def studies() -> pd.DataFrame:
    """Reads what this repository's own studies found, each against the original; without what this very run found."""
    told, run = pd.read_csv(published.FOLDER / "studies.csv"), select(read("contrasts"), source="reproduced")
    return told[~(told["estimate"].isin(run["estimate"]) & told["low"].isin(run["low"]))]


def task_statistics() -> pd.DataFrame:
    """Reads how many examples every split of every task has, as the stage tasks left it."""
    return pd.read_csv(STATISTICS)


def pairs_ledger() -> pd.DataFrame:
    """Reads what became of every sentence pair; it is empty where a study has left translation out."""
    path = SENTENCE_PAIRS / "ledger.csv"
    return (
        pd.read_csv(path) if path.exists() else pd.DataFrame(columns=["protocol", "split", "fate", "reason", "pairs"])
    )


def constant_answers(metric: str, protocol: str = "") -> dict[str, float]:
    """Selects the score of a constant answer, in per cent, by split."""
    rows = read("baselines").fillna({"protocol": ""})
    rows = select(rows, operator=baselines.MOST_FREQUENT, metric=metric, protocol=protocol)
    return (100 * rows.set_index("evaluated_on")["value"]).to_dict()


def signatures() -> list[str]:
    """Collects the signatures that sacrebleu gave with the scores of this run's translations."""
    records = provenance.records(["translation"])
    return sorted({signature for record in records for signature in record.get("sacrebleu", ())})


def run_records(settings: Settings) -> list[dict]:
    """Reads the records in data/runs that this run consists of, in the order of the pipeline."""
    names = [command.replace("@", "-") for command in handover.commands(settings)]  # as main names their records
    return provenance.records(names)
