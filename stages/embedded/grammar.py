"""Meanings and the sentences that state them.

A meaning is a frozen record, an `Event`; `say` words it, tagging every word with its grammatical role, so that a
sentence can be judged by its form alone (acceptability.py). A `Wording` chooses among the sentences that mean the same.
Nouns, actions, qualities and places are concepts: each is written as its first, plain name, and some have a second,
formal one ("buy", "purchase"; lexicon.yaml).

Roles: D determiner, A adjective, N noun, M name, V finite verb, X finite auxiliary, T "not", B bare verb, E participle,
P preposition, Y "by", R "who", W adverb (of time, too), C comma.
"""

from dataclasses import dataclass, replace
from typing import Any

from stages.embedded.lexicon import NUMERALS, ON_PLACES, PARTICIPLE, PAST, PLURAL, THIRD_PERSON, article, name_of


@dataclass(frozen=True)
class Thing:
    """A person or an object. count: 1 to 6, or 0 for an unstated number above one. bound: "exactly", "over" (more than
    count) or "under" (fewer than count). quality: an adjective or None. definite: whether the listener knows it, which
    gives it "the". A person called Anna has the noun "Anna", a count of 1, and is definite."""

    noun: str
    count: int = 1
    bound: str = "exactly"
    quality: str | None = None
    definite: bool = False

    @property
    def named(self) -> bool:
        """Whether it is a person called by name; no other noun has a capital."""
        return self.noun[0].isupper()

    @property
    def singular(self) -> bool:
        """Whether its noun and, if it is the subject, the verb are singular."""
        return self.count == 1 and self.bound == "exactly"


@dataclass(frozen=True)
class Event:
    """An agent does an action (the first name of a verb) to a patient, at a place or, for None, somewhere unstated.
    tense: "past", "present" or "future". negated: the event did not take place."""

    agent: Thing
    action: str
    patient: Thing
    place: str | None = None
    tense: str = "past"
    negated: bool = False

    @property
    def concepts(self) -> set[str | None]:
        """The concepts that the event speaks of, without the action; None among them for a missing quality or place."""
        return {self.agent.noun, self.patient.noun, self.patient.quality, self.place}

    def with_patient(self, **changes: Any) -> "Event":
        """The event with fields of its patient changed."""
        return replace(self, patient=replace(self.patient, **changes))


@dataclass(frozen=True)
class Wording:
    """How a meaning is said: which concepts by their second name, active or passive, the place last or first."""

    swapped: frozenset[str] = frozenset()
    passive: bool = False
    place_first: bool = False


@dataclass(frozen=True)
class Word:
    """A word of a sentence, with the letter of its role."""

    text: str
    role: str


PLAIN = Wording()
NOT = {True: [Word("not", "T")], False: []}  # by whether a sentence is negated


def say(event: Event, wording: Wording = PLAIN) -> list[Word]:
    """The words of an event, without capital and full stop."""
    verb, negated = name_of(event.action, wording.swapped), event.negated
    agent, patient = say_thing(event.agent, wording), say_thing(event.patient, wording)
    if not wording.passive:
        core = [*agent, *verb_group(verb, event.tense, negated, event.agent.singular), *patient]
    else:
        future = [Word("will", "X"), *NOT[negated], Word("be", "B")]
        auxiliary = future if event.tense == "future" else [be(event.tense, event.patient.singular), *NOT[negated]]
        core = [*patient, *auxiliary, Word(PARTICIPLE[verb], "E"), Word("by", "Y"), *agent]
    place = say_place(event.place, wording)
    return [*place, Word(",", "C"), *core] if place and wording.place_first else [*core, *place]


def text_of(words: list[Word], end: str = ".") -> str:
    """A sentence in print: capital first, the end mark attached, no space before a comma."""
    line = " ".join(word.text for word in words).replace(" ,", ",")
    return line[0].upper() + line[1:] + end


def sentence(event: Event, wording: Wording = PLAIN) -> str:
    """Writes an event as one sentence, with its first letter and its full stop."""
    return text_of(say(event, wording))


def say_thing(thing: Thing, wording: Wording = PLAIN) -> list[Word]:
    """Words a thing: a person's name alone; otherwise a determiner, the quality if there is one, and the noun."""
    if thing.named:
        return [Word(thing.noun, "M")]
    name = name_of(thing.noun, wording.swapped)
    quality = [Word(name_of(thing.quality, wording.swapped), "A")] if thing.quality else []
    noun = Word(name if thing.singular else PLURAL[name], "N")
    return [*_determiner(thing, (quality or [noun])[0].text), *quality, noun]


def say_place(place: str | None, wording: Wording) -> list[Word]:
    """Words a place as `on the` or `in the` and its noun; no words for None."""
    if place is None:
        return []
    preposition = "on" if place in ON_PLACES else "in"
    return [Word(preposition, "P"), Word("the", "D"), Word(name_of(place, wording.swapped), "N")]


def _determiner(thing: Thing, following: str) -> list[Word]:
    """Words the definiteness and number of a thing. following: the next word, which decides between "a" and "an"."""
    if thing.bound != "exactly":
        compared = "more" if thing.bound == "over" else "fewer"
        return [Word(text, "D") for text in (compared, "than", NUMERALS[thing.count])]
    if thing.definite:
        return [Word("the", "D")] + ([Word(NUMERALS[thing.count], "D")] if thing.count > 1 else [])
    if thing.count == 1:
        return [Word(article(following), "D")]
    return [Word(NUMERALS[thing.count] if thing.count else "some", "D")]


def verb_group(verb: str, tense: str, negated: bool, singular: bool) -> list[Word]:
    """Words what is done in the active voice: the finite verb, or an auxiliary, "not" and the bare verb.

    Args:
        verb, tense: the bare verb; past, present or future.
        negated, singular: whether it is denied; whether the subject is singular, which the present alone shows.
    """
    if tense == "future":
        return [Word("will", "X"), *NOT[negated], Word(verb, "B")]
    if negated:
        does = "does" if singular else "do"
        return [Word("did" if tense == "past" else does, "X"), *NOT[True], Word(verb, "B")]
    if tense == "past":
        return [Word(PAST[verb], "V")]
    return [Word(THIRD_PERSON[verb] if singular else verb, "V")]


def be(tense: str, singular: bool) -> Word:
    """The form of `be` for a tense, past or present, and number: is, are, was or were."""
    if tense == "past":
        return Word("was" if singular else "were", "X")
    return Word("is" if singular else "are", "X")
