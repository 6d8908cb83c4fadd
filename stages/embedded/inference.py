"""What follows from a meaning: entailment, contradiction, similarity, and the changes that make them.

The convention is that of sentence pairs written about one occasion: both sentences speak of the same event, so that
"bought two cars" contradicts "bought three cars", and "in the barn" where the other names no place is new information.
"""

from dataclasses import replace
from random import Random

from stages.embedded.grammar import Event, Thing
from stages.embedded.lexicon import ACTIONS_ON, CLASS_OF, COLORS, OPPOSITE, opposites
from stages.embedded.world import Scene, quality_for

SAME, WEAKER, OTHER, OPPOSED = "same", "weaker", "other", "opposed"  # what `_compare` finds
# so that, neither negated, two sentences with one verb are more alike than two with everything else in common
COMPONENT_WEIGHTS = {"agent": 1.0, "action": 3.5, "patient": 1.0, "place": 0.5}


def relation(premise: Event, hypothesis: Event) -> str:
    """Returns how a hypothesis stands to a premise of the same tense: "entailment", "contradiction" or "neutral"."""
    if premise.negated:  # to deny a statement is to deny everything that it would follow from
        follows = set(_compare(hypothesis, premise)) <= {SAME, WEAKER}
        return "neutral" if not follows else "entailment" if hypothesis.negated else "contradiction"
    verdicts = _compare(premise, hypothesis)
    if OTHER in verdicts:
        return "neutral"
    return "contradiction" if (OPPOSED in verdicts) != hypothesis.negated else "entailment"


def similarity(one: Event, other: Event) -> float:
    """Computes the similarity of two events on STS-B's scale: 0 (nothing in common) to 5 (one meaning but for tense).

    Agent, action, patient and place (equal where both have none) count by COMPONENT_WEIGHTS: patients by the share that
    `_thing_similarity` gives, opposite actions by a fifth; all times 0.6 where just one event is negated (our choices).
    """
    shares = {
        "agent": 1.0 if one.agent == other.agent else 0.0,
        "action": 1.0 if one.action == other.action else 0.2 if opposites(one.action, other.action) else 0.0,
        "patient": _thing_similarity(one.patient, other.patient),
        "place": 1.0 if one.place == other.place else 0.0,
    }
    share = sum(COMPONENT_WEIGHTS[part] * share for part, share in shares.items()) / sum(COMPONENT_WEIGHTS.values())
    return round(5 * share * (0.6 if one.negated != other.negated else 1.0), 3)


def weaken(rng: Random, meaning: Event) -> Event:
    """Draws an event that follows from a positive one: the event itself, or one that says less in one respect.

    It may leave out the place or the patient's quality, name only the patient's class, or bound a count above two.
    """
    patient = meaning.patient
    choices = [meaning, *([replace(meaning, place=None)] if meaning.place else ())]
    if patient.quality:
        choices.append(meaning.with_patient(quality=None))
    if CLASS_OF.get(patient.noun, "person") != "person":  # a noun without class is a person's name or itself a class
        choices.append(meaning.with_patient(noun=CLASS_OF[patient.noun], quality=None))
    if patient.count > 2:  # "more than one" would take a singular noun
        bound, difference = rng.choice((("over", -1), ("under", 1)))
        choices.append(meaning.with_patient(bound=bound, count=patient.count + difference))
    return rng.choice(choices)


def oppose(rng: Random, meaning: Event) -> Event:
    """Draws what excludes a positive event: the opposite action (most often), negation, another count or quality."""
    patient = meaning.patient
    choices = [(9, replace(meaning, action=OPPOSITE[meaning.action])), (3, replace(meaning, negated=True))]
    if patient.count > 1:
        # to 5, for "fewer than" one more is said with numerals up to six
        count = rng.choice([count for count in range(2, 6) if count != patient.count])
        choices.append((1, meaning.with_patient(count=count)))
    if patient.quality:
        choices.append((1, meaning.with_patient(quality=opposite_quality(rng, patient.quality))))
    return one_of(rng, choices)


