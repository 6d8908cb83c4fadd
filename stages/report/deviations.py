"""Every setting of this run beside the papers'.

The schema of params.yaml (stages/plumbing) says of every key where data/published/protocol.yaml has what belongs to it.
A key of which it says nothing is shown as such: nothing is left out.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pandas as pd
import yaml

from stages.plumbing import keys
from stages.plumbing.keys import OPEN, Key, Stated
from stages.plumbing.settings import Settings

PATH = Path(__file__).with_name("deviations.yaml")
COLUMNS = ("setting", "key", "paper", "code", "run", "verdict")
AS_STATED, DIFFERS, AS_CODE, DIFFERS_FROM_CODE = "as stated", "differs", "as their code", "differs from their code"
AS_FOLLOWED, DIFFERS_FROM_FOLLOWED = "as the setup that it follows", "differs from the setup that it follows"
OPTIONAL = ("finetuning", "translation.protocols")  # sections of which a run may have some parts and not others
VERDICTS = {  # where in the protocol a value stands, and the verdicts where this run has it, and not
    "stated": (AS_STATED, DIFFERS),
    "released_code": (AS_CODE, DIFFERS_FROM_CODE),
    "followed": (AS_FOLLOWED, DIFFERS_FROM_FOLLOWED),
}
KEY = re.compile(r"\{([^}]*)\}")  # in a sentence, in whose place its value stands
NOT_STATED, NO_EFFECT, UNKNOWN = "not stated", "without effect in this run", "in no paper, and without a description"


@cache
def content() -> dict:
    """Gives the content of deviations.yaml, which is read once."""
    return yaml.safe_load(PATH.read_text(encoding="utf-8"))


def compare(params: dict, protocol: dict, source: str = "courtois2024", unknown: Mapping[str, int] | None = None):
    """Compares every setting that a source states, or leaves open although it needs one, with this run's.

    Args:
        params: the settings as nested dictionaries.
        protocol: the content of protocol.yaml.
        source: a key of published.PAPERS.
        unknown: documents of the corpus without the metadata that a rule of the filter reads, by the rule's name.

    Returns:
        A frame of COLUMNS, one row a setting; verdict: one of the constants above. Below the settings stands what no
        setting changes; its key is empty.

    Raises:
        ValueError: for a place that is no part of the protocol.
    """
    facts = protocol[source]
    rows = [
        _row(key, value, described, source, params, facts, unknown or {})
        for key, value, described in keys.walk(Settings, params)
        if source in stated_of(key, described)
    ]
    rows += [_fixed(entry, facts) for entry in content()["fixed"].get(source, ())]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def differing(compared: pd.DataFrame) -> str:
    """Says, as in `14 of 60`, how many settings this run has otherwise than a source with which it was compared.

    They are counted of all for which the source, its code or the setup that it follows has a value; settings that it
    leaves open, and those without effect in this run, count in neither number.
    """
    same, different = (compared["verdict"].isin(verdicts).sum() for verdicts in zip(*VERDICTS.values(), strict=True))
    return f"{different} of {different + same}"


def without_counterpart(params: dict) -> pd.DataFrame:
    """Lists the settings of this run that no source has: setting (its name in words), key, and run (its value)."""
    rows = [
        {"setting": _name(described, key), "key": key, "run": _shown(params, value, described)}
        for key, value, described in keys.walk(Settings, params)
        if not stated_of(key, described)
    ]
    return pd.DataFrame(rows, columns=["setting", "key", "run"])


def stated_of(key: str, described: Key | None) -> dict[str, tuple[str, Stated]]:
    """Finds what each source has of a key, and where in the protocol. Of some sections one source alone counts."""
    alone = keys.PARTS.get(key.rpartition(".")[0])
    facts = ((*keys.SOURCES[letter], stated) for letter, stated in (described.stated if described else {}).items())
    return {source: (place, stated) for source, place, stated in facts if alone in (None, source)}


def _row(key: str, value: object, described: Key, source: str, params: dict, facts: dict, unknown: Mapping) -> dict:
    """The row of one setting, of which the schema says `described`, beside what a source has of it in its `facts`."""
    place, stated = stated_of(key, described)[source]
    row = {"setting": _name(described, key, stated), "key": key, "paper": NOT_STATED, "code": ""}
    row |= {"run": _shown(params, value, described), "verdict": NOT_STATED}
    if stated is not OPEN:
        same, different = VERDICTS[place]
        reference = find(facts[place], stated.place.format(name=key.rpartition(".")[2]), key)
        # where the protocol has no single value, the one that the schema names stands for it
        value_there = stated.value if isinstance(reference, dict) else reference
        row["paper" if place == "stated" else "code"] = shown(value_there)
        row["verdict"] = same if _same(stated, value, reference, source, params) else different
    dropped = described.rule == "harmful_pp" and params["filtering"]["missing_harmful_pp"] == "drop"
    if not dropped and (missing := unknown.get(described.rule, 0)):
        row |= {"run": f"{row['run']}; {missing:,} documents have no such metadata and pass", "verdict": DIFFERS}
    if reason := _idle(key, described, params):
        row |= {"run": f"{row['run']} ({reason})", "verdict": NO_EFFECT}
    return row


def _fixed(entry: dict, facts: dict) -> dict:
    place = "stated" if "stated" in entry else "released_code"
    row = {"setting": entry["setting"], "key": "", "paper": NOT_STATED, "code": "", "run": entry["run"]}
    row["paper" if place == "stated" else "code"] = str(find(facts[place], entry[place], "fixed"))
    return row | {"verdict": VERDICTS[place][1]}


def _idle(key: str, described: Key, params: dict) -> str:
    """Why a setting has no effect in this run; empty where it has."""
    for other, wanted in described.only.items():
        if find(params, other, key) != wanted:
            return f"only where {other} is {shown(wanted) if wanted is not None else 'null'}"
    section, _, recipe = key.rpartition(".")[0].partition(".")
    users = (*params["protocols"], params["convergence"]["protocol"], params["timing"]["protocol"])
    return f"no stage fine-tunes by {recipe}" if section == "finetuning" and recipe not in users else ""


def _same(stated: Stated, value: object, reference: object, source: str, params: dict) -> bool:
    """Whether a setting, and those that `also` names, are as a source has them. reference: what the protocol has."""
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
    if described is None:
        return f"{key} ({UNKNOWN})"
    part, _, name = key.rpartition(".")
    return (stated.name or described.name).format(name=name.replace("_", " "), part=part.rpartition(".")[2])


def _shown(params: dict, value: object, described: Key | None) -> str:
    return filled(described.absent, params) if value is None and described and described.absent else shown(value)


def filled(sentence: str, params: dict) -> str:
    """Replaces `{pretraining.steps}` and the like in a sentence by these settings, as the tables show them."""
    schema = {key: described for key, _, described in keys.walk(Settings, params)}

    def setting(match: re.Match) -> str:
        return _shown(params, find(params, match[1], match[1]), schema.get(match[1]))

    return KEY.sub(setting, sentence)


def absent(params: dict, key: str) -> str:
    """Names the part of an OPTIONAL section that a key belongs to and a run lacks; empty where there is none."""
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
        key: of params.yaml, for the message of an error.

    Raises:
        ValueError: there is no such place.
    """
    for part in place.split("."):
        if not isinstance(tree, dict) or part not in tree:
            raise ValueError(f"{key}: nothing at {place}; there is no {part!r}")
        tree = tree[part]
    return tree


def shown(value: object) -> str:
    """Formats a setting as text: lists with commas, null as `all`, large numbers with separators."""
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
