"""Draws the documents of the generated corpus, made of passages of a few sentences.

A passage says related things next to each other: a statement or a question, and the reply of another speaker. The reply
begins with "yes", "no" or "perhaps", depending on both meanings. Given that word and the first sentence, the reply is
easier to predict, so that masked-word prediction rewards comparing neighbouring sentences.
"""

from dataclasses import replace
from random import Random

from stages.embedded.elaboration import elaborate_event
from stages.embedded.grammar import Wording, print_sentence, say_be, say_thing, tag_words
from stages.embedded.inference import find_relation
from stages.embedded.lexicon import CLASS_OF, NAMES, OPPOSITE, SYNONYMS, choose_name, list_names
from stages.embedded.pairs import (
    Texts,
    draw_inference,
    draw_question_and_statement,
    draw_questions,
    draw_statements,
    is_held_out,
    say_pair,
)
from stages.embedded.sentiment import draw_criticism
from stages.embedded.world import Scene, draw_concepts, draw_quality, draw_scene

REPLY = {"entailment": "Yes", "contradiction": "No", "neutral": "Perhaps"}

# OSCAR's producer (ungoliant) calls a line below this number of characters short.
LINE_CHARACTERS = 100


def draw_document(rng: Random) -> list[str]:
    """Draws the lines of a good document: five to eight long lines of one kind."""
    kinds = (draw_story, draw_exchange, draw_criticism, draw_glossary)
    kind = rng.choices(kinds, (12, 72, 14, 2))[0]
    scene = draw_scene(rng)
    lines = []
    for _ in range(rng.randint(5, 8)):
        sentences = []
        while len(" ".join(sentences)) < LINE_CHARACTERS:
            sentences += kind(rng, scene)
        lines.append(" ".join(sentences))
    return lines


def draw_story(rng: Random, scene: Scene) -> list[str]:
    """Draws a sentence on an event in a scene or on a quality of a thing: `["The cart was big."]`."""
    if rng.random() < 0.8:
        return [print_sentence(elaborate_event(rng, scene))]
    thing = rng.choice(scene.things)
    quality = thing.quality or draw_quality(rng, thing.noun)
    subject = replace(thing, quality=None, definite=True)
    tense = rng.choice(("past", "present"))
    swapped = draw_concepts(rng, {thing.noun, quality})
    verb = say_be(tense, False, subject.singular)
    phrase = f"{say_thing(subject, Wording(swapped))} {verb} {choose_name(quality, swapped)}/A"
    return [print_sentence(tag_words(phrase))]


def draw_exchange(rng: Random, scene: Scene) -> list[str]:
    """Draws a statement or question, and a reply whose first word ("Yes", "No", "Perhaps") tells how the two relate.

    From such text a model can learn the relations of sentences that the tasks ask for. Pairs that validation files may
    use are left out. An example of a reply is "No, Anna hid a cart".
    """
    kind = rng.choices(("statements", "inference", "answer", "questions"), (4, 3, 3, 2))[0]
    texts, relation_of_texts = _draw_compared(rng, scene, kind)
    # Pairs that are kept for validation stand in no document.
    while is_held_out(*texts):
        texts, relation_of_texts = _draw_compared(rng, scene, kind)
    first, second = texts
    # Within a sentence, only names keep their capital.
    if second.split()[0] not in NAMES:
        second = second[0].lower() + second[1:]
    return [first, f"{REPLY[relation_of_texts]}, {second}"]


def _draw_compared(rng: Random, scene: Scene, kind: str) -> tuple[Texts, str]:
    """Draws two sentences and the relation between the two, such as contradiction.

    Args:
        rng: source of all choices.
        scene: people, things and places of both sentences.
        kind: "statements" (as in MRPC), "inference" (as in MNLI), "answer" (as in QNLI) or "questions" (as in QQP).
            Three quarters of the statements mean the same. The possible relations of other kinds are equally likely.
    """
    if kind == "statements":
        events = draw_statements(rng, scene, rng.random() < 0.75)
        return say_pair(rng, *events), find_relation(*events)
    if kind == "inference":
        wanted = rng.choice(sorted(REPLY))
        return say_pair(rng, *draw_inference(rng, scene, wanted)), wanted
    agree = rng.random() < 0.5
    wanted = "entailment" if agree else "contradiction"
    if kind == "answer":
        return draw_question_and_statement(rng, scene, agree), wanted
    return draw_questions(rng, [scene.topic], agree), wanted


def draw_glossary(rng: Random, _scene: Scene) -> list[str]:
    """Draws a sentence on another name, the opposite or the class of a word: `["Every cart is a kind of vehicle."]`."""
    draw = rng.random()
    if draw < 0.4:
        concept = rng.choice(sorted(SYNONYMS))
        first, second = rng.sample(list_names(concept), 2)
        return [f"The word {first} means the same as the word {second}."]
    if draw < 0.7:
        concept = rng.choice(sorted(OPPOSITE))
        return [f"The word {concept} is the opposite of the word {OPPOSITE[concept]}."]
    noun = rng.choice(sorted(CLASS_OF))
    return [f"Every {noun} is a kind of {CLASS_OF[noun]}."]
