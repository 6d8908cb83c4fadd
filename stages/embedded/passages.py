"""Passages of a few sentences, and documents made of them.

A passage says related things next to each other: a statement or a question, and what another replies to it. Between
them stands a word ("yes", "no" or "perhaps") that depends on both meanings, and with which the words of the reply can
be told from the first sentence, so that masked-word prediction rewards comparing neighbouring sentences.
"""

from dataclasses import replace
from random import Random

from stages.embedded import pairs
from stages.embedded.acceptability import elaborate
from stages.embedded.grammar import Word, Wording, be, say_thing, text_of
from stages.embedded.inference import relation
from stages.embedded.lexicon import CLASS_OF, NAMES, OPPOSITE, SYNONYMS, name_of
from stages.embedded.sentiment import criticism
from stages.embedded.world import ALL_TOPICS, Scene, draw_scene, quality_for, some_concepts

REPLY = {"entailment": "Yes", "contradiction": "No", "neutral": "Perhaps"}
NAMED = {name for names in NAMES.values() for name in names}
LINE_CHARACTERS = 100  # OSCAR's producer calls a line shorter than this short (ungoliant)


def document(rng: Random) -> list[str]:
    """Draws the lines of a good document: five to eight of one kind, each of at least LINE_CHARACTERS characters."""
    kind = rng.choices((story, exchange, criticism, glossary), (12, 72, 14, 2))[0]  # glossary needs no scene
    scene = draw_scene(rng, ALL_TOPICS)
    lines = []
    for _ in range(rng.randint(5, 8)):
        sentences = []
        while len(" ".join(sentences)) < LINE_CHARACTERS:
            sentences += kind(rng, scene)
        lines.append(" ".join(sentences))
    return lines


def story(rng: Random, scene: Scene) -> list[str]:
    """Writes one sentence on what happens in a scene, or on a quality of one of its things."""
    if rng.random() < 0.8:
        return [text_of(elaborate(rng, scene))]
    thing = rng.choice(scene.things)
    subject, quality = replace(thing, quality=None, definite=True), thing.quality or quality_for(rng, thing.noun)
    tense = rng.choice(("past", "present"))
    swapped = some_concepts(rng, {subject.noun, quality})
    words = [*say_thing(subject, Wording(swapped)), be(tense, subject.singular), Word(name_of(quality, swapped), "A")]
    return [text_of(words)]


def exchange(rng: Random, scene: Scene) -> list[str]:
    """Writes two sentences: a statement or a question, and a reply that begins with a word of REPLY."""
    (kind,) = rng.choices(("statements", "inference", "answer", "questions"), (4, 3, 3, 2))
    first, second, word = _compared(rng, scene, kind)
    while pairs.held_out(first, second):  # kept for validation
        first, second, word = _compared(rng, scene, kind)
    if second.split()[0] not in NAMED:  # within a sentence, only names keep their capital
        second = second[0].lower() + second[1:]
    return [first, f"{word}, {second}"]


def _compared(rng: Random, scene: Scene, kind: str) -> tuple[str, str, str]:
    """Draws two sentences as the task of their kind has them, and the word of REPLY that stands between them.

    kind: "statements" (as in MRPC), "inference" (MNLI), "answer" (QNLI: question and statement) or "questions" (QQP).
    Three in four pairs of statements mean the same; otherwise the words that a kind can have are equally likely.
    """
    if kind == "statements":
        one, other, first, second = pairs.statement_pair(rng, scene, rng.random() < 0.75)
        return first, second, REPLY[relation(one, other)]
    if kind == "inference":
        wanted = rng.choice(sorted(REPLY))
        return *pairs.say_pair(rng, *pairs.inference_pair(rng, scene, wanted)), REPLY[wanted]
    agree = rng.random() < 0.5  # the sentence answers the question, or both questions ask the same
    word = REPLY["entailment" if agree else "contradiction"]
    if kind == "answer":
        return *pairs.question_and_statement(rng, scene, agree), word
    return *pairs.question_pair(rng, (scene.topic,), agree), word


def glossary(rng: Random, scene: Scene) -> list[str]:
    """Writes one sentence on what a word means: it states another name, the opposite or the class."""
    draw = rng.random()
    if draw < 0.4:
        one, other = rng.sample(SYNONYMS[rng.choice(sorted(SYNONYMS))], 2)
        return [f"The word {one} means the same as the word {other}."]
    if draw < 0.7:
        one = rng.choice(sorted(OPPOSITE))
        return [f"The word {one} is the opposite of the word {OPPOSITE[one]}."]
    noun = rng.choice(sorted(CLASS_OF))
    return [f"Every {noun} is a kind of {CLASS_OF[noun]}."]
