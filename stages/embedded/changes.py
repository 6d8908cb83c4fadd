"""Changes of an event that keep, weaken, contradict or leave open the original meaning."""

from dataclasses import replace
from random import Random

from stages.embedded.grammar import Event
from stages.embedded.lexicon import ACTIONS_ON_PEOPLE, ACTIONS_ON_THINGS, CLASS_OF, COLORS, OPPOSITE
from stages.embedded.world import Scene, draw_quality


def weaken_event(rng: Random, event: Event) -> Event:
    """Draws an event that follows from a positive event: the event itself, or an event that says less in one respect.

    The place or the quality of the patient may be missing, the patient may be called by its class, or a count above two
    may become a bound: "more than two carts" for "three carts".
    """
    patient = event.patient
    choices = [event]
    if event.place:
        choices.append(replace(event, place=None))
    if patient.quality:
        choices.append(event.change_patient(quality=None))
    # Names of people and nouns that are classes themselves have no class.
    kind = CLASS_OF.get(patient.noun, "person")
    if kind != "person":
        choices.append(event.change_patient(noun=kind, quality=None))
    # "More than one" would take a singular noun.
    if patient.count > 2:
        bound, difference = rng.choice((("over", -1), ("under", 1)))
        choices.append(event.change_patient(bound=bound, count=patient.count + difference))
    return rng.choice(choices)


def oppose_event(rng: Random, event: Event) -> Event:
    """Draws an event that a positive event excludes: most often the opposite action, or another count or quality."""
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
    """Draws an event of the same scene that neither follows from a positive event nor is excluded by that event.

    The new event most often has another action or a place that was not stated.
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
    """Draws an event with one change, most often the opposite action. The changed event may or may not follow."""
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
    """Draws an event with a probability proportional to its weight."""
    return rng.choices(list(weights), list(weights.values()))[0]


def _change_agent(rng: Random, event: Event, scene: Scene) -> Event:
    """Draws an event with another agent, who is not the patient."""
    present = (event.agent, event.patient)
    others = [person for person in scene.people if person not in present]
    return replace(event, agent=rng.choice(others))


def _exchange_people(event: Event) -> Event:
    """Returns the event with agent and patient, both people, exchanged."""
    return replace(event, agent=event.patient, patient=event.agent)


def _draw_other_noun(rng: Random, event: Event, scene: Scene) -> str:
    """Draws the noun of another thing of the scene."""
    return rng.choice([thing.noun for thing in scene.things if thing.noun != event.patient.noun])


def _oppose_quality(rng: Random, event: Event) -> Event:
    """Draws an event whose patient has the opposite quality or, in place of a colour, another colour."""
    quality = event.patient.quality
    if quality not in COLORS:
        return event.change_patient(quality=OPPOSITE[quality])
    others = [color for color in COLORS if color != quality]
    return event.change_patient(quality=rng.choice(others))
