"""Every setting of this run beside a paper's, and what each paper leaves open beside what was chosen.

deviations.yaml pairs the keys of params.yaml with the entries of data/published/protocol.yaml, and says what was chosen
where the papers are silent.
"""

from functools import cache
from pathlib import Path

import pandas as pd
import yaml

PATH = Path(__file__).with_name("deviations.yaml")
COLUMNS = ("setting", "key", "paper", "code", "run", "verdict")
PROTOCOLS = {"courtois2024": "courtois2024", "kowsher": "kowsher2025"}  # of fine-tuning, by source
NOT_HERE = "nothing of this run depends on it"


@cache
def content(path: Path = PATH) -> dict:
    """deviations.yaml."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def compare(params: dict, protocol: dict, source: str = "courtois2024", path: Path = PATH) -> pd.DataFrame:
    """One row a setting; verdict: `as stated`, `differs`, `as their code` or `differs from their code`.

    Fine-tuning settings are left out where the run does not fine-tune by the source's protocol.

    params: the settings as nested dictionaries. protocol: the content of protocol.yaml.
    ValueError for an entry that points to no setting or to no part of the protocol.
    """
    code = {item["item"]: item.get("released_code") for item in protocol[source]["unspecified"]}
    run = PROTOCOLS[source] in params["protocols"]
    entries = content(path)["settings"][source]
    entries = [entry for entry in entries if run or not entry["key"].startswith("finetuning.")]
    rows = [_row(entry, params, protocol[source]["stated"], code) for entry in entries]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def unspecified(params: dict, protocol: dict, source: str, path: Path = PATH) -> pd.DataFrame:
    """One row for everything that a source leaves open. ValueError for a choice about something else.

    Columns: item, candidates, inferred, code, chosen. A choice is a sentence, with `{keys}` of params.yaml in it.
    """
    chosen = content(path)["chosen"].get(source, {})
    items = protocol[source]["unspecified"]
    strange = set(chosen) - {item["item"] for item in items}
    if strange:
        raise ValueError(f"{path.name}: {source} leaves nothing open that is called {sorted(strange)[0]!r}")
    return pd.DataFrame(
        [
            {
                "item": item["item"],
                "candidates": "; ".join(map(str, item.get("candidates", ()))),
                "inferred": item.get("inferred", ""),
                "code": item.get("released_code", ""),
                "chosen": _filled(chosen.get(item["item"], NOT_HERE), params),
            }
            for item in items
        ]
    )


def _filled(sentence: str, params: dict) -> str:
    """`{pretraining.steps}` becomes the setting of that key."""
    parts = sentence.split("{")
    ends = [part.partition("}") for part in parts[1:]]
    return parts[0] + "".join(shown(_find(params, key)) + rest for key, _, rest in ends)


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
