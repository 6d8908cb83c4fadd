"""Longer sentences, the rules they obey, and sentences that break one of them.

`broken_rules` reads a tagged sentence alone: it is the judge of acceptability, whoever made the sentence.
"""

import re
from dataclasses import replace
from functools import cache
from itertools import pairwise
from random import Random

from stages.embedded.grammar import Thing, Word, say, say_thing, verb_group
from stages.embedded.lexicon import ADVERBS, NUMERALS, PARTICIPLE, PAST, PLURAL, THIRD_PERSON, TIMES, VERBS
from stages.embedded.world import ALL_TOPICS, Scene, draw_event, draw_scene, draw_wording

# voice: a passive verb has "be" and "by", an active one neither; tense: the verb fits the word for the time; agreement:
# the verb has its subject's number; determiner: it has its noun's number; form: a participle follows "be", a bare verb
# any other auxiliary; order: that of the words.
RULES = {"voice": 5, "tense": 4, "agreement": 4, "determiner": 3, "form": 3, "order": 3}  # rule: its weight in a draw
CORRECT = 5000  # number of correct sentences drawn to see which words stand next to each other
# The roles of the words of a sentence (grammar.py lists them), joined, match SHAPE where their order is right, and
# MIXED_VOICE where an active sentence has "by" or "was", or a passive one lacks one of them. START is a place or time
# with its comma, the subject, and its modifier; END the object or agent, a place and a time. Between them SHAPE has
# verbs as in "quietly hid", "did not quietly hide", "was not quietly hidden by", "will not be hidden by", and
# MIXED_VOICE as in "hid by", "was not hid", "was not hidden", "will not be hidden", "hidden by".
NOUN_PHRASE = "(?:M|D+A?N)"
START, END = f"(?:PDNC|WC)?{NOUN_PHRASE}(?:PDN|RV{NOUN_PHRASE})?", f"{NOUN_PHRASE}(?:PDN)?W?"
SHAPE = re.compile(f"{START}(?:W?V|XT?W?B|XT?W?EY|XT?BEY){END}")
MIXED_VOICE = re.compile(f"{START}(?:W?VY|XT?W?V|XT?W?E|XT?BE|W?EY){END}")
SINGULAR = {many: one for one, many in PLURAL.items()}  # by plural form
DETERMINER_IS_SINGULAR = {"a": True, "an": True} | dict.fromkeys(("some", *NUMERALS[2:]), False)  # "the" is either
# By finite form, the form of the other number: at first for the singular forms only, after the |= for the plural, too.
OTHER_FINITE = {"was": "were", "is": "are", "does": "do"} | {third: verb for verb, third in THIRD_PERSON.items()}
SINGULAR_FINITE = set(OTHER_FINITE)
OTHER_FINITE |= {plural_form: singular_form for singular_form, plural_form in OTHER_FINITE.items()}
TIME_WORDS = {word: tense for tense, word in TIMES.items()}
REPLACED = {  # rule: the roles of the words that are replaced to break it, and the replacements of each word
    "agreement": ("VX", {text: [other] for text, other in OTHER_FINITE.items()}),
    "determiner": ("N", {text: [other] for text, other in (SINGULAR | PLURAL).items()}),
    "form": ("BE", {verb: [past] for verb, past in PAST.items()} | {E: [verb] for verb, E in PARTICIPLE.items()}),
    "tense": ("W", {word: [*TIME_WORDS] for word in TIME_WORDS}),
}


def elaborate(rng: Random, scene: Scene) -> list[Word]:
    """Draws a correct sentence about an event of a scene, as words with their roles.

    Some sentences get a plural subject, a modifier between subject and verb, an adverb, or a word for the time.
    """
    event = draw_event(rng, scene, negated=0.15, place=0.2, social=0.4)
    event = replace(event, tense=rng.choice(("past", "past", "present", "future")))
    if not event.agent.named and rng.random() < 0.4:
        event = replace(event, agent=replace(event.agent, count=0))  # "the farmers"
    wording = draw_wording(rng, event, passive=0.3)
    words = say(event, wording)
    if not wording.passive and not event.agent.named and rng.random() < 0.1:
        end = _subject(words) + 1
        words = [*words[:end], *_modifier(rng, scene, event.agent), *words[end:]]
    if rng.random() < 0.3 and Word("be", "B") not in words:  # a future passive gets no adverb before the verb
        finite = max(position for position, word in enumerate(words) if word.role in "VX")  # after any "who owns"
        verb = finite + (words[finite].role == "X") + (words[finite + 1].role == "T")
        return [*words[:verb], Word(rng.choice(ADVERBS), "W"), *words[verb:]]
    if rng.random() < 0.3:
        time = Word(TIMES[event.tense], "W")  # at one end, which is the last where a place comes first
        return [*words, time] if words[0].role == "P" or rng.random() < 0.5 else [time, Word(",", "C"), *words]
    return words


