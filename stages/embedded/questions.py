"""Questions about events, whether a sentence answers them, and everyday questions asked in several ways."""

from dataclasses import dataclass
from random import Random

from stages.embedded.grammar import Event, Thing, Word, Wording, say_place, say_thing, text_of, verb_group
from stages.embedded.lexicon import ACTIONS_ON, CLASS_OF, THINGS, name_of

SLOTS = ("who", "where", "how many")  # what a question about an event asks for
PURPOSES = {  # purpose: the short and the long form of a question, with a place for the verb and the thing
    "how": ("how can I {}", "what is the best way to {}"),
    "why": ("why do people {}", "what is the reason to {}"),
    "when": ("when do people {}", "what is the right time to {}"),
    "where": ("where can one {}", "what is a good place to {}"),
}


@dataclass(frozen=True)
class Request:
    """How, why, when or where (a key of PURPOSES) one does an action to a thing; these two by their first names."""

    purpose: str
    action: str
    noun: str


def ask(event: Event, slot: str, wording: Wording) -> str:
    """Words a question about a positive event; what is asked for is left out.

    Args:
        event, wording: what the question is about, and how the rest of it is said.
        slot: what is asked for: the agent, the place or the number of the patient, by its name in SLOTS.
    """
    verb = name_of(event.action, wording.swapped)
    if slot == "who":
        words = [*verb_group(verb, event.tense, False, True), *say_thing(event.patient, wording)]
        return text_of([Word("who", "R"), *words, *say_place(event.place, wording)], "?")
    auxiliary = verb_group(verb, event.tense, True, event.agent.singular)[0]  # that of the negation: did, does, will
    subject = [auxiliary, *say_thing(event.agent, wording), Word(verb, "B")]
    if slot == "where":
        return text_of([Word("where", "W"), *subject, *say_thing(event.patient, wording)], "?")
    noun = say_thing(Thing(event.patient.noun, 0), wording)[-1]  # the last word of "some carts"
    return text_of([Word("how", "W"), Word("many", "D"), noun, *subject, *say_place(event.place, wording)], "?")


def answers(event: Event, asked: Event, slot: str) -> bool:
    """Whether a statement answers a question: it is positive, agrees with all that is named, and has what is asked.

    Args:
        event, asked: what is stated, and the positive event that the question is about.
        slot: what is asked for, by its name in SLOTS: any agent, any place, or an exact number above one.
    """
    if event.negated or (event.action, event.tense) != (asked.action, asked.tense):
        return False
    same_noun = event.patient.noun == asked.patient.noun
    if slot == "who":
        return event.patient == asked.patient and asked.place in (None, event.place)
    if slot == "where":
        return event.agent == asked.agent and event.patient == asked.patient and event.place is not None
    counted = event.patient.count > 1 and event.patient.bound == "exactly"
    return event.agent == asked.agent and same_noun and counted and asked.place in (None, event.place)


def request(rng: Random, topics: tuple[str, ...]) -> Request:
    """Draws an everyday question: a purpose, a thing of one of the topics, and an action done to such things."""
    noun = rng.choice(THINGS[rng.choice(topics)])
    return Request(rng.choice(tuple(PURPOSES)), rng.choice(ACTIONS_ON[CLASS_OF[noun]]), noun)


def say_request(wanted: Request, manner: int, swapped: frozenset[str]) -> str:
    """Words an everyday question.

    Args:
        wanted: what is asked.
        manner: 0 for the short form, 1 for the long one.
        swapped: the concepts that are called by their second name.
    """
    thing = say_thing(Thing(wanted.noun), Wording(swapped))
    doing = " ".join([name_of(wanted.action, swapped), *(word.text for word in thing)])
    line = PURPOSES[wanted.purpose][manner].format(doing)
    return line[0].upper() + line[1:] + "?"
