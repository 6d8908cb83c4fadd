"""The settings of a run beside the settings that the papers state (data/published/settings.csv), merged by key."""

import json

import pandas as pd

from stages.evidence import published
from stages.evidence.fields import select_rows
from stages.files.yaml_files import list_values

AS_STATED, DIFFERS, NOT_STATED = "as stated", "differs", "not stated"


def compare(params: dict, source: str) -> pd.DataFrame:
    """Compares the settings of a run with the settings that a source, such as `courtois2024`, states.

    Returns the source's rows of settings.csv, with `run`, the value of this run, and `comparison`, such as `differs`. A
    row without a key is a difference that no setting changes.
    """
    stated = published.read_texts("settings")
    rows = select_rows(stated, source=source).merge(list_settings(params), on="key", how="left")
    # left out: keys that the run lacks, such as the keys of a protocol that it does not use
    rows = rows[(rows["key"] == "") | rows["run"].notna()].fillna("")
    return rows.assign(comparison=list(map(compare_setting, rows["stated"], rows["run"])))


def compare_setting(stated: str, run: str) -> str:
    """Compares a setting by the texts of both values; the order of a list is no difference."""
    if not stated:
        return NOT_STATED
    if sorted(stated.split(", ")) == sorted(run.split(", ")):
        return AS_STATED
    return DIFFERS


def list_without_counterpart(params: dict) -> pd.DataFrame:
    """Lists the settings that settings.csv does not name; columns: key, run (the value)."""
    run = list_settings(params)
    return run[~run["key"].isin(published.read_texts("settings")["key"])]


def count_differing(compared: pd.DataFrame) -> str:
    """Counts the settings that differ from a source, as in `14 of 60`: of 60 stated settings."""
    words = compared["comparison"]
    return f"{(words == DIFFERS).sum()} of {(words != NOT_STATED).sum()}"


def list_settings(params: dict) -> pd.DataFrame:
    """Lists all settings as texts; columns: key, run."""
    corpus = params["corpus"]
    # each data set has keys of its own, such as corpus.hub.0.repository
    corpus = {**corpus, "hub": dict(enumerate(corpus["hub"]))}
    values = list_values({**params, "corpus": corpus})
    texts = [(key, format_value(value)) for key, value in values.items()]
    return pd.DataFrame(texts, columns=["key", "run"])


def format_value(value: object) -> str:
    """Formats a value as in settings.csv: None is `null`, and ["a", "b"] is `a, b`."""
    if isinstance(value, list):
        return ", ".join(map(format_value, value)) or "none"
    return value if isinstance(value, str) else json.dumps(value)
