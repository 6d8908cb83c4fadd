"""Defines meanings, and words the sentences that state a meaning.

The meaning of a sentence is an `Event`; a `Wording` chooses one of the sentences with this meaning. Nouns, actions,
qualities and places are concepts: a concept is written as the plain name or, where the lexicon has two, as the formal
name ("buy", "purchase").

A tagged phrase is a text of words with roles, such as `the/D cart/N`. Roles let acceptability.py judge the form of a
sentence without the meaning.

Roles: D determiner, A adjective, N noun, M name, V finite verb, X finite auxiliary, T "not", B bare verb, E participle,
P preposition, Y "by", R "who", W adverb (of time, too), C comma.
"""

from dataclasses import dataclass, replace
from typing import Any

from stages.embedded.lexicon import NUMERALS, PARTICIPLE, PAST, PLURAL, THIRD_PERSON, choose_article, choose_name


@dataclass(frozen=True)
class Thing:
    """A person or an object.

    Attributes:
        noun: a concept, or the name of a person, such as "Anna".
        count: 1 to 6, or 0 for an unstated number above 1.
        bound: "exactly", "over" (more than `count`) or "under" (fewer than `count`).
        quality: an adjective, if the thing has a quality.
        definite: whether the listener knows the thing, which then gets "the". All people of events are definite.
    """

    noun: str
    count: int = 1
    bound: str = "exactly"
    quality: str | None = None
    definite: bool = False

    @property
    def named(self) -> bool:
        """Whether the thing is a person called by name; no other noun has a capital."""
        return self.noun[0].isupper()

    @property
    def singular(self) -> bool:
        """Whether the noun and, after the noun as subject, the verb are singular."""
        return self.count == 1 and self.bound == "exactly"


@dataclass(frozen=True)
class Event:
    """The meaning of a sentence: an agent does something to a patient.

    Attributes:
        agent: a person.
        action: the first name of a verb.
        patient: a person or a thing.
        place: where the event happens, if stated.
        tense: `past`, `present` or `future`.
        negated: whether the event did not take place.
    """

    agent: Thing
    action: str
    patient: Thing
    place: str | None = None
    tense: str = "past"
    negated: bool = False

    @property
    def concepts(self) -> set[str | None]:
        """All concepts of the event except the action; `None` for a missing quality or place."""
        return {self.agent.noun, self.patient.noun, self.patient.quality, self.place}

    def change_patient(self, **changes: Any) -> "Event":
        """Returns the event with changed fields of the patient, such as `count=1`."""
        return replace(self, patient=replace(self.patient, **changes))


@dataclass(frozen=True)
class Wording:
    """The choice among the sentences with the same meaning.

    Attributes:
        swapped: the concepts that are called by the second name.
        passive: whether the sentence is passive.
        place_first: whether the place stands at the beginning.
    """

    swapped: frozenset[str] = frozenset()
    passive: bool = False
    place_first: bool = False


@dataclass(frozen=True)
class Word:
    """A word of a sentence, with the letter of its role."""

    text: str
    role: str = ""


PLAIN = Wording()
Words = list[Word]


def tag_words(phrase: str) -> Words:
    """Splits a tagged phrase, such as `the/D big/A cart/N`, into words with roles; a word may lack the role."""
    return [Word(*token.split("/")) for token in phrase.split()]


def splice_words(words: Words, start: int, stop: int, *new: Word) -> Words:
    """Returns a sentence with the words `new` in place of the words from `start` to `stop` - 1."""
    return [*words[:start], *new, *words[stop:]]


def print_sentence(words: Words, end: str = ".") -> str:
    """Joins words to a sentence in print: "In the barn, Anna hid a cart.", with the mark `end`."""
    line = " ".join(word.text for word in words).replace(" ,", ",")
    return line[0].upper() + line[1:] + end


