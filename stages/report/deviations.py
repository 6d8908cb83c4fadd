"""Every setting of this run next to what the papers have; a key of which the schema says nothing is shown as such.

The schema of params.yaml (stages/schema) says of every key where data/published/protocol.yaml holds its counterpart,
by source: in `stated` what its text has, in `released_code` its code, in `followed` the setup that it follows.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pandas as pd
import yaml

from stages.schema import keys
from stages.schema.keys import OPEN, Key, Stated
from stages.schema.settings import Settings

PATH = Path(__file__).with_name("deviations.yaml")
COLUMNS = ("setting", "key", "paper", "code", "run", "verdict")
AS_STATED, DIFFERS, DIFFERS_FROM_CODE = "as stated", "differs", "differs from their code"
OPTIONAL = ("finetuning", "translation.protocols")  # sections of which a run may have some parts and not others
VERDICTS = {  # by the part of the protocol that holds a value: the verdicts for the same value here, and for another
    "stated": (AS_STATED, DIFFERS),
    "released_code": ("as their code", DIFFERS_FROM_CODE),
    "followed": ("as the setup that it follows", "differs from the setup that it follows"),
}
KEY = re.compile(r"\{([^}]*)\}")  # in a sentence; the value of the setting replaces it
NOT_STATED, NO_EFFECT, UNKNOWN = "not stated", "without effect in this run", "in no paper, and without a description"


@cache
def content() -> dict:
    """Returns deviations.yaml, which is read once: `fixed`, entries by source; `open`, choices by source and item."""
    return yaml.safe_load(PATH.read_text(encoding="utf-8"))


def compare(params: dict, protocol: dict, source: str = "courtois2024", unknown: Mapping[str, int] | None = None):
    """Compares every setting that a source states, or leaves open although it needs one, with this run's.

    Args:
        params, protocol, source: the settings and protocol.yaml as nested dictionaries; a key of published.PAPERS.
        unknown: by the name of a rule of the filter, how many documents lack the metadata that the rule reads.

    Returns:
        A frame of COLUMNS, all text, with a row per setting: its name in words and its key in params.yaml; what the
        source's text states, what its code or the setup that it follows has, and what this run has; one of VERDICTS,
        NOT_STATED or NO_EFFECT. The last rows, whose key is empty, are what no setting changes.

    Raises:
        ValueError: the schema or deviations.yaml names a place that the protocol lacks.
    """
    facts = protocol[source]
    rows = [
        _row(key, value, described, source, params, facts, unknown or {})
        for key, value, described in keys.walk(Settings, params)
        if source in stated_of(key, described)
    ]
    for entry in content()["fixed"].get(source, ()):  # what no setting changes, and is done otherwise here
        place = "stated" if "stated" in entry else "released_code"
        row = {"setting": entry["setting"], "key": "", "paper": NOT_STATED, "code": "", "run": entry["run"]}
        row["paper" if place == "stated" else "code"] = str(find(facts[place], entry[place], "fixed"))
        rows.append(row | {"verdict": VERDICTS[place][1]})
    return pd.DataFrame(rows, columns=list(COLUMNS))


def differing(compared: pd.DataFrame) -> str:
    """Says, as `14 of 60`, how many rows of `compare` differ; neither number has rows of NOT_STATED or NO_EFFECT."""
    same, different = (compared["verdict"].isin(verdicts).sum() for verdicts in zip(*VERDICTS.values(), strict=True))
    return f"{different} of {different + same}"


def without_counterpart(params: dict) -> pd.DataFrame:
    """Lists the settings that no source has, as a frame: setting (its name in words), key, run (its value as text)."""
    rows = [
        {"setting": _name(described, key), "key": key, "run": _shown(params, value, described)}
        for key, value, described in keys.walk(Settings, params)
        if not stated_of(key, described)
    ]
    return pd.DataFrame(rows, columns=["setting", "key", "run"])


def stated_of(key: str, described: Key | None) -> dict[str, tuple[str, Stated]]:
    """Finds what each source has of a dotted key: source -> (part of the protocol, a key of VERDICTS; what is there).

    described: of the schema. In a section that is one source's recipe (keys.PARTS), all other sources are left out.
    """
    alone = keys.PARTS.get(key.rpartition(".")[0])
    facts = ((*keys.SOURCES[letter], stated) for letter, stated in (described.stated if described else {}).items())
    return {source: (place, stated) for source, place, stated in facts if alone in (None, source)}


def _row(key: str, value: object, described: Key, source: str, params: dict, facts: dict, unknown: Mapping) -> dict:
    """Compares one setting with what a source has of it, and returns a row of COLUMNS.

    value: what this run has. facts: the source's part of protocol.yaml. Others: those of `stated_of` and `compare`.
    """
    place, stated = stated_of(key, described)[source]
    row = {"setting": _name(described, key, stated), "key": key, "paper": NOT_STATED, "code": ""}
    row |= {"run": _shown(params, value, described), "verdict": NOT_STATED}
    if stated is not OPEN:  # a source that leaves the key open has no value to compare with
        same, different = VERDICTS[place]
        reference = find(facts[place], stated.place.format(name=key.rpartition(".")[2]), key)
        value_there = stated.value if isinstance(reference, dict) else reference  # of several, the schema names one
        row["paper" if place == "stated" else "code"] = shown(value_there)
        row["verdict"] = same if _same(stated, value, reference, source, params) else different
    # A rule that lets documents without metadata pass is not the source's; only harmful_pp has a setting to drop them.
    dropped = described.rule == "harmful_pp" and params["filtering"]["missing_harmful_pp"] == "drop"
    if not dropped and (missing := unknown.get(described.rule, 0)):
        row |= {"run": f"{row['run']}; {missing:,} documents have no such metadata and pass", "verdict": DIFFERS}
    if reason := _idle(key, described, params):
        row |= {"run": f"{row['run']} ({reason})", "verdict": NO_EFFECT}
    return row


def _idle(key: str, described: Key, params: dict) -> str:
    """Says why a setting has no effect: the value of another key, or no stage uses its recipe; else an empty text."""
    for other, wanted in described.only.items():
        if find(params, other, key) != wanted:
            return f"only where {other} is {shown(wanted) if wanted is not None else 'null'}"
    section, _, recipe = key.rpartition(".")[0].partition(".")
    users = (*params["protocols"], params["convergence"]["protocol"], params["timing"]["protocol"])
    return f"no stage fine-tunes by {recipe}" if section == "finetuning" and recipe not in users else ""


def _same(stated: Stated, value: object, reference: object, source: str, params: dict) -> bool:
    """Whether a setting and those in `stated.also` are as in the source: `stated.value` or, if `...`, `reference`."""
    others = [
        (other_value, stated_of(key, described)[source][1])
        for key, other_value, described in keys.walk(Settings, params)
        if key in stated.also
    ]
    return (
        stated.compare(value, reference if stated.value is ... else stated.value)
        and len(others) == len(stated.also)  # a run may lack a section
        and all(other.compare(other_value, other.value) for other_value, other in others)
    )


def _name(described: Key | None, key: str, stated: Stated = OPEN) -> str:
    """Names a setting in words: by `stated` where that has a name of its own, otherwise by the schema (see `Key`)."""
    if described is None:
        return f"{key} ({UNKNOWN})"
    part, _, name = key.rpartition(".")
    return (stated.name or described.name).format(name=name.replace("_", " "), part=part.rpartition(".")[2])


def _shown(params: dict, value: object, described: Key | None) -> str:
    """Formats a value as `shown` does, but null in the words (a sentence for `filled`) that the schema may have."""
    return filled(described.absent, params) if value is None and described and described.absent else shown(value)


def filled(sentence: str, params: dict) -> str:
    """Replaces dotted keys in braces, such as `{pretraining.steps}`, by their settings; ValueError for a wrong key."""
    schema = {key: described for key, _, described in keys.walk(Settings, params)}
    return KEY.sub(lambda match: _shown(params, find(params, match[1], match[1]), schema.get(match[1])), sentence)


def absent(params: dict, key: str) -> str:
    """Returns the part of an OPTIONAL section, as `finetuning.kowsher2025`, that a key is in and a run lacks, or ""."""
    for section in OPTIONAL:
        part = ".".join(key.split(".")[: section.count(".") + 2])  # a name below the section
        if part.startswith(f"{section}.") and part.removeprefix(f"{section}.") not in find(params, section, key):
            return part
    return ""


def find(tree: dict, place: str, key: str) -> object:
    """Looks up the value, or the section as a dictionary, at a place of nested dictionaries.

    Args:
        tree, place: the dictionaries, and names with full stops between, such as `pretraining.steps`.
        key: the key of params.yaml that the message of an error names.

    Raises:
        ValueError: there is no such place.
    """
    for part in place.split("."):
        if not isinstance(tree, dict) or part not in tree:
            raise ValueError(f"{key}: nothing at {place}; there is no {part!r}")
        tree = tree[part]
    return tree


def shown(value: object) -> str:
    """Formats a setting: null as `all`, true as `yes`, lists with commas, integers as `1,000`, floats to 6 digits."""
    match value:
        case None:
            return "all"
        case dict():
            return ", ".join(f"{name} {shown(item)}" for name, item in value.items() if item is not None)
        case list() | tuple():
            return ("; " if any(isinstance(item, dict) for item in value) else ", ").join(map(shown, value))
        case bool():  # before int, of which bool is a subclass
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:g}"
    return str(value)
