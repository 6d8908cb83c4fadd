"""The words of the embedded world and what they mean, from lexicon.yaml.

A concept is named by its first word, and may have a second name. Nouns belong to a class (their hypernym), classes say
which actions are done to them, and opposites contradict each other. Grammar and tasks read nothing but the tables made
here.
"""

from pathlib import Path

import yaml

_TABLES = yaml.safe_load(Path(__file__).with_name("lexicon.yaml").read_text(encoding="utf-8"))
MATCHED_TOPICS, MISMATCHED_TOPICS = (tuple(_TABLES[half]["topics"]) for half in ("matched", "mismatched"))
NAMES = {tuple(_TABLES[half]["topics"]): tuple(_TABLES[half]["names"]) for half in ("matched", "mismatched")}
SYNONYMS = {concept: (concept, other) for concept, other in _TABLES["synonyms"].items()}
VERBS = tuple(name for verb in _TABLES["verbs"] for name in SYNONYMS.get(verb, (verb,)))
ACTIONS_ON, QUALITIES_OF = _TABLES["actions_on"], _TABLES["qualities_of"]
ACTIONS = frozenset(action for actions in ACTIONS_ON.values() for action in actions)
FAVOURABLE = frozenset(_TABLES["opposite_actions"])
OPPOSITE = _TABLES["opposite_actions"] | _TABLES["opposite_qualities"]
OPPOSITE |= {other: one for one, other in OPPOSITE.items()}
COLORS, ADVERBS, POSITIVE, NEGATIVE = (tuple(_TABLES[name]) for name in ("colors", "adverbs", "praise", "blame"))
ASPECTS = {subject: tuple(aspects) for subject, aspects in _TABLES["aspects"].items()}
PEOPLE, PLACES = ({topic: tuple(t[key]) for topic, t in _TABLES["topics"].items()} for key in ("people", "places"))
THINGS = {
    topic: tuple(noun for nouns in t["things"].values() for noun in nouns) for topic, t in _TABLES["topics"].items()
}
CLASS_OF = {person: "person" for people in PEOPLE.values() for person in people} | {
    noun: kind for topic in _TABLES["topics"].values() for kind, nouns in topic["things"].items() for noun in nouns
}
NUMERALS = ("zero", "one", "two", "three", "four", "five", "six")
TIMES = {"past": "yesterday", "present": "today", "future": "tomorrow"}
ON_PLACES = {"street"}
VOWELS = "aeiou"


def article(following: str) -> str:
    """The indefinite article before a word."""
    return "an" if following[0] in VOWELS else "a"


def plural(noun: str) -> str:
    """The plural of a noun's name; a noun outside the lexicon is inflected by the regular rules."""
    return _TABLES["plural"].get(noun) or _with_s(noun)


def third_person(verb: str) -> str:
    """The present form after a singular subject."""
    return _with_s(verb)


def past(verb: str) -> str:
    """The past tense of a verb, such as `took` of `take`."""
    return _TABLES["past"].get(verb) or _with_ed(verb)


def participle(verb: str) -> str:
    """The past participle of a verb, such as `taken` of `take`."""
    return _TABLES["participle"].get(verb) or _with_ed(verb)


def names_of(concept: str) -> tuple[str, ...]:
    """All names of a concept: one or two."""
    return SYNONYMS.get(concept, (concept,))


def name_of(concept: str, swapped: frozenset[str] = frozenset()) -> str:
    """The concept's first name, or its second where the concept is in `swapped` and has one."""
    return names_of(concept)[-1 if concept in swapped else 0]


def opposites(one: str, other: str) -> bool:
    """Whether two qualities, or two actions, exclude each other. Two colours do."""
    return OPPOSITE.get(one) == other or (one != other and one in COLORS and other in COLORS)


def _with_s(word: str) -> str:
    if word.endswith(("s", "sh", "ch", "x", "z")):
        return word + "es"
    if word.endswith("y") and word[-2] not in VOWELS:
        return word[:-1] + "ies"
    return word + "s"


def _with_ed(verb: str) -> str:
    if verb.endswith("e"):
        return verb + "d"
    if verb.endswith("y") and verb[-2] not in VOWELS:
        return verb[:-1] + "ied"
    return verb + "ed"
