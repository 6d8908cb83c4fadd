"""Every setting of a run next to the value that the papers state.

A row of data/published/settings.csv has the value that a source states for a key of params.yaml, and says how the two
values are compared; data/published/README.md describes the columns. The report lists all other keys in another table.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from stages.evidence import published

PATH = Path(__file__).with_name("deviations.yaml")
COLUMNS = ("setting", "key", "paper", "code", "run", "verdict")
AS_STATED, DIFFERS, DIFFERS_FROM_CODE = "as stated", "differs", "differs from their code"
NOT_STATED, NO_EFFECT = "not stated", "without effect in this run"

# `part` of settings.csv: the verdict on an equal value, and on a different value
VERDICTS = {
    "paper": (AS_STATED, DIFFERS),
    "code": ("as their code", DIFFERS_FROM_CODE),
    "followed": ("as the setup that it follows", "differs from the setup that it follows"),
}

# Rules of the filter: the metadata of documents that each rule reads
METADATA = {
    "filtering.excluded_categories": "categories",
    "filtering.harmful_pp.above": "harmful_pp",
    "filtering.harmful_pp.below": "harmful_pp",
    "filtering.quality_warnings": "quality_warnings",
}

# Lists of tasks without which settings have no effect, by the begin of the settings' keys; the longest begin holds
TESTED = {
    "tasks.": "tasks.names",
    "tasks.questions.": "tasks.questions.names",
    "finetuning.": "tasks.names",
    "question_answering.": "question_answering.tasks",
    "noise.": "noise.tasks",
    "cross_domain.": "cross_domain.tasks",
    "convergence.": "convergence.tasks",
    "timing.protocol": "timing.tasks",
}


@cache
def read_deviations() -> dict:
    """Reads deviations.yaml: `fixed`, entries by source, and `open`, choices by source and item."""
    return yaml.safe_load(PATH.read_text(encoding="utf-8"))


@cache
def read_stated() -> list[dict[str, Any]]:
    """Reads the rows of settings.csv as dictionaries; `value` and `needs` are parsed, all other columns are texts."""
    # a text such as "null" is no missing value
    table = pd.read_csv(published.FOLDER / "settings.csv", dtype="str", keep_default_na=False)
    rows = table.to_dict("records")
    for row in rows:
        row["value"] = yaml.safe_load(row["value"])
        row["needs"] = yaml.safe_load(row["needs"])
    return rows


@cache
def read_null_words() -> dict[str, str]:
    """Reads the words of the report for null, by key, of every key in settings.csv; empty for most keys."""
    return {row["key"]: row["null"] for row in read_stated()}


def list_settings(section: dict, above: str = "") -> dict[str, Any]:
    """Lists all settings by dotted key: {"data": {"root": "a"}} gives {"data.root": "a"}.

    A section that settings.csv compares as a whole is one setting. Every entry of `models` and `variants` is one, too.

    Args:
        section: the settings, or a section of the settings, as nested dictionaries.
        above: the key of the section with a full stop, such as `data.`; empty for all settings.
    """
    settings = {}
    for name, value in section.items():
        key = f"{above}{name}"
        whole = key in read_null_words() or above in ("models.", "variants.")
        if isinstance(value, dict) and not whole:
            settings.update(list_settings(value, f"{key}."))
        else:
            settings[key] = value
    return settings


def compare(params: dict, source: str, unknown: Mapping[str, int] | None = None) -> pd.DataFrame:
    """Compares the settings of a run with the settings that a source, such as a paper, states or leaves open.

    Args:
        params: the settings as nested dictionaries.
        source: the source, such as `courtois2024`.
        unknown: the number of documents that lack a kind of metadata, by kind, such as {"harmful_pp": 3}.

    Returns:
        A row of texts per setting, with the columns
        setting, key: name in words, and key of params.yaml.
        paper: the value in the text of the source.
        code: the value in the code of the source, or in the setup that the source follows.
        run: the value of this run.
        verdict: such as `as stated` or `differs`.
        The last rows have no key: differences that no setting can change.
    """
    settings = list_settings(params)
    stated, same = [], {}
    for row in read_stated():
        key = row["key"]
        # a run may lack a section, such as translation.protocols.blog
        if row["source"] == source and key in settings:
            stated.append(row)
            same[key] = is_same(settings[key], row["value"], row["compare"])

    rows = [_compare_row(row, settings, same, unknown or {}) for row in stated]
    for entry in read_deviations()["fixed"].get(source, ()):
        row = {
            "setting": entry["setting"],
            "key": "",
            "paper": entry.get("paper", NOT_STATED),
            "code": entry.get("code", ""),
            "run": entry["run"],
            "verdict": DIFFERS if "paper" in entry else DIFFERS_FROM_CODE,
        }
        rows.append(row)
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _compare_row(row: dict, settings: dict[str, Any], same: dict[str, bool], unknown: Mapping[str, int]) -> dict:
    """Compares one setting of a run with the row of settings.csv on that setting.

    Args:
        row: the row of settings.csv.
        settings: all settings by dotted key.
        same: by key, whether the run has the value of the source.
        unknown: the number of documents that lack a kind of metadata, by kind.
    """
    key, part = row["key"], row["part"]
    found = {
        "setting": row["setting"],
        "key": key,
        "paper": NOT_STATED,
        "code": "",
        "run": show_setting(settings, key),
        "verdict": NOT_STATED,
    }
    if part in VERDICTS:
        column = "paper" if part == "paper" else "code"
        found[column] = row["printed"] or format_value(row["value"])
        as_stated, differs = VERDICTS[part]
        # "all documents" are the source's documents only if the data set is the source's, too
        alike = all(same.get(other, False) for other in [key, *row["also"].split()])
        found["verdict"] = as_stated if alike else differs

    # A rule that lets documents without metadata pass is not the source's. A setting drops those without perplexity.
    missing = unknown.get(METADATA.get(key, ""), 0)
    if METADATA.get(key) == "harmful_pp" and settings["filtering.missing_harmful_pp"] == "drop":
        missing = 0
    if missing:
        found["run"] += f"; {missing:,} documents have no such metadata and pass"
        found["verdict"] = DIFFERS

    tested = find_tested(key)
    if tested and not settings[tested] and key != tested:
        found["run"] += f" (only with a task in {tested})"
        found["verdict"] = NO_EFFECT
    elif row["needs"] and not is_met(row["needs"], settings):
        found["run"] += f" (only with {describe_needs(row['needs'])})"
        found["verdict"] = NO_EFFECT
    return found


def find_tested(key: str) -> str | None:
    """Finds the list of tasks without which a setting has no effect: `noise.tasks` for `noise.levels`.

    Returns:
        The dotted key of the list; None for settings that depend on no such list.
    """
    begins = [begin for begin in TESTED if key.startswith(begin)]
    if not begins:
        return None
    return TESTED[max(begins, key=len)]


def is_same(value: Any, stated: Any, comparison: str) -> bool:
    """Compares the value of a run with the value that a source states.

    Args:
        value: the value of the run.
        stated: the value of the source.
        comparison: the way to compare, from settings.csv: `covers` (all stated items are in the value), `among` (all
            items are among the stated), `count` (the number of items), `contains` (as a part of the text); otherwise,
            equality, for lists in any order.
    """
    if isinstance(value, list) and value and isinstance(value[0], dict):
        # data sets on the hub: a source names repositories, no revisions
        value = [entry["repository"] for entry in value]
    match comparison:
        case "covers":
            return set(value) >= set(stated)
        case "among":
            return set(value) <= set(stated)
        case "count":
            return len(value) == stated
        case "contains":
            return stated in str(value)
    if isinstance(stated, list):
        return sorted(value) == sorted(stated)
    return value == stated


def is_met(needs: dict[str, list], settings: dict[str, Any]) -> bool:
    """Checks whether a setting has an effect: whether at least one of the settings in `needs` has a listed value.

    Args:
        needs: the values that give the setting an effect, by dotted key, such as {"data.source": ["files", "hub"]}.
        settings: all settings by dotted key. A list has all values that the list contains.
    """
    for key, wanted in needs.items():
        value = settings.get(key, [])
        present = value if isinstance(value, list) else [value]
        if key == "operators":
            # a variant counts as the operator that it varies
            varied = [settings.get(f"variants.{name}") for name in present]
            present = present + [variant["operator"] for variant in varied if variant]
        if not set(wanted).isdisjoint(present):
            return True
    return False


def describe_needs(needs: dict[str, list]) -> str:
    """Words a condition: {"data.source": ["files", "hub"]} gives "data.source: files or data.source: hub"."""
    conditions = []
    for key, wanted in needs.items():
        conditions.extend(f"{key}: {format_value(value)}" for value in wanted)
    return " or ".join(conditions)


def count_differing(compared: pd.DataFrame) -> str:
    """Counts the settings that differ from a source, as in `14 of 60`: of 60 known values that have an effect."""
    different, total = 0, 0
    for as_stated, differs in VERDICTS.values():
        different += sum(compared["verdict"] == differs)
        total += sum(compared["verdict"].isin([as_stated, differs]))
    return f"{different} of {total}"


def list_without_counterpart(params: dict) -> pd.DataFrame:
    """Lists the settings that no source has, as a frame of texts: key, run (the value)."""
    rows = []
    for key, value in list_settings(params).items():
        if key not in read_null_words():
            rows.append({"key": key, "run": format_value(value)})
    return pd.DataFrame(rows, columns=["key", "run"])


def show_setting(settings: dict[str, Any], key: str) -> str:
    """Formats the value of a setting; settings.csv says how null is printed, such as `all documents`."""
    words = read_null_words().get(key)
    if settings[key] is None and words:
        return words
    return format_value(settings[key])


def format_value(value: Any) -> str:
    """Formats a value: true as `yes`, lists with commas or as `none`, integers as `1,000`, floats with 6 digits."""
    match value:
        case None:
            return "null"
        case dict():
            return ", ".join(f"{name} {format_value(item)}" for name, item in value.items() if item is not None)
        case []:
            return "none"
        case list():
            mark = "; " if value and isinstance(value[0], dict) else ", "
            return mark.join(format_value(item) for item in value)
        case bool():  # before int, of which bool is a subclass
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:g}"
    return str(value)
