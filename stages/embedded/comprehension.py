"""Passages of the embedded world with questions on them, written as SQuAD 1.1, SQuAD 2.0 and TriviaQA are distributed.

A passage states a few events of one scene. A question asks for the agent, the place or the number of one of them, and
just one statement answers it; for an unanswerable question, as SQuAD 2.0 has them, none does. TriviaQA's form has
documents in files, aliases of the answer (the two names of a concept) and no spans; for some questions, no answer.
"""

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from stages.embedded.grammar import Event, Wording, say_place, say_thing, sentence
from stages.embedded.lexicon import NUMERALS, names_of
from stages.embedded.pairs import alter
from stages.embedded.questions import SLOTS, answers, ask
from stages.embedded.world import ALL_TOPICS, Scene, draw_event, draw_scene, draw_wording, reworded
from stages.files.storage import write_atomically

SENTENCES = (2, 3)  # in a passage, at least and at most
QUESTIONS = 2  # per passage, at most
UNANSWERABLE = 3  # in SQuAD 2.0's form, one question in three has no answer
NEAR = 0.3  # share of the unanswerable ones that differ from a statement in one component; others are of another scene
REWORDED = 0.5  # share of questions that name the action, and perhaps other things, otherwise than the passage does
UNFOUND = 20  # in TriviaQA's form, for every 20 questions there is one more whose document does not hold the answer
ARTICLE = 10  # paragraphs per article
Statement = tuple[Event, Wording, str]  # what a sentence of a passage says, how it is worded, and the sentence


@dataclass(frozen=True)
class Question:
    """answer: as the passage words it, from its character `start` on; where there is none, "", 0 and no aliases."""

    text: str
    answer: str = ""
    start: int = 0
    aliases: tuple[str, ...] = ()


Passage = tuple[str, list[Question]]  # two or three sentences, and the questions on them


def write_squad(folder: Path, train_questions: int, validation_questions: int, seed: int) -> None:
    """Writes generated questions as SQuAD is distributed; equal seeds give equal bytes.

    Args:
        folder: gets squad/{train,dev}-{v1.1,v2.0}.json.
        train_questions, validation_questions: the number of questions in each train file and in each dev file.
    """
    for version, share in (("1.1", 0.0), ("2.0", 1 / UNANSWERABLE)):
        for split, number in (("train", train_questions), ("dev", validation_questions)):
            rng = Random(f"{seed} squad {version} {split}")
            passages = _draw_passages(rng, number, share)
            content = json.dumps(_as_squad(passages, version, split), sort_keys=True)
            write_atomically(folder / "squad" / f"{split}-v{version}.json", content)


