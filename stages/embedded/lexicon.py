"""The words of the embedded world and what they mean.

A concept is named by its first word; `car/automobile` is one concept with two names. Nouns belong to a class (their
hypernym), classes say which actions are done to them, and opposites contradict each other. Grammar and tasks read
nothing but the tables made here.
"""

TOPIC_TABLE = {
    "farm": ("farmer/grower rider", "barn", "animal:horse,cow vehicle:tractor,cart/wagon"),
    "kitchen": ("cook/chef waiter", "kitchen", "fruit:apple,pear container:bowl,pan/skillet"),
    "sea": ("sailor/seaman swimmer", "harbor", "vehicle:boat,ship/vessel animal:dolphin,crab"),
    "city": ("driver policeman/officer", "street", "vehicle:car/automobile,bus container:box,bag"),
}
MATCHED_TOPICS = ("farm", "kitchen")
MISMATCHED_TOPICS = ("sea", "city")

NAMES = {
    MATCHED_TOPICS: ("Anna", "Boris", "Clara"),
    MISMATCHED_TOPICS: ("Maria", "Nathan", "Olivia"),
}

# concept/second name: past, participle where irregular; the first names are plain, the second formal
VERB_TABLE = """
buy:bought/purchase sell:sold/vend hide:hid:hidden/conceal show:showed:shown/display own need
help/assist hinder/obstruct praise/commend blame/accuse
"""
ACTIONS_ON = {
    "animal": "buy sell hide show",
    "vehicle": "buy sell hide show",
    "container": "buy sell hide show",
    "fruit": "buy sell hide show",
    "person": "help hinder praise blame",
}
QUALITIES_OF = {
    "animal": "big small",
    "vehicle": "big small old new",
    "container": "big small old new",
    "fruit": "big small",
}
OPPOSITE_ACTIONS = "buy-sell show-hide help-hinder praise-blame"  # every action has one; the favourable one first
OPPOSITE_QUALITIES = "big/large-small/little old-new"
COLORS = ("red", "blue")
NUMERALS = ("zero", "one", "two", "three", "four", "five", "six")

POSITIVE_TABLE = "good great wonderful excellent lovely clever"
NEGATIVE_TABLE = "bad terrible awful boring stupid ugly"
ASPECT_TABLE = {"film/movie": "plot acting ending", "hotel/inn": "room service view"}
ADVERBS = ("quickly", "slowly", "quietly", "happily")
TIMES = {"past": "yesterday", "present": "today", "future": "tomorrow"}
IRREGULAR_PLURALS = {
    "policeman": "policemen", "seaman": "seamen", "person": "people",
}  # fmt: skip
ON_PLACES = {"street"}
VOWELS = "aeiou"


def plural(noun: str) -> str:
    """The plural of a noun's name; a noun outside the lexicon is inflected by the regular rules."""
    return IRREGULAR_PLURALS.get(noun) or _with_s(noun)


def third_person(verb: str) -> str:
    """The present form after a singular subject."""
    return _with_s(verb)


def past(verb: str) -> str:
    """The past tense of a verb, such as `took` of `take`."""
    return PAST.get(verb) or _with_ed(verb)


def participle(verb: str) -> str:
    """The past participle of a verb, such as `taken` of `take`."""
    return PARTICIPLE.get(verb) or _with_ed(verb)


def name_of(concept: str, swapped: frozenset[str] = frozenset()) -> str:
    """The concept's first name, or its second where the concept is in `swapped` and has one."""
    names = SYNONYMS.get(concept, (concept,))
    return names[-1] if concept in swapped else names[0]


def opposites(one: str, other: str) -> bool:
    """Whether two qualities, or two actions, exclude each other. Two colours do."""
    return OPPOSITE.get(one) == other or (one != other and one in COLORS and other in COLORS)


def is_kind_of(noun: str, other: str) -> bool:
    """Whether every `noun` is an `other`: the same concept, or its class."""
    return noun == other or CLASS_OF.get(noun) == other


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


def _concepts(table: str) -> list[tuple[str, ...]]:
    """The concepts of a table of space-separated entries, each as its names without irregular forms."""
    return [tuple(name.split(":")[0] for name in entry.split("/")) for entry in table.split()]


def _members(things: str) -> list[tuple[str, str]]:
    """(class, names) of each noun of a topic's things."""
    groups = [group.split(":") for group in things.split()]
    return [(kind, member) for kind, members in groups for member in members.split(",")]


def _irregular(form: int) -> dict[str, str]:
    """Irregular pasts (form 1) or participles (form 2); a participle not given equals the past."""
    entries = [name.split(":") for entry in VERB_TABLE.split() for name in entry.split("/") if ":" in name]
    return {forms[0]: forms[min(form, len(forms) - 1)] for forms in entries}


def _classes() -> dict[str, str]:
    """Noun concept -> class; people are persons."""
    found: dict[str, str] = {}
    for people, _, things in TOPIC_TABLE.values():
        found |= {names[0]: "person" for names in _concepts(people)}
        found |= {member.split("/")[0]: kind for kind, member in _members(things)}
    return found


def _synonyms() -> dict[str, tuple[str, ...]]:
    tables = [VERB_TABLE, OPPOSITE_QUALITIES.replace("-", " "), " ".join(ASPECT_TABLE)]
    for people, places, things in TOPIC_TABLE.values():
        tables += [people, places, " ".join(member for _, member in _members(things))]
    return {names[0]: names for table in tables for names in _concepts(table) if len(names) > 1}


def _opposite_pairs(table: str) -> dict[str, str]:
    pairs = [tuple(side.split("/")[0] for side in pair.split("-")) for pair in table.split()]
    return {one: other for pair in pairs for one, other in (pair, pair[::-1])}


PAST, PARTICIPLE = _irregular(1), _irregular(2)
SYNONYMS = _synonyms()
ASPECTS = {subject.split("/")[0]: tuple(aspects.split()) for subject, aspects in ASPECT_TABLE.items()}
FAVOURABLE = frozenset(pair.split("-")[0] for pair in OPPOSITE_ACTIONS.split())
ACTIONS = frozenset(" ".join(ACTIONS_ON.values()).split())
VERBS = tuple(name for names in _concepts(VERB_TABLE) for name in names)
CLASS_OF = _classes()
OPPOSITE = _opposite_pairs(OPPOSITE_ACTIONS) | _opposite_pairs(OPPOSITE_QUALITIES)
PEOPLE = {topic: tuple(names[0] for names in _concepts(table[0])) for topic, table in TOPIC_TABLE.items()}
PLACES = {topic: tuple(names[0] for names in _concepts(table[1])) for topic, table in TOPIC_TABLE.items()}
THINGS = {
    topic: tuple(member.split("/")[0] for _, member in _members(table[2])) for topic, table in TOPIC_TABLE.items()
}
POSITIVE, NEGATIVE = tuple(POSITIVE_TABLE.split()), tuple(NEGATIVE_TABLE.split())
