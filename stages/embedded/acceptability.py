"""Longer sentences, the rules they obey, and sentences that break one of them.

`broken_rules` reads a tagged sentence alone: it is the judge of acceptability, whoever made the sentence.
"""

import re
from dataclasses import replace
from functools import cache
from itertools import pairwise
from random import Random

from stages.embedded.grammar import Thing, Word, say, say_thing, verb_group
from stages.embedded.lexicon import (
    ADVERBS,
    CLASS_OF,
    NUMERALS,
    PLACES,
    SYNONYMS,
    TIMES,
    VERBS,
    participle,
    past,
    plural,
    third_person,
)
from stages.embedded.world import ALL_TOPICS, Scene, any_wording, happening, imagine

RULES = {"voice": 5, "tense": 4, "agreement": 4, "determiner": 3, "form": 3, "order": 3}  # rule: how often it is broken
CORRECT = 5000  # sentences that say which words may stand next to each other
NOUN_PHRASE = "(?:M|D+A?N)"
START, END = f"(?:PDNC|WC)?{NOUN_PHRASE}(?:PDN|RV{NOUN_PHRASE})?", f"{NOUN_PHRASE}(?:PDN)?W?"
SHAPE = re.compile(f"{START}(?:W?V|XT?W?B|XT?W?EY|XT?BEY){END}")
MIXED_VOICE = re.compile(f"{START}(?:W?VY|XT?W?V|XT?W?E|XT?BE|W?EY){END}")
NOUNS = {name for noun in CLASS_OF for name in SYNONYMS.get(noun, (noun,))} | {"person", *CLASS_OF.values()}
NOUNS |= {name for places in PLACES.values() for place in places for name in SYNONYMS.get(place, (place,))}
PLURAL_OF = {noun: plural(noun) for noun in sorted(NOUNS)}
SINGULAR_OF = {many: one for one, many in PLURAL_OF.items()}
SINGULAR_DETERMINERS, PLURAL_DETERMINERS = {"a", "an"}, {"some", *NUMERALS[2:]}
OTHER_FINITE = {"was": "were", "is": "are", "does": "do"} | {third_person(verb): verb for verb in VERBS}
OTHER_FINITE |= {plural_form: singular_form for singular_form, plural_form in OTHER_FINITE.items()}
SINGULAR_FINITE = {"was", "is", "does"} | {third_person(verb) for verb in VERBS}
PARTICIPLES = {participle(verb) for verb in VERBS}
TIME_WORDS = {word: tense for tense, word in TIMES.items()}


def elaborate(rng: Random, scene: Scene) -> list[Word]:
    """Makes a correct sentence about an event, often longer than those that `say` alone makes.

    Some sentences get a plural subject, a modifier between subject and verb, an adverb, or a word for the time.

    Args:
        rng: what all choices are drawn from.
        scene: the people, things and places that the event may have.

    Returns:
        The words of the sentence with their roles (grammar.py lists these).
    """
    event = happening(rng, scene, negated=0.15, place=0.2, social=0.4)
    event = replace(event, tense=rng.choice(("past", "past", "present", "future")))
    if not event.agent.named and rng.random() < 0.4:
        event = replace(event, agent=replace(event.agent, count=0))
    wording = any_wording(rng, event, passive=0.3)
    words = say(event, wording)
    if not wording.passive and not event.agent.named and rng.random() < 0.1:
        start = words.index(next(word for word in words if word.role == "N" and not _in_front(words, word))) + 1
        words = [*words[:start], *_modifier(rng, scene, event.agent), *words[start:]]
    return _with_adverbs(rng, words, event.tense)


def broken_rules(words: list[Word]) -> set[str]:
    """Finds the rules of the grammar that a tagged sentence breaks.

    Args:
        words: the sentence, each word with its role.

    Returns:
        Names out of RULES; an empty set for a correct sentence. Where the order of the roles is wrong, `order` or
        `voice` stands alone, for the other rules are looked at in sentences of the right shape only.
    """
    broken = set()
    roles = "".join(word.role for word in words)
    if not SHAPE.fullmatch(roles):
        return {"voice" if MIXED_VOICE.fullmatch(roles) else "order"}
    singular = _subject_is_singular(words)
    for word in words:
        if word.role in "VX" and word.text in OTHER_FINITE and (word.text in SINGULAR_FINITE) != singular:
            broken.add("agreement")
    broken |= {"determiner"} if not _determiners_agree(words) else set()
    bare = [word.text for word in words if word.role == "B"]
    participles = [word.text for word in words if word.role == "E"]
    if not set(bare) <= {*VERBS, "be"} or not set(participles) <= PARTICIPLES:
        broken.add("form")
    times = {TIME_WORDS[word.text] for word in words if word.text in TIME_WORDS}
    if times and times != {_tense(words)}:
        broken.add("tense")
    return broken


