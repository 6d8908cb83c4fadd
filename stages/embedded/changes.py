"""Changes the meaning of an event, so that the new event follows, contradicts the old event, or neither."""

from dataclasses import replace
from random import Random

from stages.embedded.grammar import Event
from stages.embedded.lexicon import ACTIONS_ON_PEOPLE, ACTIONS_ON_THINGS, CLASS_OF, COLORS, OPPOSITE
from stages.embedded.world import Scene, draw_quality


def weaken_event(rng: Random, event: Event) -> Event:
    """Draws an event that says the same as an event or less, for a hypothesis that a premise entails.

    An event is the meaning of a sentence: an agent acts on a patient, as in "Anna hid three old carts in the barn". The
    new event may have no place, no quality ("old"), a class for the patient ("vehicle" for "cart"), or a bound for a
    count above two ("more than two carts").

    Args:
        rng: source of all choices.
        event: an event. From an event without negation, the new event follows.
    """
    patient = event.patient
    choices = [event]
    if event.place:
        choices.append(replace(event, place=None))
    if patient.quality:
        choices.append(event.change_patient(quality=None))
    # The lexicon has no class for names of people and for nouns that are classes.
    kind = CLASS_OF.get(patient.noun, "person")
    if kind != "person":
        choices.append(event.change_patient(noun=kind, quality=None))
    # "More than one" would take a singular noun.
    if patient.count > 2:
        bound, difference = rng.choice((("over", -1), ("under", 1)))
        choices.append(event.change_patient(bound=bound, count=patient.count + difference))
    return rng.choice(choices)


def oppose_event(rng: Random, event: Event) -> Event:
    """Draws an event that contradicts an event, for a hypothesis that a premise excludes.

    Most often the action becomes the opposite, `sell` for `buy`. Or the event is negated, or the patient (the thing or
    person that is acted on) has another count, the opposite quality or another colour.

    Args:
        rng: source of all choices.
        event: an event without negation.
    """
    patient = event.patient
    weights = {
        replace(event, action=OPPOSITE[event.action]): 9,
        replace(event, negated=True): 3,
    }
    if patient.count > 1:
        # Counts end at five, because a bound adds one, and numerals end at six.
        counts = [count for count in range(2, 6) if count != patient.count]
        weights[event.change_patient(count=rng.choice(counts))] = 1
    if patient.quality:
        weights[_oppose_quality(rng, event)] = 1
    return _draw_weighted(rng, weights)


def divert_event(rng: Random, event: Event, scene: Scene) -> Event:
    """Draws an event that neither follows from an event nor contradicts it, for a hypothesis that stays open.

    The new event most often has another action or adds a place. It may also add a quality, have another agent (who
    acts) or patient (who or what is acted on), or exchange two people.

    Args:
        rng: source of all choices.
        event: an event without negation.
        scene: people, things and places of the old event, from which a new agent, thing or place is drawn.
    """
    patient = event.patient
    weights = {_change_agent(rng, event, scene): 1}
    if patient.definite:
        weights[_exchange_people(event)] = 1
        possible = ACTIONS_ON_PEOPLE
    else:
        other = _draw_other_noun(rng, event, scene)
        weights[event.change_patient(noun=other, quality=None)] = 2
        if not patient.quality:
            weights[event.change_patient(quality=draw_quality(rng, patient.noun))] = 1
        possible = ACTIONS_ON_THINGS
    if not event.place:
        weights[replace(event, place=rng.choice(scene.places))] = 3
    taken = (event.action, OPPOSITE[event.action])
    actions = [action for action in possible if action not in taken]
    weights[replace(event, action=rng.choice(actions))] = 9
    return _draw_weighted(rng, weights)


def alter_event(rng: Random, event: Event, scene: Scene) -> Event:
    """Draws an event with one change, most often the opposite action, for a second sentence with another meaning.

    The other changes concern the agent (who acts), the negation, and the patient (who or what is acted on).
    """
    patient = event.patient
    weights = {
        replace(event, action=OPPOSITE[event.action]): 10,
        _change_agent(rng, event, scene): 1,
        replace(event, negated=not event.negated): 1,
    }
    if patient.definite:
        weights[_exchange_people(event)] = 2
    else:
        weights[event.change_patient(noun=_draw_other_noun(rng, event, scene))] = 1
    if patient.count > 1:
        weights[event.change_patient(count=1)] = 1
    if patient.quality:
        weights[_oppose_quality(rng, event)] = 1
    return _draw_weighted(rng, weights)


def _draw_weighted(rng: Random, weights: dict[Event, int]) -> Event:
    return rng.choices(list(weights), list(weights.values()))[0]


def _change_agent(rng: Random, event: Event, scene: Scene) -> Event:
    present = (event.agent, event.patient)
    others = [person for person in scene.people if person not in present]
    return replace(event, agent=rng.choice(others))


def _exchange_people(event: Event) -> Event:
    return replace(event, agent=event.patient, patient=event.agent)


def _draw_other_noun(rng: Random, event: Event, scene: Scene) -> str:
    return rng.choice([thing.noun for thing in scene.things if thing.noun != event.patient.noun])


def _oppose_quality(rng: Random, event: Event) -> Event:
    """Draws the event with the opposite quality of the patient ("new" for "old"), or with another colour."""
    quality = event.patient.quality
    if quality not in COLORS:
        return event.change_patient(quality=OPPOSITE[quality])
    others = [color for color in COLORS if color != quality]
    return event.change_patient(quality=rng.choice(others))
