"""Meanings and the sentences that state them.

A meaning is a frozen record, an `Event`. `say` words the event and tags every word with its grammatical role, so that
the form of a sentence can be judged without its meaning (acceptability.py). A `Wording` chooses among the sentences
with the same meaning. Nouns, actions, qualities and places are concepts: a concept is written as its first, plain name,
or as its second, formal name where the lexicon has two ("buy", "purchase").

Roles: D determiner, A adjective, N noun, M name, V finite verb, X finite auxiliary, T "not", B bare verb, E participle,
P preposition, Y "by", R "who", W adverb (of time, too), C comma.
"""

from dataclasses import dataclass, replace
from typing import Any

from stages.embedded.lexicon import NUMERALS, PARTICIPLE, PAST, PLURAL, THIRD_PERSON, choose_article, name_of


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
    """An agent does something to a patient.

    Attributes:
        agent: a person.
        action: the first name of a verb.
        patient: a person or a thing.
        place: where the event happens, if the place is stated.
        tense: "past", "present" or "future".
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

    def with_patient(self, **changes: Any) -> "Event":
        """Returns the event with changed fields of the patient."""
        return replace(self, patient=replace(self.patient, **changes))


@dataclass(frozen=True)
class Wording:
    """How a meaning is said.

    Attributes:
        swapped: the concepts that are called by their second name.
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
    role: str


PLAIN = Wording()


def say(event: Event, wording: Wording = PLAIN) -> list[Word]:
    """Returns the words of an event, without capital and full stop."""
    verb = name_of(event.action, wording.swapped)
    agent = say_thing(event.agent, wording)
    patient = say_thing(event.patient, wording)
    if wording.passive:
        auxiliaries = say_be(event.tense, event.negated, event.patient.singular)
        clause = [*patient, *auxiliaries, Word(PARTICIPLE[verb], "E"), Word("by", "Y"), *agent]
    else:
        verbs = say_verb(verb, event.tense, event.negated, event.agent.singular)
        clause = [*agent, *verbs, *patient]
    place = say_place(event.place, wording)
    if place and wording.place_first:
        return [*place, Word(",", "C"), *clause]
    return [*clause, *place]


def text_of(words: list[Word], end: str = ".") -> str:
    """Returns a sentence in print: "In the barn, Anna hid." with a capital, an end mark, and no space before a comma."""
    line = " ".join(word.text for word in words).replace(" ,", ",")
    return line[0].upper() + line[1:] + end


def sentence(event: Event, wording: Wording = PLAIN) -> str:
    """Writes an event as a sentence, such as "The farmer bought three big carts in the barn."."""
    return text_of(say(event, wording))


def say_thing(thing: Thing, wording: Wording = PLAIN) -> list[Word]:
    """Words a thing: the name of a person, or a determiner, the quality and the noun: "a big cart"."""
    if thing.named:
        return [Word(thing.noun, "M")]
    name = name_of(thing.noun, wording.swapped)
    if not thing.singular:
        name = PLURAL[name]
    phrase = [Word(name, "N")]
    if thing.quality:
        phrase.insert(0, Word(name_of(thing.quality, wording.swapped), "A"))
    return [*_say_determiner(thing, phrase[0].text), *phrase]


def say_place(place: str | None, wording: Wording) -> list[Word]:
    """Words a place, such as "in the barn"; no words for `None`."""
    if place is None:
        return []
    preposition = "on" if place == "street" else "in"
    return [Word(preposition, "P"), Word("the", "D"), Word(name_of(place, wording.swapped), "N")]


def _say_determiner(thing: Thing, following: str) -> list[Word]:
    """Words the definiteness and number of a thing; `following` is the next word, for "a" or "an"."""
    texts = []
    if thing.bound != "exactly":
        comparison = "more" if thing.bound == "over" else "fewer"
        texts = [comparison, "than", NUMERALS[thing.count]]
    elif thing.definite:
        texts = ["the"]
        if thing.count > 1:
            texts.append(NUMERALS[thing.count])
    elif thing.count == 0:
        texts = ["some"]
    elif thing.count == 1:
        texts = [choose_article(following)]
    else:
        texts = [NUMERALS[thing.count]]
    return [Word(text, "D") for text in texts]


def say_verb(verb: str, tense: str, negated: bool, singular: bool) -> list[Word]:
    """Words an action in the active voice: the finite verb, or an auxiliary, "not" and the bare verb.

    Args:
        verb: the bare verb.
        tense: "past", "present" or "future".
        negated: whether the action is denied: "did not buy".
        singular: whether the subject is singular, which only the present shows.
    """
    if tense == "future":
        return [Word("will", "X"), *_say_not(negated), Word(verb, "B")]
    if negated:
        does = "does" if singular else "do"
        auxiliary = "did" if tense == "past" else does
        return [Word(auxiliary, "X"), *_say_not(negated), Word(verb, "B")]
    if tense == "past":
        return [Word(PAST[verb], "V")]
    return [Word(THIRD_PERSON[verb] if singular else verb, "V")]


def say_be(tense: str, negated: bool, singular: bool) -> list[Word]:
    """Words "be" with the same arguments as `say_verb`: "was not", "will be"."""
    if tense == "future":
        return [Word("will", "X"), *_say_not(negated), Word("be", "B")]
    if tense == "past":
        finite = "was" if singular else "were"
    else:
        finite = "is" if singular else "are"
    return [Word(finite, "X"), *_say_not(negated)]


def _say_not(negated: bool) -> list[Word]:
    """Words the negation."""
    return [Word("not", "T")] if negated else []