def broken_rules(words: list[Word]) -> set[str]:
    """Returns the names, out of RULES, of the rules that a tagged sentence breaks; an empty set for a correct sentence.

    Where the order of the roles is wrong, only `voice` (if active and passive are mixed) or `order` is returned,
    because the other rules presuppose the right order.
    """
    roles = "".join(word.role for word in words)
    if not SHAPE.fullmatch(roles):
        return {"voice" if MIXED_VOICE.fullmatch(roles) else "order"}
    texts = {role: {word.text for word in words if word.role in role} for role in ("VX", "B", "E")}
    singular = words[_subject(words)].text not in SINGULAR
    times = {TIME_WORDS[word.text] for word in words if word.text in TIME_WORDS}
    finite = [word.text for word in words if word.role in "VX"][-1]  # an earlier one is of a modifier
    present = finite in OTHER_FINITE and finite not in ("was", "were")  # all others of the past have one form only
    tense = "future" if finite == "will" else "present" if present else "past"
    broken = {
        "agreement": any((text in SINGULAR_FINITE) != singular for text in texts["VX"] & OTHER_FINITE.keys()),
        "determiner": not _determiners_agree(words),
        "form": not (texts["B"] <= {*VERBS, "be"} and texts["E"] <= {*PARTICIPLE.values()}),
        "tense": bool(times) and times != {tense},
    }
    return {rule for rule, applies in broken.items() if applies}


def violate(rng: Random, words: list[Word], rule: str) -> list[Word] | None:
    """Changes a correct sentence so that it breaks a rule.

    Args:
        rng, words: what draws one of the possible changes, and the correct sentence.
        rule: a name out of RULES.

    Returns:
        The changed sentence, or None where no suitable change of `_changes` breaks the rule. A change is suitable if
        any two neighbours in it are neighbours in some correct sentence, too, so that one has to read more than two
        words to see the fault. For `order` every change is: each makes a pair that no correct sentence has.
    """
    candidates = [change for change in _changes(words, rule) if rule in broken_rules(change)]
    if rule != "order":
        candidates = [change for change in candidates if _neighbours(change) <= _possible_neighbours()]
    return rng.choice(candidates) if candidates else None


@cache
def _possible_neighbours() -> frozenset[tuple[str, str]]:
    """The pairs that `_neighbours` finds in CORRECT correct sentences; always the same ones."""
    rng = Random(0)
    return frozenset().union(*(_neighbours(elaborate(rng, draw_scene(rng, ALL_TOPICS))) for _ in range(CORRECT)))


def _neighbours(words: list[Word]) -> set[tuple[str, str]]:
    """Every word with the one after it; the empty text stands for each end of the sentence."""
    return set(pairwise(["", *(word.text for word in words), ""]))


def _modifier(rng: Random, scene: Scene, agent: Thing) -> list[Word]:
    """Draws what stands behind the agent's noun, such as "near the cart" or, in the present, "who owns a cart".

    To keep it short, the thing is one and plain; the verbs, of states and not of events, go with a clause of any tense.
    """
    thing = replace(rng.choice(scene.things), quality=None, count=1)
    if rng.random() < 0.5:
        return [Word(rng.choice(("near", "behind")), "P"), *say_thing(replace(thing, definite=True))]
    verb = verb_group(rng.choice(("own", "need")), "present", False, agent.singular)
    return [Word("who", "R"), *verb, *say_thing(thing)]


def _subject(words: list[Word]) -> int:
    """The position of the subject's noun or name: the first of the sentence, or the first after its comma."""
    start = next((position + 1 for position, word in enumerate(words) if word.role == "C"), 0)
    return next(position for position in range(start, len(words)) if words[position].role in "NM")


def _determiners_agree(words: list[Word]) -> bool:
    """Whether "a", "an", "some" and the numerals from two on agree in number with the noun after them."""
    for position, word in enumerate(words):
        if word.role == "D" and word.text in DETERMINER_IS_SINGULAR:
            noun = next(other.text for other in words[position:] if other.role == "N")  # SHAPE says that there is one
            if (noun in SINGULAR) == DETERMINER_IS_SINGULAR[word.text]:  # the keys of SINGULAR are plurals
                return False
    return True


def _changes(words: list[Word], rule: str) -> list[list[Word]]:
    """Returns a changed sentence for each single change by which a rule can be broken; not every one breaks it."""
    positions = range(len(words))
    if rule == "order":  # exchanges two neighbours; a comma or an adverb one word late would be no plain fault
        swaps = [i for i in positions[:-1] if words[i].role not in "CW"]
        return [[*words[:i], words[i + 1], words[i], *words[i + 2 :]] for i in swaps]
    if rule == "voice":  # leaves out "by" or "was", or adds one of them
        changed = [[*words[:i], *words[i + 1 :]] for i in positions if words[i].role == "Y" or words[i].text == "was"]
        for i in positions:
            if words[i].role == "V":
                changed.append([*words[: i + 1], Word("by", "Y"), *words[i + 1 :]])
                changed.append([*words[:i], Word("was", "X"), *words[i:]])
        return changed
    roles, others = REPLACED[rule]
    return [
        [*words[:i], replace(words[i], text=text), *words[i + 1 :]]
        for i in positions
        if words[i].role in roles
        for text in others.get(words[i].text, ())
    ]
