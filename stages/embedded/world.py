"""Scenes of the embedded world: who is there, with what, and what happens.

A scene keeps to one topic and to a few people and things, as a document does, so that its words predict each other.
"""

from dataclasses import dataclass
from random import Random

from stages.embedded import lexicon
from stages.embedded.grammar import Event, Thing, Wording

FAVOURABLE_SHARE = 0.7  # of actions: what most events have in common is learned first, how two differ on top of it


@dataclass(frozen=True)
class Scene:
    """What a document is about: a topic (of ALL_TOPICS), and the people, things and places that events have.
    pleased: whether opinions are favourable; a document keeps to one mood."""

    topic: str
    people: tuple[Thing, ...]
    things: tuple[Thing, ...]
    places: tuple[str, ...]
    pleased: bool


def draw_scene(rng: Random, topics: tuple[str, ...]) -> Scene:
    """Draws a scene of one of the topics: three people (one by role, two by name), two things, the topic's places.

    One time in five there are two to four of a thing; one time in four it has a quality.
    """
    topic = rng.choice(topics)
    names = next(names for group, names in lexicon.NAMES.items() if topic in group)  # of the topic's half of the world
    people = [Thing(rng.choice(lexicon.PEOPLE[topic]), definite=True)]
    people += [Thing(name, definite=True) for name in rng.sample(names, 2)]
    things = []
    for noun in rng.sample(lexicon.THINGS[topic], 2):
        count = rng.choices((1, rng.randint(2, 4)), (4, 1))[0]
        things.append(Thing(noun, count, quality=quality_for(rng, noun) if rng.random() < 0.25 else None))
    return Scene(topic, tuple(people), tuple(things), lexicon.PLACES[topic], rng.random() < 0.5)


def quality_for(rng: Random, noun: str) -> str:
    """Draws a quality that the noun's class can have or, one time in four, a colour."""
    return rng.choice(lexicon.COLORS if rng.random() < 0.25 else lexicon.QUALITIES_OF[lexicon.CLASS_OF[noun]])


def draw_event(rng: Random, scene: Scene, negated: float = 0.0, place: float = 0.2, social: float = 0.5) -> Event:
    """Draws an event of the past among the people and things of a scene.

    Args:
        rng, scene: what draws it, and the people, things and places that it may have.
        negated, place: probability of a negation, and that a place is named.
        social: probability that something is done to a person, and not to a thing.
    """
    agent = rng.choice(scene.people)
    if rng.random() < social:
        patient = rng.choice([person for person in scene.people if person != agent])
        kind = "person"
    else:
        patient = rng.choice(scene.things)
        kind = lexicon.CLASS_OF[patient.noun]
    favourable = rng.random() < FAVOURABLE_SHARE
    actions = [action for action in lexicon.ACTIONS_ON[kind] if (action in lexicon.FAVOURABLE) == favourable]
    return Event(
        agent,
        rng.choice(actions),
        patient,
        rng.choice(scene.places) if rng.random() < place else None,
        negated=rng.random() < negated,
    )


def draw_wording(rng: Random, event: Event, passive: float = 0.05) -> Wording:
    """Draws a wording: all verbs plain or all formal, everything else that has two names by either of them.

    One time in ten the place, if there is one, stands first.

    Args:
        rng, event: what draws it, and what is to be said.
        passive: probability of the passive.
    """
    swapped = some_concepts(rng, event.concepts)
    swapped |= rng.choice((frozenset(), lexicon.ACTIONS))  # every verb at once: "bought" or "purchased"
    return Wording(swapped, rng.random() < passive, rng.random() < 0.1)


def reworded(rng: Random, event: Event, wording: Wording) -> Wording:
    """Draws another wording: verbs change between plain and formal, and so does about half of what else has two names.

    Two sentences thus never share a verb: one has a plain and one a formal verb, whether these mean the same or not.
    Active and passive are exchanged one time in ten, and a place moves to the other end three times in ten.

    Args:
        rng, event: what draws it, and what the first sentence says; of its concepts about half change their name.
        wording: that of the first sentence.
    """
    swapped = wording.swapped ^ some_concepts(rng, event.concepts) ^ lexicon.ACTIONS
    turned = rng.random() < 0.1
    moved = event.place is not None and rng.random() < 0.3
    return Wording(swapped, wording.passive != turned, wording.place_first != moved)


def some_concepts(rng: Random, concepts: set[str | None], share: float = 0.5) -> frozenset[str]:
    """Draws some of those concepts that have two names.

    Args:
        rng: what draws them.
        concepts: first names of concepts; None, which stands for a missing part of an event, is passed over.
        share: the probability that a concept is drawn.
    """
    # sorted, because the order of a set of texts differs between processes
    return frozenset(concept for concept in sorted(concepts & lexicon.SYNONYMS.keys()) if rng.random() < share)


ALL_TOPICS = tuple(lexicon.THINGS)
