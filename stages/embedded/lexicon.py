"""The words of the embedded world and what they mean.

A concept is named by its first word; `car/automobile` is one concept with two names. Nouns belong to a class (their
hypernym), classes say which actions are done to them, and opposites contradict each other. Grammar and tasks read
nothing but the tables made here.
"""

TOPIC_TABLE = {
    "farm": (
        "farmer/grower shepherd rider",
        "barn/stable meadow/field",
        "animal:horse,cow,goat vehicle:tractor,cart/wagon tool:shovel/spade",
    ),
    "kitchen": (
        "cook/chef waiter baker",
        "kitchen restaurant/diner",
        "fruit:apple,pear,lemon container:bowl,pan/skillet tool:knife",
    ),
    "school": (
        "teacher/instructor student/pupil professor",
        "school/academy library",
        "text:book/volume,poem,essay tool:pencil garment:coat/jacket,hat/cap",
    ),
    "sea": (
        "sailor/seaman captain/skipper swimmer",
        "harbor/port beach/shore",
        "vehicle:boat,ship/vessel animal:dolphin,crab container:barrel/cask tool:rope",
    ),
    "city": (
        "driver policeman/officer tourist/visitor",
        "street/road station",
        "vehicle:car/automobile,bus container:box/carton garment:scarf,glove animal:dog/hound",
    ),
    "office": (
        "lawyer/attorney manager/boss secretary",
        "office bank",
        "text:contract/agreement,letter,report fruit:orange garment:shirt container:bag/sack",
    ),
}
MATCHED_TOPICS = ("farm", "kitchen", "school")
MISMATCHED_TOPICS = ("sea", "city", "office")

NAMES = {
    MATCHED_TOPICS: ("Anna", "Boris", "Clara", "David", "Emma", "Felix"),
    MISMATCHED_TOPICS: ("Maria", "Nathan", "Olivia", "Peter", "Rachel", "Simon"),
}

# concept/second name: past, participle where irregular
VERB_TABLE = """
buy:bought/purchase sell:sold find:found/discover lose:lost/misplace break:broke:broken/damage fix/repair
hide:hid:hidden/conceal show:showed:shown/display push pull love/adore hate/detest choose:chose:chosen/select
refuse/reject need/require own/possess
help/assist meet:met/encounter praise/compliment blame/criticize
"""
ACTIONS_ON = {
    "animal": "buy sell find lose love hate",
    "vehicle": "buy sell push pull break fix",
    "tool": "find lose break fix hide show",
    "container": "push pull hide show break fix",
    "fruit": "buy sell choose refuse love hate",
    "text": "choose refuse love hate find lose",
    "garment": "choose refuse hide show buy sell",
    "person": "help meet praise blame",
}
QUALITIES_OF = {
    "animal": "big small fast slow strong weak",
    "vehicle": "fast slow old new cheap expensive",
    "tool": "heavy light long short strong weak",
    "container": "big small heavy light strong weak",
    "fruit": "big small cheap expensive",
    "text": "long short old new",
    "garment": "long short cheap expensive old new",
}
OPPOSITE_ACTIONS = "buy-sell find-lose break-fix hide-show push-pull love-hate choose-refuse praise-blame"
OPPOSITE_QUALITIES = (
    "big/large-small/little old/ancient-new/modern cheap-expensive/costly heavy-light strong/sturdy-weak/fragile "
    "long-short fast/quick-slow"
)
COLORS = ("red", "blue", "green", "white", "black")
NUMERALS = ("zero", "one", "two", "three", "four", "five", "six")

POSITIVE_TABLE = (
    "good great wonderful excellent brilliant charming delightful superb lovely amazing fantastic funny clever "
    "touching perfect splendid enjoyable gripping elegant thrilling magnificent marvelous impressive "
    "refreshing pleasant graceful honest fresh moving memorable"
)
NEGATIVE_TABLE = (
    "bad terrible awful horrible boring dull poor dreadful stupid tedious annoying disappointing ridiculous "
    "messy clumsy painful bland pointless shallow miserable unpleasant forgettable dishonest lazy pathetic "
    "lousy tiresome depressing ugly weak"
)
ASPECT_TABLE = {
    "film/movie": "plot acting music ending",
    "hotel/inn": "room service bed view",
    "novel/story": "plot style ending hero",
    "concert/show": "music singer band crowd",
}
ADVERBS = ("quickly", "slowly", "quietly", "happily")
TIMES = {"past": "yesterday", "present": "today", "future": "tomorrow"}
IRREGULAR_PLURALS = {
    "policeman": "policemen", "seaman": "seamen", "person": "people", "library": "libraries", "academy": "academies",
    "secretary": "secretaries", "knife": "knives",
}  # fmt: skip
ON_PLACES = {"street", "beach", "meadow"}
VOWELS = "aeiou"


def plural(noun: str) -> str:
    """The plural of a noun's name; a noun outside the lexicon is inflected by the regular rules."""
    return IRREGULAR_PLURALS.get(noun) or _with_s(noun)


def third_person(verb: str) -> str:
    """The present form after a singular subject."""
    return _with_s(verb)


def past(verb: str) -> str:
    return PAST.get(verb) or _with_ed(verb)


def participle(verb: str) -> str:
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
VERBS = tuple(name for names in _concepts(VERB_TABLE) for name in names)
CLASS_OF = _classes()
OPPOSITE = _opposite_pairs(OPPOSITE_ACTIONS) | _opposite_pairs(OPPOSITE_QUALITIES)
PEOPLE = {topic: tuple(names[0] for names in _concepts(table[0])) for topic, table in TOPIC_TABLE.items()}
PLACES = {topic: tuple(names[0] for names in _concepts(table[1])) for topic, table in TOPIC_TABLE.items()}
THINGS = {
    topic: tuple(member.split("/")[0] for _, member in _members(table[2])) for topic, table in TOPIC_TABLE.items()
}
POSITIVE, NEGATIVE = tuple(POSITIVE_TABLE.split()), tuple(NEGATIVE_TABLE.split())
