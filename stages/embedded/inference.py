"""Decides from two meanings whether the second follows from the first, and how similar both are.

The convention is usual for sentence pairs: both sentences speak of the same event, so that "bought two cars"
contradicts "bought three cars", and "in the barn" is new information if the other sentence states no place.
"""

from stages.embedded.grammar import Event, Thing
from stages.embedded.lexicon import CLASS_OF, are_opposites

# The results of comparing a premise with a hypothesis.
FOLLOWS, OPEN, OPPOSED = "follows", "open", "opposed"

# With these weights two sentences with one verb are more alike than two sentences with everything else in common.
AGENT, ACTION, PATIENT, PLACE = 1.0, 3.5, 1.0, 0.5


def find_relation(premise: Event, hypothesis: Event) -> str:
    """Finds how a hypothesis relates to a premise: `entailment`, `contradiction` or `neutral`.

    "Anna hid a vehicle" follows from "Anna hid a cart"; "Anna showed a cart" contradicts the premise.

    Args:
        premise: the meaning of the first sentence.
        hypothesis: the meaning of the second sentence, in the same tense.
    """
    if premise.negated:
        # To deny a statement is to deny every statement from which it would follow.
        if _compare_events(hypothesis, premise) != {FOLLOWS}:
            return "neutral"
        return "entailment" if hypothesis.negated else "contradiction"
    verdicts = _compare_events(premise, hypothesis)
    if OPEN in verdicts:
        return "neutral"
    opposed = OPPOSED in verdicts
    return "contradiction" if opposed != hypothesis.negated else "entailment"


def compute_similarity(first: Event, second: Event) -> float:
    """Computes the similarity of two events (meanings of sentences) on the scale of STS-B.

    Equal agents, actions, patients (who or what is acted on) and places add up, by weights. Opposite actions count a
    fifth of equal actions. A negation in only one event multiplies the result by 0.6.

    Returns:
        0.0 (nothing in common) to 5.0 (the same meaning except for tense), with three decimals.
    """
    common = PATIENT * _compute_thing_similarity(first.patient, second.patient)
    if first.agent == second.agent:
        common += AGENT
    if first.action == second.action:
        common += ACTION
    elif are_opposites(first.action, second.action):
        common += 0.2 * ACTION
    if first.place == second.place:
        common += PLACE
    share = common / (AGENT + ACTION + PATIENT + PLACE)
    if first.negated != second.negated:
        share *= 0.6
    return round(5 * share, 3)


def _compare_events(premise: Event, hypothesis: Event) -> set[str]:
    """Compares the parts of two events, a premise and a hypothesis, without regard to negation.

    Returns:
        The results for agent, action, place, and the noun, count and quality of the patient: `follows` if the
        hypothesis says the same or less, `opposed` if the premise excludes the hypothesis, `open` in all other cases.
    """
    before, after = premise.patient, hypothesis.patient
    verdicts = {FOLLOWS, _compare_counts(before, after), _compare_qualities(before.quality, after.quality)}
    if are_opposites(premise.action, hypothesis.action):
        verdicts.add(OPPOSED)
    elif premise.action != hypothesis.action:
        verdicts.add(OPEN)
    if premise.agent != hypothesis.agent:
        verdicts.add(OPEN)
    if hypothesis.place not in (premise.place, None):
        verdicts.add(OPEN)
    # Every cart is a vehicle.
    if after.noun not in (before.noun, CLASS_OF.get(before.noun)):
        verdicts.add(OPEN)
    return verdicts


def _compare_counts(premise: Thing, hypothesis: Thing) -> str:
    """Returns `follows`, `opposed` or `open` for the counts of two things: "more than two" follows from "three".

    A bound in the premise leaves every other count and bound open.
    """
    if (premise.count, premise.bound) == (hypothesis.count, hypothesis.bound):
        return FOLLOWS
    if premise.bound != "exactly":
        return OPEN
    above = hypothesis.bound == "over" and premise.count > hypothesis.count
    below = hypothesis.bound == "under" and premise.count < hypothesis.count
    return FOLLOWS if above or below else OPPOSED


def _compare_qualities(premise: str | None, hypothesis: str | None) -> str:
    """Returns `follows`, `opposed` or `open` for two qualities; `None` states no quality."""
    if hypothesis in (premise, None):
        return FOLLOWS
    if premise and are_opposites(premise, hypothesis):
        return OPPOSED
    return OPEN


def _compute_thing_similarity(first: Thing, second: Thing) -> float:
    """Computes the similarity of two things, in [0, 1].

    Equal nouns give 1, and nouns of the same class 0.4. Another number costs 0.15, and so does another quality.
    """
    share = 0.0
    if first.noun == second.noun:
        share = 1.0
    elif first.noun in CLASS_OF and CLASS_OF[first.noun] == CLASS_OF.get(second.noun):
        share = 0.4
    if (first.count, first.bound) != (second.count, second.bound):
        share -= 0.15
    if first.quality != second.quality:
        share -= 0.15
    return max(share, 0.0)
