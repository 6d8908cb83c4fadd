"""Reads the words of the generated world and their meanings from lexicon.yaml.

A concept is named by the first word and may have a second name. Nouns belong to a class (the hypernym).
"""

from pathlib import Path

import yaml

_TABLES = yaml.safe_load(Path(__file__).with_name("lexicon.yaml").read_text(encoding="utf-8"))

Topics = list[str]

# By topic: its `people`, the `names` of further people, its `places`, and its `things` with their classes.
TOPICS = _TABLES["topics"]
TOPIC_GROUPS = _TABLES["topic_groups"]
ALL_TOPICS = TOPIC_GROUPS["all"]

# The second name of each concept with two names.
SYNONYMS = _TABLES["synonyms"]
ADVERBS = _TABLES["adverbs"]
COLORS = _TABLES["colors"]
QUALITIES_OF = _TABLES["qualities_of"]
ASPECTS = _TABLES["aspects"]
PURPOSES = _TABLES["purposes"]
PRAISE = _TABLES["praise"]
BLAME = _TABLES["blame"]

ACTIONS_ON_THINGS = _TABLES["actions_on_things"]
ACTIONS_ON_PEOPLE = _TABLES["actions_on_people"]
ACTIONS = frozenset(ACTIONS_ON_THINGS + ACTIONS_ON_PEOPLE)
FAVOURABLE = frozenset(_TABLES["opposite_actions"])
OPPOSITE = {}
for _table in (_TABLES["opposite_actions"], _TABLES["opposite_qualities"]):
    for _concept, _opposite in _table.items():
        OPPOSITE[_concept] = _opposite
        OPPOSITE[_opposite] = _concept

NAMES = set()
CLASS_OF = {}
for _topic in TOPICS.values():
    NAMES.update(_topic["names"])
    CLASS_OF.update(dict.fromkeys(_topic["people"], "person"))
    CLASS_OF.update(_topic["things"])

NUMERALS = _TABLES["numerals"]
TIMES = _TABLES["times"]


def list_names(concept: str) -> list[str]:
    """Returns all names of a concept: `["buy", "purchase"]` for "buy", `["rider"]` for "rider"."""
    if concept in SYNONYMS:
        return [concept, SYNONYMS[concept]]
    return [concept]


def choose_name(concept: str, swapped: frozenset[str]) -> str:
    """Returns the second name, if any, of a concept in `swapped` (`purchase` for `buy`), or else the first name."""
    if concept in swapped:
        return SYNONYMS.get(concept, concept)
    return concept


def choose_article(following: str) -> str:
    """Returns the indefinite article before a word: "an" before "apple"."""
    return "an" if following[0] in "aeiou" else "a"


def are_opposites(first: str, second: str) -> bool:
    """Returns whether two qualities or two actions exclude each other; different colours also do."""
    if first in COLORS and second in COLORS:
        return first != second
    return OPPOSITE.get(first) == second


def _add_s(word: str) -> str:
    """Returns a regular plural or third person singular: "boxes" for "box"."""
    ending = "es" if word.endswith(("s", "sh", "ch", "x", "z")) else "s"
    return word + ending


# The inflected forms of every name.
PLURAL = {}
for _concept in (*CLASS_OF, *CLASS_OF.values()):
    for _name in list_names(_concept):
        PLURAL[_name] = _TABLES["plural"].get(_name, _add_s(_name))
VERBS = _TABLES["verbs"]
THIRD_PERSON = {verb: _add_s(verb) for verb in VERBS}
_REGULAR = {verb: verb.removesuffix("e") + "ed" for verb in VERBS}
PAST = {**_REGULAR, **_TABLES["past"]}
PARTICIPLE = {**_REGULAR, **_TABLES["participle"]}
