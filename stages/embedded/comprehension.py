"""Writes passages with questions in the formats of SQuAD 1.1, SQuAD 2.0 and TriviaQA.

A passage states two or three events of a scene. A question asks for the agent, the place or the number of an event.
Exactly one statement answers the question, or no statement for an unanswerable question of SQuAD 2.0. TriviaQA has
documents in files, aliases of the answer (the two names of a concept) and no spans; some questions have no answer.
"""

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from stages.embedded.changes import alter_event
from stages.embedded.grammar import Event, Wording, say_place, say_thing, tag_words, write_sentence
from stages.embedded.lexicon import NUMERALS, list_names
from stages.embedded.questions import SLOTS, answers_question, ask_question
from stages.embedded.world import Scene, draw_event, draw_rewording, draw_scene, draw_wording
from stages.files.storage import write_atomically

# Questions on a passage, at most.
QUESTIONS = 2

# In the form of SQuAD 2.0, a question in three has no answer. This share of these questions differs from a statement in
# a component; the other questions are about another scene.
UNANSWERABLE = 3
NEAR = 0.3

# Share of questions with other names, of the action and perhaps of other concepts, than the passage has.
REWORDED = 0.5

# In the form of TriviaQA, for this many questions there is another question whose document does not hold the answer.
UNFOUND = 20

# Paragraphs of an article.
ARTICLE = 10


# The meaning of a sentence of a passage, and its wording.
Statement = tuple[Event, Wording]


@dataclass(frozen=True)
class Question:
    """A question on a passage.

    Attributes:
        text: the question.
        answer: the answer as the passage words it, empty for an unanswerable question.
        start: the character of the passage at which the answer begins.
        aliases: all names of the answer.
    """

    text: str
    answer: str
    start: int
    aliases: list[str]


# Two or three sentences, and the questions on these sentences.
Passage = tuple[str, list[Question]]


def write_squad(
    folder: Path,
    train_questions: int,
    validation_questions: int,
    seed: int,
) -> None:
    """Writes generated questions on passages in the JSON format of SQuAD; equal arguments give equal bytes.

    Version 2.0 has questions that the passage does not answer, one in three (UNANSWERABLE).

    Args:
        folder: gets squad/{train,dev}-{v1.1,v2.0}.json.
        train_questions: number of questions in each train file.
        validation_questions: number of questions in each dev file.
        seed: seed of all choices.
    """
    for version, share in (("1.1", 0.0), ("2.0", 1 / UNANSWERABLE)):
        for split, number in (("train", train_questions), ("dev", validation_questions)):
            rng = Random(f"{seed} squad {version} {split}")
            paragraphs = []
            for passage in _draw_passages(rng, number, share):
                name = f"{split}-{len(paragraphs)}"
                paragraphs.append(_format_paragraph(passage, name, version, split))
            articles = []
            for first in range(0, len(paragraphs), ARTICLE):
                title = f"Article {len(articles) + 1}"
                articles.append({"title": title, "paragraphs": paragraphs[first : first + ARTICLE]})
            content = {"version": version, "data": articles}
            write_atomically(folder / f"squad/{split}-v{version}.json", json.dumps(content, sort_keys=True))


def _format_paragraph(
    passage: Passage,
    name: str,
    version: str,
    split: str,
) -> dict:
    """Formats a passage with questions as an entry of a SQuAD file.

    A dev file gives each answer also without its article ("farmer" for "the farmer"), as annotators differ.

    Args:
        passage: the text and the questions.
        name: the beginning of the questions' ids, such as `train-0`.
        version: `1.1` or `2.0`, which marks questions without an answer.
        split: `train` or `dev`.
    """
    context, questions = passage
    entries = []
    for question in questions:
        entry = {"id": f"{name}-{len(entries)}", "question": question.text, "answers": []}
        if question.answer:
            entry["answers"].append({"text": question.answer, "answer_start": question.start})
        # A dev file also has the answer without its article, as annotators differ.
        article, _, rest = question.answer.partition(" ")
        if split == "dev" and rest:
            entry["answers"].append({"text": rest, "answer_start": question.start + len(article) + 1})
        if version == "2.0":
            entry["is_impossible"] = not question.answer
        entries.append(entry)
    return {"context": context, "qas": entries}