def say_event(event: Event, wording: Wording = PLAIN) -> Words:
    """Words an event, such as a farmer who buys a cart, as words with roles, without capital and full stop.

    Args:
        event: the meaning: agent, action, patient, place, tense and negation.
        wording: which names concepts have, whether the sentence is passive, and whether the place comes first.
    """
    verb = choose_name(event.action, wording.swapped)
    agent = say_thing(event.agent, wording)
    patient = say_thing(event.patient, wording)
    if wording.passive:
        auxiliaries = say_be(event.tense, event.negated, event.patient.singular)
        clause = f"{patient} {auxiliaries} {PARTICIPLE[verb]}/E by/Y {agent}"
    else:
        verbs = say_verb(verb, event.tense, event.negated, event.agent.singular)
        clause = f"{agent} {verbs} {patient}"
    place = say_place(event.place, wording)
    if place and wording.place_first:
        return tag_words(f"{place} ,/C {clause}")
    return tag_words(f"{clause} {place}")


def write_sentence(event: Event, wording: Wording = PLAIN) -> str:
    """Writes an event as a sentence, such as "The farmer bought three big carts in the barn."."""
    return print_sentence(say_event(event, wording))


def say_thing(thing: Thing, wording: Wording = PLAIN) -> str:
    """Words a person or an object as a tagged phrase: `Anna/M`, or with a determiner `a/D big/A cart/N`."""
    if thing.named:
        return f"{thing.noun}/M"
    noun = choose_name(thing.noun, wording.swapped)
    if not thing.singular:
        noun = PLURAL[noun]
    phrase = f"{noun}/N"
    if thing.quality:
        phrase = f"{choose_name(thing.quality, wording.swapped)}/A {phrase}"
    return f"{_say_determiner(thing, phrase)} {phrase}"


def _say_determiner(thing: Thing, following: str) -> str:
    """Words number and definiteness: `more/D than/D two/D`. The phrase that follows decides between "a" and "an"."""
    numeral = f"{NUMERALS[thing.count]}/D"
    if thing.bound != "exactly":
        comparison = "more" if thing.bound == "over" else "fewer"
        return f"{comparison}/D than/D {numeral}"
    if thing.definite:
        return f"the/D {numeral}" if thing.count > 1 else "the/D"
    if thing.count == 0:
        return "some/D"
    if thing.count == 1:
        return f"{choose_article(following)}/D"
    return numeral


def say_place(place: str | None, wording: Wording) -> str:
    """Words a place, such as `in/P the/D barn/N`; empty for `None`."""
    if place is None:
        return ""
    preposition = "on" if place == "street" else "in"
    return f"{preposition}/P the/D {choose_name(place, wording.swapped)}/N"


def say_verb(
    verb: str,
    tense: str,
    negated: bool,
    singular: bool,
) -> str:
    """Words an action in the active voice, such as `bought/V` or `did/X not/T buy/B`.

    Args:
        verb: the bare verb.
        tense: `past`, `present` or `future`.
        negated: whether the action is denied.
        singular: whether the subject is singular, which only the present shows.
    """
    if tense == "future":
        return f"will/X {_say_not(negated)} {verb}/B"
    if negated:
        does = "does" if singular else "do"
        auxiliary = "did" if tense == "past" else does
        return f"{auxiliary}/X not/T {verb}/B"
    if tense == "past":
        return f"{PAST[verb]}/V"
    present = THIRD_PERSON[verb] if singular else verb
    return f"{present}/V"


def say_be(tense: str, negated: bool, singular: bool) -> str:
    """Words a form of "be", such as `was/X not/T` for a denied past with a singular subject."""
    if tense == "future":
        return f"will/X {_say_not(negated)} be/B"
    singular_form, plural_form = ("was", "were") if tense == "past" else ("is", "are")
    finite = singular_form if singular else plural_form
    return f"{finite}/X {_say_not(negated)}"


def _say_not(negated: bool) -> str:
    return "not/T" if negated else ""
