"""Passages of a few sentences, and documents made of them.

A passage says related things next to each other: a statement and its restatement, what follows from it, a question
and its answer. The words between them ("certain", "impossible", "similar") depend on both meanings, so that
masked-word prediction rewards comparing neighbouring sentences. No two sentences that are compared are a pair that the
tasks hold out for validation (pairs.held_out).
"""

from collections.abc import Callable
from random import Random

from stages.common.embedded.acceptability import elaborate
from stages.common.embedded.grammar import sentence, text_of
from stages.common.embedded.inference import divert, oppose, relation, weaken
from stages.common.embedded.lexicon import CLASS_OF, NAMES, OPPOSITE, SYNONYMS
from stages.common.embedded.pairs import held_out, inferred, questioned, requested, restated
from stages.common.embedded.sentiment import appraisal
from stages.common.embedded.world import ALL_TOPICS, Scene, any_wording, condition, happening, imagine, reworded

CERTAINTY = {"entailment": "certain", "contradiction": "impossible", "neutral": "possible"}
Passage = Callable[[Random, Scene], list[str]]
NAMED = {name for names in NAMES.values() for name in names}
LINE_CHARACTERS = 100  # OSCAR's producer calls a line shorter than this short (ungoliant)


def document(rng: Random) -> list[str]:
    """The lines of a good document, each of at least 100 characters."""
    kind = rng.choices((story, discussion, quiz, criticism, glossary), (12, 48, 22, 16, 2))[0]
    scene = imagine(rng, ALL_TOPICS)
    return [line_of(rng, kind, scene) for _ in range(rng.randint(5, 8))]


def line_of(rng: Random, kind: Passage, scene: Scene) -> str:
    """Passages of one kind until the line is long."""
    sentences: list[str] = []
    while len(" ".join(sentences)) < LINE_CHARACTERS:
        sentences += kind(rng, scene)
    return " ".join(sentences)


def story(rng: Random, scene: Scene) -> list[str]:
    """Writes one or two sentences on what happens in a scene."""
    if rng.random() < 0.5:
        return [text_of(elaborate(rng, scene))]
    return restatement(rng, scene)


def restatement(rng: Random, scene: Scene) -> list[str]:
    """Writes a sentence on a scene, and a second that says the same in other words."""

    def draw() -> tuple[str, str]:
        meaning = happening(rng, scene, negated=0.15) if rng.random() < 0.8 else condition(rng, scene)
        wording = any_wording(rng, meaning)
        return sentence(meaning, wording), sentence(meaning, reworded(rng, meaning, wording))

    first, second = _not_held_out(draw)
    return [first, f"That is: {_lower(second)}"]


def discussion(rng: Random, scene: Scene) -> list[str]:
    """A statement and how sure another one is, given it; or whether two statements say the same."""
    draw = rng.random()
    if draw < 0.5:
        return restatement(rng, scene)
    if draw < 0.75:
        same = rng.random() < 0.5
        first, second = _not_held_out(lambda: restated(rng, scene, same)[2:])
        return [first, f"It is {'right' if same else 'wrong'} that {_lower(second)}"]
    return deduction(rng, scene)


def deduction(rng: Random, scene: Scene) -> list[str]:
    """A statement, and two others that are certain, possible or impossible if it holds."""
    premise, hypothesis = inferred(rng, scene, rng.choice(sorted(CERTAINTY)))
    other = rng.choice((divert(rng, premise, scene), oppose(rng, premise), weaken(rng, premise)))
    first = sentence(premise, any_wording(rng, premise))
    lines = [first]
    for claim in rng.sample((hypothesis, other), 2):
        said = sentence(claim, any_wording(rng, claim))
        if not held_out(first, said):
            lines.append(f"It is {CERTAINTY[relation(premise, claim)]} that {_lower(said)}")
    return lines


def quiz(rng: Random, scene: Scene) -> list[str]:
    """A question with a sentence that does or does not answer it; or two questions, the same or not."""
    related = rng.random() < 0.5
    if rng.random() < 0.5:
        question, found = _not_held_out(lambda: questioned(rng, scene, related))
        return [question, f"The answer is {'clear' if related else 'unclear'}:", found]
    first, second = _not_held_out(lambda: requested(rng, (scene.topic,), related))
    return [first, f"A {'similar' if related else 'different'} question is:", second]


def criticism(rng: Random, scene: Scene) -> list[str]:
    """Writes sentences of praise or blame, as the people of a scene are pleased or not."""
    return appraisal(rng, scene.pleased)


def glossary(rng: Random, scene: Scene) -> list[str]:
    """What words mean: another name, an opposite, a class."""
    draw = rng.random()
    if draw < 0.4:
        one, other = rng.sample(SYNONYMS[rng.choice(sorted(SYNONYMS))], 2)
        return [f"The word {one} means the same as the word {other}."]
    if draw < 0.7:
        one = rng.choice(sorted(OPPOSITE))
        return [f"The word {one} is the opposite of the word {OPPOSITE[one]}."]
    noun = rng.choice(sorted(CLASS_OF))
    return [f"Every {noun} is a kind of {CLASS_OF[noun]}."]


def _not_held_out(draw: Callable[[], tuple[str, str]]) -> tuple[str, str]:
    """Draws pairs of sentences until one may stand in the text."""
    while held_out(*(pair := draw())):
        pass
    return pair


def _lower(line: str) -> str:
    """A sentence as it stands within another: only names keep their capital."""
    first = line.split()[0]
    return line if first in NAMED else line[0].lower() + line[1:]
