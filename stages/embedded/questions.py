"""Words questions about events and everyday questions, and judges which statements answer a question."""

from dataclasses import dataclass
from random import Random

from stages.embedded.grammar import Event, Thing, Wording, print_sentence, say_place, say_thing, tag_words
from stages.embedded.lexicon import ACTIONS_ON_THINGS, PAST, PURPOSES, TOPICS, Topics, choose_name

# The part of an event that a question asks for.
SLOTS = ("who", "where", "how many")


@dataclass(frozen=True)
class Request:
    """The meaning of an everyday question.

    Attributes:
        purpose: the purpose of the question, such as a price.
        action: the first name of a verb.
        noun: the first name of a thing.
    """

    purpose: str
    action: str
    noun: str


def ask_question(event: Event, slot: str, wording: Wording) -> str:
    """Words a question about an event (who did what to whom), such as "Where did the farmer buy three big carts?".

    Args:
        event: the subject of the question, positive and of the past.
        slot: the requested part of the event: `who`, `where` or `how many`.
        wording: the wording of the other parts.
    """
    verb = choose_name(event.action, wording.swapped)
    patient = say_thing(event.patient, wording)
    place = say_place(event.place, wording)
    if slot == "who":
        return print_sentence(tag_words(f"who {PAST[verb]} {patient} {place}"), "?")
    clause = f"did {say_thing(event.agent, wording)} {verb}"
    if slot == "where":
        return print_sentence(tag_words(f"where {clause} {patient}"), "?")
    # The last word of "some carts".
    noun = say_thing(Thing(event.patient.noun, 0), wording).split()[-1]
    return print_sentence(tag_words(f"how many {noun} {clause} {place}"), "?")


def answers_question(event: Event, asked: Event, slot: str) -> bool:
    """Checks whether a statement answers a question.

    The statement must be positive, agree with every part that the question names, and state the requested part.

    Args:
        event: the meaning of the statement.
        asked: the positive event that the question is about.
        slot: the requested part: `who`, `where` or `how many` (an exact number above one).
    """
    if event.negated or event.action != asked.action:
        return False
    same_place = asked.place in (None, event.place)
    if slot == "who":
        return event.patient == asked.patient and same_place
    if event.agent != asked.agent:
        return False
    if slot == "where":
        return event.patient == asked.patient and event.place is not None
    counted = event.patient.count > 1 and event.patient.bound == "exactly"
    return event.patient.noun == asked.patient.noun and counted and same_place


def draw_request(rng: Random, topics: Topics) -> Request:
    """Draws the meaning of an everyday question about a thing of one of the topics."""
    topic = rng.choice(topics)
    noun = rng.choice(list(TOPICS[topic]["things"]))
    purpose = rng.choice(list(PURPOSES))
    return Request(purpose, rng.choice(ACTIONS_ON_THINGS), noun)


def say_request(request: Request, form: int, swapped: frozenset[str]) -> str:
    """Words an everyday question, such as "How can I buy a cart?".

    Args:
        request: the meaning of the question: purpose, action and thing.
        form: 0 for the short form, 1 for the long form of the beginning.
        swapped: the concepts that are called by their second name ("purchase" for "buy").
    """
    verb = choose_name(request.action, swapped)
    thing = say_thing(Thing(request.noun), Wording(swapped))
    beginning = PURPOSES[request.purpose][form]
    return print_sentence(tag_words(f"{beginning} {verb} {thing}"), "?")
