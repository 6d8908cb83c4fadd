"""Every setting of this run beside the paper's, or beside the authors' code where the paper is silent.

deviations.yaml pairs the keys of params.yaml with the entries of data/published/protocol.yaml.
"""

from pathlib import Path

import pandas as pd
import yaml

PATH = Path(__file__).with_name("deviations.yaml")
SOURCE = "courtois2024"
COLUMNS = ("setting", "key", "paper", "code", "run", "verdict")


def compare(params: dict, protocol: dict, path: Path = PATH) -> pd.DataFrame:
    """One row a setting; verdict: `as stated`, `differs`, `as their code` or `differs from their code`.

    Fine-tuning settings are left out where the run does not fine-tune by this protocol.

    params: the settings as nested dictionaries. protocol: the content of protocol.yaml.
    ValueError for an entry that points to no setting or to no part of the protocol.
    """
    entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    code = {item["item"]: item.get("released_code") for item in protocol[SOURCE]["unspecified"]}
    run = SOURCE in params["protocols"]
    entries = [entry for entry in entries if run or not entry["key"].startswith("finetuning.")]
    rows = [_row(entry, params, protocol[SOURCE]["stated"], code) for entry in entries]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _row(entry: dict, params: dict, stated: dict, code: dict) -> dict:
    run = _find(params, entry["key"])
    silent = "stated" not in entry
    if silent and code.get(entry["code"]) is None:
        raise ValueError(f"{PATH.name}: {entry['setting']}: the protocol has no open item {entry['code']!r}")
    reference = code[entry["code"]] if silent else _find(stated, entry["stated"])
    if isinstance(reference, dict):
        reference = entry["equals"]
    verdicts = ("as their code", "differs from their code") if silent else ("as stated", "differs")
    return {
        "setting": entry["setting"],
        "key": entry["key"],
        "paper": "not stated" if silent else shown(reference),
        "code": shown(reference) if silent else "",
        "run": entry["absent"] if run is None and "absent" in entry else shown(run),
        "verdict": verdicts[0] if _same(entry, run, reference) else verdicts[1],
    }


def _same(entry: dict, run: object, reference: object) -> bool:
    if "contains" in entry:
        return entry["contains"] in str(run)
    if "count" in entry:
        return len(run) == entry["count"]
    expected = entry.get("equals", reference)
    if isinstance(expected, list):
        return sorted(run) == sorted(expected)
    return run == expected


def _find(tree: dict, key: str) -> object:
    for part in key.split("."):
        if part not in tree:
            raise ValueError(f"{PATH.name}: nothing at {key}; {part!r} is not among {', '.join(map(str, tree))}")
        tree = tree[part]
    return tree


def shown(value: object) -> str:
    """A setting as text: lists with commas, null as `all`, large numbers with separators."""
    match value:
        case None:
            return "all"
        case list() | tuple():
            return ", ".join(shown(item) for item in value)
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:g}"
    return str(value)
