"""Draws pairs of sentences whose relation follows from the meanings, for the corpus and for the tasks.

A function that takes the wanted relation draws meanings until the rules of inference give that relation.
"""

import zlib
from dataclasses import replace
from random import Random

from stages.embedded.changes import alter_event, divert_event, oppose_event, weaken_event
from stages.embedded.grammar import Event, write_sentence
from stages.embedded.inference import find_relation
from stages.embedded.lexicon import ACTIONS, OPPOSITE, Topics
from stages.embedded.questions import SLOTS, Request, answers_question, ask_question, draw_request, say_request
from stages.embedded.world import Scene, draw_concepts, draw_event, draw_rewording, draw_wording

Texts = tuple[str, str]

# One pair of this many is held out.
HELD_OUT = 5

# The changes of a positive premise that can give a hypothesis of each relation, drawn with equal probability. Some
# entailments deny the opposite, so that "not" does not give the relation away.
CHANGES = {
    "entailment": ["weaken"] * 8 + ["oppose"] * 2,
    "contradiction": ["oppose"],
    "neutral": ["divert"],
}


def is_held_out(first: str, second: str) -> bool:
    """Returns whether two sentences, in either order, are a pair that is kept for validation, by a hash of both.

    No training file has such a pair, and no document compares the two sentences. The order does not matter, because a
    symmetric task could otherwise ask about a training pair the other way round.
    """
    both = "\n".join(sorted((first, second)))
    # The builtin `hash` differs between processes.
    return zlib.crc32(both.encode()) % HELD_OUT == 0


def say_pair(
    rng: Random,
    first: Event,
    second: Event,
    passive: float = 0.05,
) -> Texts:
    """Words two events (meanings) so that shared words hardly show whether the meanings are the same.

    The verbs differ even if both meanings are the same, as in "bought" and "purchased".

    Args:
        rng: source of all choices.
        first: the event of the first sentence.
        second: the event of the second sentence.
        passive: probability of the passive in the first sentence.
    """
    wording = draw_wording(rng, first, passive)
    rewording = draw_rewording(rng, first, wording)
    return write_sentence(first, wording), write_sentence(second, rewording)


def draw_statements(rng: Random, scene: Scene, same: bool) -> tuple[Event, Event]:
    """Draws the meanings of two sentences, which are the same or differ by one change, for a task such as MRPC.

    Args:
        rng: source of all choices.
        scene: people, things and places of both events.
        same: whether both events are the same.
    """
    # Places are rare, because `alter_event` never changes a place. Meetings of two people are common, because
    # `alter_event` can exchange the two.
    first = draw_event(rng, scene, place=0.05, social=0.8)
    if same:
        return first, first
    return first, alter_event(rng, first, scene)


def draw_inference(rng: Random, scene: Scene, wanted: str) -> tuple[Event, Event]:
    """Draws the events (meanings) of a premise and of a hypothesis with a given relation.

    Some hypotheses are weakened (say less) or negated needlessly, so that a class, a bound or "not" does not give the
    relation away.

    Args:
        rng: source of all choices.
        scene: people, things and places of both events.
        wanted: the relation of the hypothesis to the premise: "entailment", "neutral" or "contradiction".
    """
    while True:
        premise = draw_event(rng, scene, negated=0.1, place=0.1, social=0.7)
        hypothesis = _draw_hypothesis(rng, premise, scene, wanted)
        if find_relation(premise, hypothesis) == wanted:
            return premise, hypothesis


def _draw_hypothesis(
    rng: Random,
    premise: Event,
    scene: Scene,
    wanted: str,
) -> Event:
    """Draws a hypothesis that often has the relation `wanted` to the premise; the caller checks and draws again.

    The premise without negation is weakened (says less), opposed (contradicts) or diverted (says something else), and
    the result may be negated.

    Args:
        rng: source of all choices.
        premise: the event of the premise.
        scene: people, things and places of both events.
        wanted: the relation, such as "neutral".
    """
    base = replace(premise, negated=False)
    negated = premise.negated
    change = rng.choice(CHANGES[wanted])
    if change == "weaken":
        hypothesis = weaken_event(rng, base)
    else:
        hypothesis = oppose_event(rng, base) if change == "oppose" else divert_event(rng, base, scene)
        if rng.random() < 0.5:
            hypothesis = weaken_event(rng, hypothesis)
    if change == "divert":
        negated = rng.random() < 0.3
    elif change == "oppose" and wanted == "entailment":
        negated = True
    return replace(hypothesis, negated=hypothesis.negated != negated)


def draw_question_and_statement(rng: Random, scene: Scene, answered: bool) -> Texts:
    """Draws a question on who, where or how many, and a sentence that answers the question or misses the point.

    Args:
        rng: source of all choices.
        scene: people, things and places of both.
        answered: whether the sentence must answer the question.
    """
    while True:
        asked = draw_event(rng, scene, place=0.4, social=0.6)
        slot = rng.choices(SLOTS, (8, 1, 1))[0]
        # The event may lack the part that is asked for: a place, or a number above one.
        if not answers_question(asked, asked, slot):
            continue
        stated = asked if answered else _miss_the_point(rng, asked, slot, scene)
        if answers_question(stated, asked, slot) == answered:
            wording = draw_wording(rng, asked)
            rewording = draw_rewording(rng, asked, wording)
            return ask_question(asked, slot, wording), write_sentence(stated, rewording)


def _miss_the_point(
    rng: Random,
    asked: Event,
    slot: str,
    scene: Scene,
) -> Event:
    """Draws the event of a sentence that is close to a question but most often does not answer the question.

    Args:
        rng: source of all choices.
        asked: the event that the question is about.
        slot: the requested part: `who`, `where` or `how many`.
        scene: people, things and places.
    """
    if slot == "where" and rng.random() < 0.5:
        return replace(asked, place=None)
    # "Some carts" states no number.
    if slot == "how many" and rng.random() < 0.5:
        return asked.change_patient(count=0)
    other = draw_event(rng, scene, place=0.4)
    if rng.random() < 0.2:
        return other
    return alter_event(rng, asked, scene)


def draw_questions(rng: Random, topics: Topics, same: bool) -> Texts:
    """Draws two everyday questions, such as "How can I buy a cart?", which ask the same or not, for the task QQP.

    One question has a short and one a long form, and the verbs differ. About half of the pairs that differ have one
    purpose ("How can I"), so that the words of the purpose show little.

    Args:
        rng: source of all choices.
        topics: the topics of the questions.
        same: whether both questions ask the same; different questions differ in purpose, action or thing.
    """
    first = draw_request(rng, topics)
    second = first
    while not same and second == first:
        second = _change_request(rng, first, topics)
    nouns = {first.noun, second.noun}
    swapped = rng.choice((frozenset(), ACTIONS)) | draw_concepts(rng, nouns)
    exchanged = ACTIONS | draw_concepts(rng, nouns, 0.6)
    form = rng.randrange(2)
    return say_request(first, form, swapped), say_request(second, 1 - form, swapped ^ exchanged)


def _change_request(rng: Random, request: Request, topics: Topics) -> Request:
    """Draws an everyday question with another purpose, action or thing; the draw may repeat the old question."""
    changed = rng.choice(["purpose"] * 4 + ["action"] * 3 + ["noun"])
    if changed == "action":
        return replace(request, action=OPPOSITE[request.action])
    other = draw_request(rng, topics)
    return replace(request, **{changed: getattr(other, changed)})
