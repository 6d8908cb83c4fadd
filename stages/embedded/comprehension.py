"""Passages of the embedded world with questions, written like SQuAD 1.1, SQuAD 2.0 and TriviaQA.

A passage states a few events of a scene. A question asks for the agent, the place or the number of an event, and
exactly one statement answers the question; no statement answers an unanswerable question of SQuAD 2.0. TriviaQA has
documents in files, aliases of the answer (the two names of a concept) and no spans; some questions have no answer.
"""

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from stages.embedded.changes import alter
from stages.embedded.grammar import Event, Wording, say_place, say_thing, sentence, tag
from stages.embedded.lexicon import ALL_TOPICS, NUMERALS, names_of
from stages.embedded.questions import SLOTS, answers, ask
from stages.embedded.world import Scene, draw_event, draw_rewording, draw_scene, draw_wording
from stages.files.storage import write_atomically

# Of a passage.
SENTENCES = (2, 3)
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


@dataclass(frozen=True)
class Statement:
    """A sentence of a passage: its meaning, its wording and its text."""

    event: Event
    wording: Wording
    text: str


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
    answer: str = ""
    start: int = 0
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Passage:
    """Two or three sentences, and the questions on these sentences."""

    text: str
    questions: list[Question]


def write_squad(folder: Path, train_questions: int, validation_questions: int, seed: int) -> None:
    """Writes generated questions in the form of SQuAD; equal seeds give equal bytes.

    Args:
        folder: gets squad/{train,dev}-{v1.1,v2.0}.json.
        train_questions: number of questions in each train file.
        validation_questions: number of questions in each dev file.
        seed: seed of all choices.
    """
    for version, share in (("1.1", 0.0), ("2.0", 1 / UNANSWERABLE)):
        for split, number in (("train", train_questions), ("dev", validation_questions)):
            rng = Random(f"{seed} squad {version} {split}")
            passages = _draw_passages(rng, number, share)
            paragraphs = []
            for place, passage in enumerate(passages):
                paragraphs.append(_format_paragraph(passage, f"{split}-{place}", version, split))
            articles = []
            for first in range(0, len(paragraphs), ARTICLE):
                title = f"Article {first // ARTICLE + 1}"
                articles.append({"title": title, "paragraphs": paragraphs[first : first + ARTICLE]})
            content = json.dumps({"version": version, "data": articles}, sort_keys=True)
            write_atomically(folder / "squad" / f"{split}-v{version}.json", content)


def _format_paragraph(passage: Passage, name: str, version: str, split: str) -> dict:
    """Returns an entry of SQuAD: a paragraph with its questions, whose ids begin with `name`."""
    entries = []
    for place, question in enumerate(passage.questions):
        gold = []
        if question.answer:
            gold.append({"text": question.answer, "answer_start": question.start})
        # A dev file also has the answer without its article, as annotators differ.
        article, _, rest = question.answer.partition(" ")
        if split == "dev" and rest:
            gold.append({"text": rest, "answer_start": question.start + len(article) + 1})
        entry = {"id": f"{name}-{place}", "question": question.text, "answers": gold}
        if version == "2.0":
            entry["is_impossible"] = not question.answer
        entries.append(entry)
    return {"context": passage.text, "qas": entries}


