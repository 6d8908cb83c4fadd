"""Every setting of this run beside the papers'.

deviations.yaml says where data/published/protocol.yaml has what belongs to a key of params.yaml. A key without an entry
is shown as such: nothing is left out.
"""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pandas as pd
import yaml

PATH = Path(__file__).with_name("deviations.yaml")
COLUMNS = ("setting", "key", "paper", "code", "run", "verdict")
SOURCES = ("courtois2024", "kowsher", "hadamard_blog", "aop")
AS_STATED, DIFFERS, AS_CODE, DIFFERS_FROM_CODE = "as stated", "differs", "as their code", "differs from their code"
AS_FOLLOWED, DIFFERS_FROM_FOLLOWED = "as the setup that it follows", "differs from the setup that it follows"
OPTIONAL = ("finetuning", "translation.protocols")  # sections of which a run may have some parts and not others
REFERENCES = {  # kind of entry: where in the protocol its value stands, and the verdicts where this run has it, and not
    "stated": ("stated", AS_STATED, DIFFERS),
    "code": ("released_code", AS_CODE, DIFFERS_FROM_CODE),
    "follows": ("followed", AS_FOLLOWED, DIFFERS_FROM_FOLLOWED),
}
OPEN, NO_EFFECT, UNKNOWN = "not stated", "without effect in this run", "in no paper, and without a description"


@cache
def content() -> dict:
    """Gives the content of deviations.yaml, which is read once."""
    return yaml.safe_load(PATH.read_text(encoding="utf-8"))


def compare(params: dict, protocol: dict, source: str = "courtois2024", unknown: Mapping[str, int] | None = None):
    """Every setting that a source states, or leaves open although it needs one, beside this run's.

    Args:
        params: the settings as nested dictionaries.
        protocol: the content of protocol.yaml.
        source: one of SOURCES.
        unknown: documents of the corpus without the metadata that a rule of the filter reads, by the rule's name.

    Returns:
        A frame of COLUMNS, one row a setting; verdict: one of the constants above. Below the settings stands what no
        setting changes; its key is empty.

    Raises:
        ValueError: for an entry that points to no part of the protocol.
    """
    facts = protocol[source]
    rows = [
        _row(key, value, entry, source, params, facts, unknown or {})
        for key, value, entry in matched(params)
        if source in entry
    ]
    rows += [_fixed(entry, facts) for entry in content()["fixed"].get(source, ())]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def differing(compared: pd.DataFrame) -> str:
    """Says, as in `14 of 60`, how many of a source's settings this run has otherwise.

    Args:
        compared: what `compare` gives for that source.

    Returns:
        The settings that differ, of all for which the source, its code or the setup that it follows has a value.
        Settings that the source leaves open, and those without effect in this run, count in neither number.
    """
    verdicts = pd.DataFrame(REFERENCES.values(), columns=["place", "same", "different"])
    different = int(compared["verdict"].isin(verdicts["different"]).sum())
    return f"{different} of {different + int(compared['verdict'].isin(verdicts['same']).sum())}"


def own(params: dict) -> pd.DataFrame:
    """Lists the settings of this run that have no counterpart in any of SOURCES.

    Args:
        params: the settings as nested dictionaries.

    Returns:
        A frame of setting (its name in words), key, and run (its value as text).
    """
    rows = [
        {"setting": _name(entry, key), "key": key, "run": _shown(params, value, entry)}
        for key, value, entry in matched(params)
        if not any(source in entry for source in SOURCES)
    ]
    return pd.DataFrame(rows, columns=["setting", "key", "run"])


def matched(tree: dict, above: str = "") -> Iterator[tuple[str, object, dict]]:
    """Finds for every setting its entry in deviations.yaml.

    A key without an entry of its own takes that of the first pattern (such as `models.*`) that fits it. A section
    without an entry is gone through key by key; a value without one gets an entry that says so.

    Args:
        tree: the settings, or a section of them, as nested dictionaries.
        above: the key of the section with a full stop behind it; empty for the settings as a whole.

    Yields:
        (key with the names of its sections, value, entry).
    """
    settings = content()["settings"]
    for name, value in tree.items():
        key = f"{above}{name}"
        patterns = (pattern for pattern in settings if "*" in pattern and pattern.count(".") == key.count("."))
        entry = settings.get(key) or next((settings[pattern] for pattern in patterns if fnmatch(key, pattern)), None)
        if entry is None and isinstance(value, dict):
            yield from matched(value, f"{key}.")
        else:
            yield key, value, entry or {"setting": f"{key} ({UNKNOWN})"}