def write_triviaqa(
    folder: Path,
    train_questions: int,
    validation_questions: int,
    seed: int,
) -> None:
    """Writes generated questions in the format of TriviaQA: questions as JSON, and a text of evidence per question.

    The two parts, wikipedia and web, have half of the questions each; wikipedia has the larger half. Each part also
    gets some questions whose evidence does not hold the answer, as in the real data.

    Args:
        folder: gets triviaqa/qa/{wikipedia,web}-{train,dev}.json and triviaqa/evidence/{wikipedia,web}/*.txt.
        train_questions: number of questions in train with an answer.
        validation_questions: number of questions in dev with an answer.
        seed: seed of all choices; equal seeds give equal bytes.
    """
    for split, number in (("train", train_questions), ("dev", validation_questions)):
        half = number // 2
        for part, pages, count in (("wikipedia", "EntityPages", number - half), ("web", "SearchResults", half)):
            rng = Random(f"{seed} triviaqa {part} {split}")
            passages = _draw_passages(rng, count, 0.0) + _draw_passages(rng, count // UNFOUND, 1.0)
            data = []
            for text, questions in passages:
                for question in questions:
                    name = f"{split}_{len(data)}"
                    write_atomically(folder / f"triviaqa/evidence/{part}/{name}.txt", text + "\n")
                    entry = {
                        "QuestionId": f"{part}_{name}",
                        "Question": question.text,
                        "Answer": {"Value": question.aliases[0], "Aliases": question.aliases},
                        "EntityPages": [],
                        "SearchResults": [],
                    }
                    entry[pages] = [{"Filename": f"{name}.txt", "Title": f"Document {len(data)}"}]
                    data.append(entry)
            content = {"Data": data, "Domain": part.capitalize(), "VerifiedEval": False, "Version": 1.0}
            write_atomically(folder / f"triviaqa/qa/{part}-{split}.json", json.dumps(content, sort_keys=True))


def _draw_passages(rng: Random, number: int, unanswerable: float) -> list[Passage]:
    """Draws passages with questions, up to QUESTIONS for each passage.

    Args:
        rng: source of all choices.
        number: the number of questions in all.
        unanswerable: the share of questions, in [0, 1], that the passage does not answer.
    """
    lacking = [place < round(number * unanswerable) for place in range(number)]
    rng.shuffle(lacking)
    passages = []
    for first in range(0, number, QUESTIONS):
        passage = None
        while passage is None:
            passage = _draw_passage(rng, lacking[first : first + QUESTIONS])
        passages.append(passage)
    return passages


def _draw_passage(rng: Random, lacking: list[bool]) -> Passage | None:
    """Draws a passage of two or three sentences with different questions.

    Args:
        rng: source of all choices.
        lacking: for each question, whether the passage must lack the answer.

    Returns:
        The text and the questions; `None` if a question fails or comes twice, after which the caller draws again.
    """
    scene = draw_scene(rng)
    number = rng.randint(2, 3)
    events = [draw_event(rng, scene, place=0.5, social=0.3) for _ in range(number)]
    statements = [(event, draw_wording(rng, event, passive=0.1)) for event in events]
    context = " ".join(write_sentence(*statement) for statement in statements)
    questions = [_draw_question(rng, scene, statements, context, unanswerable) for unanswerable in lacking]
    texts = {question.text for question in questions if question}
    if len(texts) < len(questions):
        return None
    return context, questions


def _draw_question(
    rng: Random, scene: Scene, statements: list[Statement], context: str, unanswerable: bool
) -> Question | None:
    """Draws a question on a passage: who did something, where, or to how many things.

    Args:
        rng: source of all choices.
        scene: people, things and places of the passage.
        statements: meaning and wording of each sentence of the passage.
        context: the text of the passage.
        unanswerable: whether no sentence may answer the question; if false, exactly one sentence must.

    Returns:
        The question; `None` if the draw fails.
    """
    asked, wording = rng.choice(statements)
    if unanswerable:
        asked = _draw_missing_event(rng, scene, asked)
    slot = rng.choice(SLOTS)
    answering = [statement for statement in statements if answers_question(statement[0], asked, slot)]
    # An event does not answer a question about itself if the event lacks the slot, such as a place.
    if not answers_question(asked, asked, slot) or len(answering) != int(not unanswerable):
        return None
    if rng.random() < REWORDED:
        wording = draw_rewording(rng, asked, wording)
    text = ask_question(asked, slot, wording)
    if unanswerable:
        # The alias is a word that no passage holds.
        return Question(text, "", 0, ["nobody"])
    return _add_answer(text, slot, answering[0], context)


def _draw_missing_event(rng: Random, scene: Scene, event: Event) -> Event:
    """Draws a positive event that a passage probably does not state, close to `event` or of another scene."""
    if rng.random() < NEAR:
        missing = alter_event(rng, event, scene)
    else:
        missing = draw_event(rng, draw_scene(rng), place=0.6, social=0.1)
    return replace(missing, negated=False)


def _add_answer(
    text: str,
    slot: str,
    answering: Statement,
    context: str,
) -> Question:
    """Returns the question with the span of the answer, such as "the farmer", "barn" or "three".

    Args:
        text: the question.
        slot: the requested part of the event: `who`, `where` or `how many`.
        answering: meaning and wording of the sentence with the answer.
        context: the passage.
    """
    event, wording = answering
    if slot == "how many":
        phrase = NUMERALS[event.patient.count]
        aliases = [phrase]
    elif slot == "who":
        phrase = say_thing(event.agent, wording)
        aliases = list_names(event.agent.noun)
    else:
        # Without the preposition.
        phrase = say_place(event.place, wording).partition(" ")[2]
        aliases = list_names(event.place)
    words = " ".join(word.text for word in tag_words(phrase))
    line = write_sentence(event, wording)
    # The first letter of a sentence is a capital.
    found = re.search(rf"\b{words}\b", line, re.IGNORECASE)
    # No other statement contains the text of this statement, because both would answer.
    start = context.index(line) + found.start()
    return Question(text, found[0], start, aliases)
