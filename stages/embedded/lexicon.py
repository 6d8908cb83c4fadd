"""The words of the embedded world and what they mean, from lexicon.yaml.

A concept is named by its first word, and may have a second name. Nouns belong to a class (their hypernym), classes say
which actions are done to them, and opposites contradict each other. Grammar and tasks read only the tables made here.
"""

from pathlib import Path

import yaml

_TABLES = yaml.safe_load(Path(__file__).with_name("lexicon.yaml").read_text(encoding="utf-8"))
MATCHED_TOPICS, MISMATCHED_TOPICS = (tuple(_TABLES[half]["topics"]) for half in ("matched", "mismatched"))
# By group of topics, the names of the people there; by concept, its first and second name where it has two.
NAMES = {tuple(_TABLES[half]["topics"]): tuple(_TABLES[half]["names"]) for half in ("matched", "mismatched")}
SYNONYMS = {concept: (concept, other) for concept, other in _TABLES["synonyms"].items()}
VERBS = tuple(name for verb in _TABLES["verbs"] for name in SYNONYMS.get(verb, (verb,)))
ACTIONS_ON, QUALITIES_OF = _TABLES["actions_on"], _TABLES["qualities_of"]
ACTIONS = frozenset(action for actions in ACTIONS_ON.values() for action in actions)
FAVOURABLE = frozenset(_TABLES["opposite_actions"])  # its keys; the values are their opposites
OPPOSITE = _TABLES["opposite_actions"] | _TABLES["opposite_qualities"]
OPPOSITE |= {other: one for one, other in OPPOSITE.items()}
COLORS, ADVERBS, POSITIVE, NEGATIVE = (tuple(_TABLES[name]) for name in ("colors", "adverbs", "praise", "blame"))
ASPECTS = {subject: tuple(aspects) for subject, aspects in _TABLES["aspects"].items()}  # of what is reviewed
PEOPLE, PLACES = ({topic: tuple(t[key]) for topic, t in _TABLES["topics"].items()} for key in ("people", "places"))
THINGS = {topic: tuple(t["things"]) for topic, t in _TABLES["topics"].items()}
CLASS_OF = {person: "person" for people in PEOPLE.values() for person in people}
CLASS_OF |= {noun: kind for topic in _TABLES["topics"].values() for noun, kind in topic["things"].items()}
NUMERALS = ("zero", "one", "two", "three", "four", "five", "six")
TIMES = {"past": "yesterday", "present": "today", "future": "tomorrow"}
ON_PLACES = {"street"}  # "on the street", but "in the barn"


def names_of(concept: str) -> tuple[str, ...]:
    """All names of a concept: one or two."""
    return SYNONYMS.get(concept, (concept,))


def article(following: str) -> str:
    """The indefinite article before a word."""
    return "an" if following[0] in "aeiou" else "a"


def name_of(concept: str, swapped: frozenset[str] = frozenset()) -> str:
    """The concept's first name, or its second where the concept is in `swapped` and has one."""
    return names_of(concept)[-1 if concept in swapped else 0]


def opposites(one: str, other: str) -> bool:
    """Whether two qualities, or two actions, exclude each other. Two different colours do."""
    return OPPOSITE.get(one) == other or (one != other and one in COLORS and other in COLORS)


def _with_s(word: str) -> str:
    """A regular plural, or the present form of a verb after a singular subject."""
    return word + ("es" if word.endswith(("s", "sh", "ch", "x", "z")) else "s")


_CONCEPTS = {*CLASS_OF, *CLASS_OF.values(), *(place for places in PLACES.values() for place in places)}
PLURAL = {noun: _with_s(noun) for concept in sorted(_CONCEPTS) for noun in names_of(concept)} | _TABLES["plural"]
THIRD_PERSON = {verb: _with_s(verb) for verb in VERBS}
_REGULAR = {verb: verb.removesuffix("e") + "ed" for verb in VERBS}
PAST, PARTICIPLE = _REGULAR | _TABLES["past"], _REGULAR | _TABLES["participle"]