def _row(key: str, value: object, entry: dict, source: str, params: dict, facts: dict, unknown: Mapping) -> dict:
    rule = entry[source]
    row = {"setting": _name(entry, key), "key": key, "paper": "not stated", "code": ""}
    row |= {"run": _shown(params, value, entry), "verdict": OPEN}
    kind = next((kind for kind in REFERENCES if kind in rule), None)
    if kind:
        place, same, different = REFERENCES[kind]
        reference = find(facts[place], rule[kind].format(key=key.rpartition(".")[2]), key)
        row["paper" if kind == "stated" else "code"] = _reference(rule, reference)
        row["verdict"] = same if _same(entry, rule, value, reference) and _others(rule, source, params) else different
    elif rule["open"] not in (item["item"] for item in facts["unspecified"]):
        raise ValueError(f"{PATH.name}: {key}: {source} leaves nothing open that is called {rule['open']!r}")
    dropped = entry.get("rule") == "harmful_pp" and params["filtering"]["missing_harmful_pp"] == "drop"
    if not dropped and (missing := unknown.get(entry.get("rule"), 0)):
        row |= {"run": f"{row['run']}; {missing:,} documents have no such metadata and pass", "verdict": DIFFERS}
    if reason := _idle(entry, params):
        row |= {"run": f"{row['run']} ({reason})", "verdict": NO_EFFECT}
    return row


def _fixed(entry: dict, facts: dict) -> dict:
    stated = "stated" in entry
    reference = find(facts["stated" if stated else "released_code"], entry["stated" if stated else "code"], "fixed")
    return {
        "setting": entry["setting"],
        "key": "",
        "paper": str(reference) if stated else "not stated",
        "code": "" if stated else str(reference),
        "run": entry["run"],
        "verdict": DIFFERS if stated else DIFFERS_FROM_CODE,
    }


def _others(rule: dict, source: str, params: dict) -> bool:
    """Whether the settings that a rule names in `also` are as the source states, too."""
    entries = content()["settings"]
    return all(
        not absent(params, key) and _same(entries[key], entries[key][source], find(params, key, key), None)
        for key in rule.get("also", ())
    )


def _idle(entry: dict, params: dict) -> str:
    """Why a setting has no effect in this run; empty where it has."""
    for key, wanted in entry.get("only", {}).items():
        if find(params, key, key) != wanted:
            return f"only where {key} is {shown(wanted) if wanted is not None else 'null'}"
    recipe = entry.get("recipe")
    users = (*params["protocols"], params["convergence"]["protocol"], params["timing"]["protocol"])
    return f"no stage fine-tunes by {recipe}" if recipe and recipe not in users else ""


def _same(entry: dict, rule: dict, value: object, reference: object) -> bool:
    if "field" in entry:
        value = [item[entry["field"]] for item in value]
    if "among" in rule:
        return set(value) <= set(rule["among"])
    if "covers" in rule:
        return set(value) >= set(rule["covers"])
    if "contains" in rule:
        return rule["contains"] in str(value)
    if "count" in rule:
        return len(value) == rule["count"]
    expected = rule.get("equals", reference)
    if isinstance(expected, list):
        return sorted(value) == sorted(expected)
    return value == expected


def _reference(rule: dict, reference: object) -> str:
    """What the paper has, as text: its own where the protocol has one, otherwise the value that stands for it."""
    if not isinstance(reference, dict):
        return shown(reference)
    return shown(next(rule[name] for name in ("equals", "covers", "among") if name in rule))


def _name(entry: dict, key: str) -> str:
    return entry["setting"].format(name=key.rpartition(".")[2].replace("_", " "))


def _shown(params: dict, value: object, entry: dict) -> str:
    return filled(entry["absent"], params) if value is None and "absent" in entry else shown(value)


def filled(sentence: str, params: dict) -> str:
    """The sentence with `{pretraining.steps}` and the like replaced by these settings, as the tables show them."""
    parts = sentence.split("{")
    ends = [part.partition("}") for part in parts[1:]]
    return parts[0] + "".join(_setting(params, key) + rest for key, _, rest in ends)


def _setting(params: dict, key: str) -> str:
    return _shown(params, find(params, key, key), content()["settings"].get(key, {}))


def absent(params: dict, key: str) -> str:
    """The part of an OPTIONAL section that a key is of and that a run does not have; empty where there is none."""
    for section in OPTIONAL:
        part = ".".join(key.split(".")[: section.count(".") + 2])
        if part.startswith(f"{section}.") and part.removeprefix(f"{section}.") not in find(params, section, key):
            return part
    return ""


def find(tree: dict, place: str, key: str) -> object:
    """Looks up what stands at a place of nested dictionaries.

    Args:
        tree: the dictionaries.
        place: names with full stops between, such as `pretraining.steps`.
        key: of the entry of deviations.yaml that asks, for the message of an error.

    Raises:
        ValueError: there is no such place.
    """
    for part in place.split("."):
        if not isinstance(tree, dict) or part not in tree:
            raise ValueError(f"{PATH.name}: {key}: nothing at {place}; there is no {part!r}")
        tree = tree[part]
    return tree


def shown(value: object) -> str:
    """A setting as text: lists with commas, null as `all`, large numbers with separators."""
    match value:
        case None:
            return "all"
        case dict():
            return ", ".join(f"{name} {shown(item)}" for name, item in value.items() if item is not None)
        case list() | tuple():
            return ("; " if any(isinstance(item, dict) for item in value) else ", ").join(map(shown, value))
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:g}"
    return str(value)
