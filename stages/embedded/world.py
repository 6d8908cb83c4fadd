"""Draws scenes of the generated world: a few people and things, and the events between these.

A document keeps to one scene and therefore to one topic, so that the words of a document predict each other.
"""

from dataclasses import dataclass
from random import Random

from stages.embedded.grammar import Event, Thing, Wording
from stages.embedded.lexicon import (
    ACTIONS,
    ACTIONS_ON_PEOPLE,
    ACTIONS_ON_THINGS,
    ALL_TOPICS,
    CLASS_OF,
    COLORS,
    FAVOURABLE,
    QUALITIES_OF,
    SYNONYMS,
    TOPICS,
    Topics,
)

# Most actions are favourable: a model learns first the common part of events, and on top of that their differences.
FAVOURABLE_SHARE = 0.7


@dataclass(frozen=True)
class Scene:
    """The people, things and places that the sentences of one document speak of.

    Attributes:
        topic: the topic of the document, such as farming.
        people: three people who act and are acted on.
        things: two things that are acted on.
        places: the places of the topic.
        pleased: whether opinions are favourable; a document keeps to one mood.
    """

    topic: str
    people: list[Thing]
    things: list[Thing]
    places: list[str]
    pleased: bool


def draw_scene(rng: Random, topics: Topics = ALL_TOPICS) -> Scene:
    """Draws a scene of one of the topics: a person called by role, two people called by name, and two things."""
    topic = rng.choice(topics)
    vocabulary = TOPICS[topic]
    role = rng.choice(vocabulary["people"])
    nouns = [role, *rng.sample(vocabulary["names"], 2)]
    people = [Thing(noun, definite=True) for noun in nouns]
    things = []
    for noun in rng.sample(list(vocabulary["things"]), 2):
        several = rng.randint(2, 4)
        count = rng.choices((1, several), (4, 1))[0]
        quality = draw_quality(rng, noun) if rng.random() < 0.25 else None
        things.append(Thing(noun, count, quality=quality))
    pleased = rng.random() < 0.5
    return Scene(topic, people, things, vocabulary["places"], pleased)


def draw_quality(rng: Random, noun: str) -> str:
    """Draws a quality that suits a noun or, in a quarter of all cases, a colour."""
    if rng.random() < 0.25:
        return rng.choice(COLORS)
    return rng.choice(QUALITIES_OF[CLASS_OF[noun]])


def draw_event(
    rng: Random,
    scene: Scene,
    negated: float = 0.0,
    place: float = 0.2,
    social: float = 0.5,
) -> Event:
    """Draws an event of the past, `Anna hid a cart`: an agent acts on a patient (a person or a thing).

    Args:
        rng: source of all choices.
        scene: people, things and places of the event.
        negated: probability of a negation.
        place: probability that the place is stated.
        social: probability that the patient is a person and not a thing.
    """
    agent = rng.choice(scene.people)
    if rng.random() < social:
        patient = rng.choice([person for person in scene.people if person != agent])
        possible = ACTIONS_ON_PEOPLE
    else:
        patient = rng.choice(scene.things)
        possible = ACTIONS_ON_THINGS
    favourable = rng.random() < FAVOURABLE_SHARE
    action = rng.choice([action for action in possible if (action in FAVOURABLE) == favourable])
    where = rng.choice(scene.places) if rng.random() < place else None
    return Event(agent, action, patient, where, negated=rng.random() < negated)


def draw_wording(rng: Random, event: Event, passive: float = 0.05) -> Wording:
    """Draws how an event is worded: by which names, active or passive, and with the place first or last.

    All verbs are plain ("bought") or all formal ("purchased"). Every other concept with two names has either name.

    Args:
        rng: source of all choices.
        event: the meaning of the sentence.
        passive: probability of the passive.
    """
    swapped = draw_concepts(rng, event.concepts)
    # All verbs at once: "bought" or "purchased".
    swapped |= rng.choice((frozenset(), ACTIONS))
    return Wording(swapped, rng.random() < passive, rng.random() < 0.1)


def draw_rewording(rng: Random, event: Event, wording: Wording) -> Wording:
    """Draws the wording of the second sentence of a pair, which shares no verb with the first sentence.

    Verbs change between plain ("bought") and formal ("purchased"), whether the two meanings are the same or not. About
    half of the other concepts with two names change the name, too. Voice and position of the place change sometimes.

    Args:
        rng: source of all choices.
        event: the meaning of the first sentence.
        wording: the wording of the first sentence.
    """
    swapped = wording.swapped ^ draw_concepts(rng, event.concepts) ^ ACTIONS
    turned = rng.random() < 0.1
    moved = event.place is not None and rng.random() < 0.3
    return Wording(swapped, wording.passive != turned, wording.place_first != moved)


def draw_concepts(rng: Random, concepts: set[str | None], share: float = 0.5) -> frozenset[str]:
    """Draws some of the concepts that have two names, for a sentence to call by the other name.

    Args:
        rng: source of all choices.
        concepts: first names of concepts; `None` for a missing part of an event is ignored.
        share: the probability that a concept is drawn.
    """
    # Sorted, because the order of a set of texts differs between processes.
    named_twice = sorted(concepts & SYNONYMS.keys())
    return frozenset(concept for concept in named_twice if rng.random() < share)