def write_triviaqa(folder: Path, train_questions: int, validation_questions: int, seed: int) -> None:
    """Writes generated questions as TriviaQA is distributed: files of questions, and a text of evidence for each.

    Args:
        folder: gets triviaqa/qa/{wikipedia,web}-{train,dev}.json and triviaqa/evidence/{wikipedia,web}/*.txt.
        train_questions, validation_questions: the number of questions in train and in dev, half of them in each part,
            of an odd number one more in wikipedia. Their evidence holds the answer; for every UNFOUND of a part, one
            whose evidence does not is added.
        seed: equal seeds give equal bytes.
    """
    for split, number in (("train", train_questions), ("dev", validation_questions)):
        parts = (("wikipedia", "EntityPages", number - number // 2), ("web", "SearchResults", number // 2))
        for part, pages, count in parts:
            rng = Random(f"{seed} triviaqa {part} {split}")
            passages = [*_draw_passages(rng, count, 0.0), *_draw_passages(rng, count // UNFOUND, 1.0)]
            pairs = [(text, question) for text, questions in passages for question in questions]
            data = []
            for place, (text, question) in enumerate(pairs):
                name = f"{split}_{place}.txt"
                aliases = list(question.aliases) or ["nobody"]  # if it has no answer: a word that no passage holds
                entry = {"QuestionId": f"{part}_{split}_{place}", "Question": question.text}
                entry |= {"Answer": {"Value": aliases[0], "Aliases": aliases}, "EntityPages": [], "SearchResults": []}
                entry[pages] = [{"Filename": name, "Title": f"Document {place}"}]
                data.append(entry)
                write_atomically(folder / "triviaqa" / "evidence" / part / name, text + "\n")
            content = {"Data": data, "Domain": part.capitalize(), "VerifiedEval": False, "Version": 1.0}
            path = folder / "triviaqa" / "qa" / f"{part}-{split}.json"
            write_atomically(path, json.dumps(content, sort_keys=True))


def _draw_passages(rng: Random, number: int, unanswerable: float) -> list[Passage]:
    """Draws passages with `number` questions in all, of which the share `unanswerable`, in [0, 1], has no answer.

    No two questions on a passage are worded the same. A passage without suitable questions is drawn anew.
    """
    lacking = [i < round(number * unanswerable) for i in range(number)]
    rng.shuffle(lacking)
    passages: list[Passage] = []
    while wanted := lacking[len(passages) * QUESTIONS :][:QUESTIONS]:  # of the next passage: whether there is no answer
        scene = draw_scene(rng, ALL_TOPICS)
        events = [draw_event(rng, scene, place=0.5, social=0.3) for _ in range(rng.randint(*SENTENCES))]
        wordings = [draw_wording(rng, event, passive=0.1) for event in events]
        statements = [(*pair, sentence(*pair)) for pair in zip(events, wordings, strict=True)]
        questions = [_question(rng, scene, statements, without_answer) for without_answer in wanted]
        if all(questions) and len({question.text for question in questions}) == len(questions):
            passages.append((" ".join(line for *_, line in statements), questions))
    return passages


def _as_squad(passages: list[Passage], version: str, split: str) -> dict:
    """Returns the content of a file of SQuAD, `version` 1.1 or 2.0, `split` train or dev."""
    paragraphs = []
    for number, (text, questions) in enumerate(passages):
        entries = []
        for place, question in enumerate(questions):
            gold = [{"text": question.answer, "answer_start": question.start}] if question.answer else []
            article, _, rest = question.answer.partition(" ")
            if split == "dev" and rest:  # also the answer without its article
                gold.append({"text": rest, "answer_start": question.start + len(article) + 1})
            entry = {"id": f"{split}-{number}-{place}", "question": question.text, "answers": gold}
            if version == "2.0":
                entry["is_impossible"] = not question.answer
            entries.append(entry)
        paragraphs.append({"context": text, "qas": entries})
    articles = [
        {"title": f"Article {first // ARTICLE + 1}", "paragraphs": paragraphs[first : first + ARTICLE]}
        for first in range(0, len(paragraphs), ARTICLE)
    ]
    return {"version": version, "data": articles}


def _question(rng: Random, scene: Scene, statements: list[Statement], unanswerable: bool) -> Question | None:
    """Draws a question that just one statement answers (none if `unanswerable`), or None: the caller draws again."""
    asked, wording, _ = rng.choice(statements)
    if unanswerable:
        if rng.random() < NEAR:
            asked = alter(rng, asked, scene)
        else:
            asked = draw_event(rng, draw_scene(rng, ALL_TOPICS), place=0.6, social=0.1)
        asked = replace(asked, negated=False)  # which `alter` may have negated
    slot = rng.choice(SLOTS)
    answering = [i for i, (event, *_) in enumerate(statements) if answers(event, asked, slot)]
    # an event does not answer a question about itself where it lacks what is asked for, such as a place
    if not answers(asked, asked, slot) or len(answering) != (0 if unanswerable else 1):
        return None
    text = ask(asked, slot, reworded(rng, asked, wording) if rng.random() < REWORDED else wording)
    if unanswerable:
        return Question(text)
    event, wording, line = statements[answering[0]]
    phrase, aliases = _answer(event, slot, wording)
    answer = re.search(rf"\b{re.escape(phrase)}\b", line, re.IGNORECASE)  # a sentence's first letter is a capital
    start = sum(len(line) + 1 for *_, line in statements[: answering[0]]) + answer.start()  # 1: the space between
    return Question(text, answer[0], start, aliases)


def _answer(event: Event, slot: str, wording: Wording) -> tuple[str, tuple[str, ...]]:
    """Returns the words that answer a question (a place without its preposition), and all names of what is asked."""
    if slot == "how many":
        number = NUMERALS[event.patient.count]
        return number, (number,)
    who = slot == "who"
    words = say_thing(event.agent, wording) if who else say_place(event.place, wording)[1:]
    return " ".join(word.text for word in words), names_of(event.agent.noun if who else event.place)
