"""Pairs of sentences whose relation follows from their meanings; the corpus and the tasks both draw from here.

Every function that takes the wanted answer draws meanings until the rules of inference give that answer.
"""

import zlib
from collections.abc import Callable
from dataclasses import replace
from random import Random

from stages.embedded.grammar import Event, sentence
from stages.embedded.inference import divert, one_of, oppose, opposite_quality, relation, weaken
from stages.embedded.lexicon import ACTIONS, OPPOSITE
from stages.embedded.questions import SLOTS, answers, ask, request, say_request
from stages.embedded.world import Scene, draw_event, draw_wording, reworded, some_concepts

HELD_OUT = 5  # one pair in so many is held out


def held_out(first: str, second: str) -> bool:
    """Whether two sentences, in either order, are a pair that is kept for validation, by a hash of both.

    No training file has such a pair, and no document compares its sentences. The order does not matter, as a symmetric
    task would otherwise ask about a training pair the other way round.
    """
    return zlib.crc32("\n".join(sorted((first, second))).encode()) % HELD_OUT == 0  # `hash` differs between processes


def statement_pair(rng: Random, scene: Scene, same: bool) -> tuple[Event, Event, str, str]:
    """Draws two statements on one scene; returns the first event, the second event, and a sentence for each.

    Args:
        rng, scene: what draws them, and the people, things and places that they may have.
        same: whether the second has the meaning of the first; otherwise it has one that `alter` makes of it.
    """
    # places are rare, as `alter` never changes one; meetings of two people are common, as it can exchange them
    first = draw_event(rng, scene, place=0.05, social=0.8)
    second = first if same else alter(rng, first, scene)
    return first, second, *say_pair(rng, first, second)


def alter(rng: Random, event: Event, scene: Scene) -> Event:
    """Returns an event with one change, most often the opposite action.

    The other changes: another agent, object, count or quality, its two people exchanged, a negation set or lifted.

    Args:
        rng, event: what draws the change, and the event that is changed.
        scene: has the people and things that may take the place of those of the event.
    """
    patient, agent = event.patient, event.agent
    changes = [
        (10, replace(event, action=OPPOSITE[event.action])),
        (1, replace(event, agent=rng.choice([person for person in scene.people if person not in (agent, patient)]))),
        (1, replace(event, negated=not event.negated)),
    ]
    if patient.definite:  # a person
        changes.append((2, replace(event, agent=patient, patient=agent)))
    else:
        other = rng.choice([thing for thing in scene.things if thing.noun != patient.noun])
        changes.append((1, event.with_patient(noun=other.noun)))
    if patient.count > 1:
        changes.append((1, event.with_patient(count=1)))
    if patient.quality:
        changes.append((1, event.with_patient(quality=opposite_quality(rng, patient.quality))))
    return one_of(rng, changes)


def inference_pair(rng: Random, scene: Scene, wanted: str) -> tuple[Event, Event]:
    """Draws a premise and a hypothesis, in this order.

    Args:
        rng, scene: what draws them, and the people, things and places that they may have.
        wanted: the relation of the hypothesis to the premise: "entailment", "neutral" or "contradiction". Some
            hypotheses are weakened or negated needlessly, so that a class, a bound or "not" does not tell the relation.
    """
    makers: dict[str, tuple[Callable[..., Event], ...]] = {  # drawn as often as they stand here
        "entailment": (*[weaken] * 8, *[oppose] * 2),
        "contradiction": (oppose,),
        "neutral": (divert,),
    }
    while True:
        premise = draw_event(rng, scene, negated=0.1, place=0.1, social=0.7)
        maker = rng.choice(makers[wanted])
        base = replace(premise, negated=False)
        hypothesis = maker(rng, base, scene) if maker is divert else maker(rng, base)
        if maker is not weaken and rng.random() < 0.5:  # needlessly
            hypothesis = weaken(rng, hypothesis)
        denied = premise.negated or (maker is oppose and wanted == "entailment")  # the opposite denied follows
        if rng.random() < 0.3 if maker is divert else denied:  # `divert` is negated needlessly
            hypothesis = replace(hypothesis, negated=not hypothesis.negated)
        if relation(premise, hypothesis) == wanted:
            return premise, hypothesis


def say_pair(rng: Random, first: Event, second: Event) -> tuple[str, str]:
    """Returns a sentence for each of two events, worded differently: shared words say little about their sameness.

    Args:
        rng: what draws the wordings.
        first, second: the events of the first and of the second sentence.
    """
    wording = draw_wording(rng, first)
    return sentence(first, wording), sentence(second, reworded(rng, first, wording))


def question_and_statement(rng: Random, scene: Scene, answered: bool) -> tuple[str, str]:
    """Draws a question and a sentence, in this order.

    Args:
        rng: what all choices are drawn from.
        scene: the people, things and places of both.
        answered: whether the sentence answers the question.
    """
    while True:
        asked = draw_event(rng, scene, place=0.4, social=0.6)
        (slot,) = rng.choices(SLOTS, (8, 1, 1))  # who, where, how many
        if not answers(asked, asked, slot):  # it lacks what is asked for: a place, or a number above one
            continue
        stated = asked if answered else _beside_the_point(rng, asked, slot, scene)
        if answers(stated, asked, slot) == answered:
            wording = draw_wording(rng, asked)
            return ask(asked, slot, wording), sentence(stated, reworded(rng, asked, wording))


def question_pair(rng: Random, topics: tuple[str, ...], same: bool) -> tuple[str, str]:
    """Draws two everyday questions, one in the short form and one in the long form, which do not share a verb.

    About half of the pairs that differ have one purpose, whose words therefore do not tell whether both ask the same.

    Args:
        rng, topics: what draws them, and what they may be about.
        same: whether both ask the same; otherwise they differ in purpose, action or thing.
    """
    first = request(rng, topics)
    second = first
    while not same and second == first:
        changed = rng.choice(("purpose",) * 4 + ("action",) * 3 + ("noun",))
        value = OPPOSITE[first.action] if changed == "action" else getattr(request(rng, topics), changed)
        second = replace(first, **{changed: value})
    nouns = {first.noun, second.noun}
    swapped = rng.choice((frozenset(), ACTIONS)) | some_concepts(rng, nouns)  # have their second name in the first
    exchanged = ACTIONS | some_concepts(rng, nouns, 0.6)  # have their other name in the second
    manner = rng.randrange(2)
    return say_request(first, manner, swapped), say_request(second, 1 - manner, swapped ^ exchanged)


def _beside_the_point(rng: Random, asked: Event, slot: str, scene: Scene) -> Event:
    """Draws an event close to the one asked about, which most often leaves the question open; the caller checks it."""
    if slot == "where" and rng.random() < 0.5:
        return replace(asked, place=None)
    if slot == "how many" and rng.random() < 0.5:
        return asked.with_patient(count=0)  # "some"
    other = draw_event(rng, scene, place=0.4)
    return other if rng.random() < 0.2 else alter(rng, asked, scene)