def violate(rng: Random, words: list[Word], rule: str) -> list[Word] | None:
    """Changes a correct sentence so that it breaks a rule.

    Args:
        rng: what draws one of the possible changes.
        words: the correct sentence, each word with its role.
        rule: a name out of RULES.

    Returns:
        The changed sentence, or None where no change that belongs to the rule breaks it. But for `order`, every two
        neighbours in it stand next to each other in correct sentences, too: one has to read more than two words.
    """
    changes = {
        "voice": _mix_voices,
        "agreement": _break_agreement,
        "determiner": _break_determiner,
        "order": _break_order,
        "form": _break_form,
        "tense": _break_tense,
    }[rule](words)
    candidates = [change for change in changes if rule in broken_rules(change)]
    if rule != "order":
        candidates = [change for change in candidates if _neighbours(change) <= _possible_neighbours()]
    return rng.choice(candidates) if candidates else None


@cache
def _possible_neighbours() -> frozenset[tuple[str, str]]:
    """The words that stand next to each other in correct sentences."""
    rng = Random(0)
    return frozenset().union(*(_neighbours(elaborate(rng, imagine(rng, ALL_TOPICS))) for _ in range(CORRECT)))


def _neighbours(words: list[Word]) -> set[tuple[str, str]]:
    return set(pairwise(["", *(word.text for word in words), ""]))


def _in_front(words: list[Word], word: Word) -> bool:
    """Whether the word stands in a place put before the subject."""
    commas = [position for position, other in enumerate(words) if other.role == "C"]
    return bool(commas) and words.index(word) < commas[0]


def _modifier(rng: Random, scene: Scene, agent: Thing) -> list[Word]:
    thing = replace(rng.choice(scene.things), quality=None, count=1)
    if rng.random() < 0.5:
        return [Word(rng.choice(("near", "behind")), "P"), *say_thing(replace(thing, definite=True))]
    verb = verb_group(rng.choice(("own", "need")), "present", False, agent.singular)
    return [Word("who", "R"), *verb, *say_thing(thing)]


def _with_adverbs(rng: Random, words: list[Word], tense: str) -> list[Word]:
    if rng.random() < 0.3 and Word("be", "B") not in words:
        finite = max(position for position, word in enumerate(words) if word.role in "VX")
        verb = finite + (words[finite].role == "X") + (words[finite + 1].role == "T")
        words = [*words[:verb], Word(rng.choice(ADVERBS), "W"), *words[verb:]]
    elif rng.random() < 0.3:
        time = Word(TIMES[tense], "W")
        words = [*words, time] if words[0].role == "P" or rng.random() < 0.5 else [time, Word(",", "C"), *words]
    return words


def _subject_is_singular(words: list[Word]) -> bool:
    start = next((position + 1 for position, word in enumerate(words) if word.role == "C"), 0)
    subject = next(word for word in words[start:] if word.role in "NM")
    return subject.text not in SINGULAR_OF


def _determiners_agree(words: list[Word]) -> bool:
    for position, word in enumerate(words):
        number = SINGULAR_DETERMINERS if word.text in SINGULAR_DETERMINERS else PLURAL_DETERMINERS
        if word.role != "D" or word.text not in number:
            continue
        noun = next(other.text for other in words[position:] if other.role == "N")
        if (noun in SINGULAR_OF) != (number is PLURAL_DETERMINERS):
            return False
    return True


def _tense(words: list[Word]) -> str:
    """Reads the tense, `past`, `present` or `future`, from the last finite verb or auxiliary of a tagged sentence."""
    finite = [word.text for word in words if word.role in "VX"][-1]
    if finite == "will":
        return "future"
    return "present" if finite in OTHER_FINITE and finite not in ("was", "were") else "past"


def _replaced(words: list[Word], position: int, text: str) -> list[Word]:
    return [*words[:position], Word(text, words[position].role), *words[position + 1 :]]


def _mix_voices(words: list[Word]) -> list[list[Word]]:
    """Leaves out "by" or "was", or adds one of them."""
    changed = [[*words[:i], *words[i + 1 :]] for i, word in enumerate(words) if word.role == "Y" or word.text == "was"]
    for position, word in enumerate(words):
        if word.role == "V":
            changed.append([*words[: position + 1], Word("by", "Y"), *words[position + 1 :]])
            changed.append([*words[:position], Word("was", "X"), *words[position:]])
    return changed


def _break_agreement(words: list[Word]) -> list[list[Word]]:
    finite = [(position, word.text) for position, word in enumerate(words) if word.role in "VX"]
    return [_replaced(words, position, OTHER_FINITE[text]) for position, text in finite if text in OTHER_FINITE]


def _break_determiner(words: list[Word]) -> list[list[Word]]:
    other = SINGULAR_OF | PLURAL_OF
    return [_replaced(words, position, other[word.text]) for position, word in enumerate(words) if word.role == "N"]


def _break_order(words: list[Word]) -> list[list[Word]]:
    swaps = range(len(words) - 1)
    return [[*words[:i], words[i + 1], words[i], *words[i + 2 :]] for i in swaps if words[i].role not in "CW"]


def _break_form(words: list[Word]) -> list[list[Word]]:
    changed = []
    for position, word in enumerate(words):
        if word.role == "B" and word.text != "be":
            changed.append(_replaced(words, position, past(word.text)))
        if word.role == "E":
            changed += [_replaced(words, position, verb) for verb in VERBS if participle(verb) == word.text]
    return changed


def _break_tense(words: list[Word]) -> list[list[Word]]:
    times = [position for position, word in enumerate(words) if word.text in TIME_WORDS]
    return [_replaced(words, position, other) for position in times for other in TIME_WORDS]