def divert(rng: Random, meaning: Event, scene: Scene) -> Event:
    """Draws an event of the same scene that neither follows from a positive one nor is excluded by it.

    Most often it has another action, or names a place where none was named; otherwise it has another object, agent or
    quality, or the same two people with their parts exchanged.

    Args:
        rng, meaning: what draws one of these changes, and a positive event.
        scene: has the people, things and places that may take the place of those of the event.
    """
    patient, agent = meaning.patient, meaning.agent
    things = [thing for thing in scene.things if thing.noun != patient.noun]
    others = [person for person in scene.people if person not in (agent, patient)]
    choices = [(1, replace(meaning, agent=rng.choice(others)))]
    if patient.definite:  # a person
        choices.append((1, replace(meaning, agent=patient, patient=agent)))
    else:
        choices.append((2, replace(meaning, patient=replace(rng.choice(things), count=patient.count, quality=None))))
        if not patient.quality:
            choices.append((1, meaning.with_patient(quality=quality_for(rng, patient.noun))))
    if not meaning.place:
        choices.append((3, replace(meaning, place=rng.choice(scene.places))))
    taken = {meaning.action, OPPOSITE.get(meaning.action)}
    actions = [action for action in ACTIONS_ON[CLASS_OF.get(patient.noun, "person")] if action not in taken]
    choices.append((9, replace(meaning, action=rng.choice(actions))))
    return one_of(rng, choices)


def one_of(rng: Random, choices: list[tuple[int, Event]]) -> Event:
    """Draws one of the events, each with a probability proportional to the weight before it."""
    weights, events = zip(*choices, strict=True)
    return rng.choices(events, weights)[0]


def opposite_quality(rng: Random, quality: str) -> str:
    """The quality that excludes another: its opposite, or, of a colour, any other colour."""
    return OPPOSITE.get(quality) or rng.choice([color for color in COLORS if color != quality])


def _compare(premise: Event, hypothesis: Event) -> list[str]:
    """Compares two events, whatever their negation: agent, action, place, patient's noun, count and quality, in turn.

    For each: SAME if the hypothesis says the same (for a noun, also its class), WEAKER if it says less, OPPOSED if the
    premise excludes what it says, and OTHER if the premise leaves that open, as it does another agent, noun or place.
    """
    actions, patients = (premise.action, hypothesis.action), (premise.patient, hypothesis.patient)
    nouns = {patients[0].noun, CLASS_OF.get(patients[0].noun)}  # every cart is a vehicle
    return [
        SAME if premise.agent == hypothesis.agent else OTHER,
        SAME if actions[0] == actions[1] else OPPOSED if opposites(*actions) else OTHER,
        SAME if premise.place == hypothesis.place else WEAKER if hypothesis.place is None else OTHER,
        SAME if patients[1].noun in nouns else OTHER,
        _compare_counts(*patients),
        _compare_qualities(patients[0].quality, patients[1].quality),
    ]


def _compare_counts(premise: Thing, hypothesis: Thing) -> str:
    """Compares as `_compare`; a bound in the premise leaves every other count and bound open."""
    if (premise.count, premise.bound) == (hypothesis.count, hypothesis.bound):
        return SAME
    if premise.bound != "exactly":
        return OTHER
    if hypothesis.bound == "exactly":
        return OPPOSED
    inside = premise.count > hypothesis.count if hypothesis.bound == "over" else premise.count < hypothesis.count
    return WEAKER if inside else OPPOSED


def _compare_qualities(premise: str | None, hypothesis: str | None) -> str:
    """Compares as `_compare`; None where no quality is stated."""
    if premise == hypothesis:
        return SAME
    if hypothesis is None:
        return WEAKER
    return OPPOSED if premise and opposites(premise, hypothesis) else OTHER


def _thing_similarity(one: Thing, other: Thing) -> float:
    """Scores from 0 to 1: 1 for one noun, 0.4 for one class, else 0; another number takes 0.15, another quality too."""
    if one.noun == other.noun:
        share = 1.0
    else:  # names of people have no class
        share = 0.4 if CLASS_OF.get(one.noun) == CLASS_OF.get(other.noun) and one.noun in CLASS_OF else 0.0
    share -= 0.15 * ((one.count, one.bound) != (other.count, other.bound)) + 0.15 * (one.quality != other.quality)
    return max(share, 0.0)