def write_triviaqa(folder: Path, train_questions: int, validation_questions: int, seed: int) -> None:
    """Writes generated questions in the form of TriviaQA: files of questions, and a text of evidence for each question.

    The two parts, wikipedia and web, have half of the questions each; of an odd number, wikipedia has the larger half.
    For every UNFOUND questions of a part, another question whose evidence does not hold the answer is added.

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
            for passage in passages:
                for question in passage.questions:
                    name = f"{split}_{len(data)}.txt"
                    write_atomically(folder / "triviaqa" / "evidence" / part / name, passage.text + "\n")
                    entry = _format_entry(question, f"{part}_{split}_{len(data)}")
                    entry[pages] = [{"Filename": name, "Title": f"Document {len(data)}"}]
                    data.append(entry)
            content = {"Data": data, "Domain": part.capitalize(), "VerifiedEval": False, "Version": 1.0}
            path = folder / "triviaqa" / "qa" / f"{part}-{split}.json"
            write_atomically(path, json.dumps(content, sort_keys=True))


def _format_entry(question: Question, name: str) -> dict:
    """Returns an entry of TriviaQA without documents; `name` is the id."""
    # The answer of an unanswerable question is a word that no passage holds.
    aliases = list(question.aliases) or ["nobody"]
    return {
        "QuestionId": name,
        "Question": question.text,
        "Answer": {"Value": aliases[0], "Aliases": aliases},
        "EntityPages": [],
        "SearchResults": [],
    }


def _draw_passages(rng: Random, number: int, unanswerable: float) -> list[Passage]:
    """Draws passages with `number` questions in all, of which the share `unanswerable`, in [0, 1], has no answer."""
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
    """Draws a passage with different questions, or `None` for unsuitable questions.

    Args:
        rng: source of all choices.
        lacking: for each question, whether the question has no answer.
    """
    scene = draw_scene(rng, ALL_TOPICS)
    number = rng.randint(*SENTENCES)
    events = [draw_event(rng, scene, place=0.5, social=0.3) for _ in range(number)]
    statements = []
    for event in events:
        wording = draw_wording(rng, event, passive=0.1)
        statements.append(Statement(event, wording, sentence(event, wording)))
    questions = [_draw_question(rng, scene, statements, unanswerable) for unanswerable in lacking]
    texts = {question.text for question in questions if question}
    if len(texts) < len(questions):
        return None
    return Passage(" ".join(statement.text for statement in statements), questions)


def _draw_question(rng: Random, scene: Scene, statements: list[Statement], unanswerable: bool) -> Question | None:
    """Draws a question that exactly one statement answers, or no statement if `unanswerable`; `None` for failure."""
    subject = rng.choice(statements)
    asked = _draw_missing_event(rng, scene, subject.event) if unanswerable else subject.event
    slot = rng.choice(SLOTS)
    answering = [statement for statement in statements if answers(statement.event, asked, slot)]
    # An event does not answer a question about itself if the event lacks the slot, such as a place.
    if not answers(asked, asked, slot) or len(answering) != (0 if unanswerable else 1):
        return None
    wording = subject.wording
    if rng.random() < REWORDED:
        wording = draw_rewording(rng, asked, wording)
    text = ask(asked, slot, wording)
    if unanswerable:
        return Question(text)
    return _add_answer(text, slot, statements, answering[0])


def _draw_missing_event(rng: Random, scene: Scene, event: Event) -> Event:
    """Draws a positive event that a passage probably does not state, close to `event` or of another scene."""
    if rng.random() < NEAR:
        missing = alter(rng, event, scene)
    else:
        missing = draw_event(rng, draw_scene(rng, ALL_TOPICS), place=0.6, social=0.1)
    return replace(missing, negated=False)


def _add_answer(text: str, slot: str, statements: list[Statement], answering: Statement) -> Question:
    """Finds the span of the answer in the passage, a place without its preposition.

    Args:
        text: the question.
        slot: the part of the event that the question asks for.
        statements: all statements of the passage.
        answering: the statement with the answer.
    """
    event, wording = answering.event, answering.wording
    if slot == "how many":
        phrase = NUMERALS[event.patient.count]
        aliases = [phrase]
    elif slot == "who":
        phrase = say_thing(event.agent, wording)
        aliases = names_of(event.agent.noun)
    else:
        # Without the preposition.
        phrase = say_place(event.place, wording).partition(" ")[2]
        aliases = names_of(event.place)
    answer = " ".join(word.text for word in tag(phrase))
    # The first letter of a sentence is a capital.
    found = re.search(rf"\b{re.escape(answer)}\b", answering.text, re.IGNORECASE)
    before = statements[: statements.index(answering)]
    # A space stands between two sentences.
    start = found.start() + sum(len(statement.text) + 1 for statement in before)
    return Question(text, found[0], start, tuple(aliases))
