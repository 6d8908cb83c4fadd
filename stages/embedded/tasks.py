"""Writes the eight generated GLUE tasks in the format of the original files (tasks.yaml).

A label is computed from the meanings behind the sentences. The sentence pairs of a validation file stand in no training
file. The training file and the matched validation file of MNLI are about one half of the topics, the mismatched
validation file is about the other half, with other names of people. Every other task uses all topics.
"""

from dataclasses import dataclass
from pathlib import Path
from random import Random

import yaml

from stages.embedded.acceptability import RULES, violate_rule
from stages.embedded.changes import alter_event
from stages.embedded.elaboration import elaborate_event
from stages.embedded.grammar import print_sentence
from stages.embedded.inference import compute_similarity
from stages.embedded.lexicon import TOPIC_GROUPS, Topics
from stages.embedded.pairs import (
    draw_inference,
    draw_question_and_statement,
    draw_questions,
    draw_statements,
    is_held_out,
    say_pair,
)
from stages.embedded.sentiment import draw_review
from stages.embedded.world import draw_event, draw_scene
from stages.files.storage import write_atomically

# By task: the entries of tasks.yaml.
TASKS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))

# Attempts to draw an example that differs from all before, until the world counts as exhausted.
DRAWS = 5000


@dataclass(frozen=True)
class Example:
    """An example of a task.

    Attributes:
        text_a: the first text.
        text_b: the second text, empty for single sentences.
        label: the label as written in the file, such as `entailment`.
        topic: the topic of an inference.
    """

    text_a: str
    text_b: str
    label: str
    topic: str = ""


def write_glue(
    folder: Path,
    train_examples: int,
    validation_examples: int,
    seed: int,
) -> None:
    """Writes the eight generated GLUE tasks as TSV files; equal arguments give equal bytes.

    Args:
        folder: gets a folder per task, such as MNLI, with a TSV file per split.
        train_examples: number of examples in each training file.
        validation_examples: number of examples in each validation file.
        seed: seed of all choices.

    Raises:
        ValueError: the generated world has fewer different examples.
    """
    for name, task in TASKS.items():
        seen = set()
        for split, file in task["files"].items():
            rng = Random(f"{seed} {name} {split}")
            validation = split != "train"
            number = validation_examples if validation else train_examples
            examples = draw_examples(name, number, TOPIC_GROUPS[file["topics"]], rng, seen, validation)
            lines = _format_lines(file["columns"], examples)
            if task["header"]:
                lines.insert(0, "\t".join(file["columns"]))
            write_atomically(folder / name / f"{split}.tsv", "\n".join(lines) + "\n")


def draw_examples(
    name: str,
    number: int,
    topics: Topics,
    rng: Random,
    seen: set,
    validation: bool,
) -> list[Example]:
    """Draws different examples of a task in random order, with the share of each label that tasks.yaml sets.

    Args:
        name: name of the task.
        number: number of examples.
        topics: topics of the examples.
        rng: source of all choices.
        seen: texts of earlier examples, which no example may repeat; the texts of the new examples are added.
        validation: whether the examples are for a validation file, which takes held-out pairs, or for a training file,
            which takes all other pairs.

    Raises:
        ValueError: the generated world has fewer different examples.
    """
    labels = []
    for label, share in TASKS[name]["shares"].items():
        labels += [label] * round(number * share)
    # The first label fills up, the last label gives way.
    labels += [labels[0]] * (number - len(labels))
    labels = labels[:number]
    rng.shuffle(labels)
    examples = []
    for label in labels:
        for _ in range(DRAWS):
            example = DRAW[name](rng, topics, label)
            texts = (example.text_a, example.text_b)
            right_file = not example.text_b or is_held_out(*texts) == validation
            if right_file and texts not in seen:
                break
        else:
            raise ValueError(
                f"embedded {name}: the generated world has hardly more than {len(seen)} different examples; set a "
                f"smaller tasks.{'validation' if validation else 'train'}_examples"
            )
        seen.add(texts)
        examples.append(example)
    return examples


def _format_lines(columns: dict[str, str], examples: list[Example]) -> list[str]:
    r"""Formats examples as lines of a TSV file in the layout of the original task.

    A line of QNLI is `0\tWho hid a cart?\tThe farmer hid a cart.\tentailment`, for example.

    Args:
        columns: by column name a template, which may name the fields of an example, and `n` (the number of the example,
            from 0), `even` and `odd` (numbers of the two texts) and `star`, the mark of CoLA for an incorrect sentence.
        examples: the examples.
    """
    lines = []
    for n, example in enumerate(examples):
        star = "*" if example.label == "0" else ""
        values = {**vars(example), "n": n, "even": 2 * n, "odd": 2 * n + 1, "star": star}
        cells = [template.format_map(values) for template in columns.values()]
        lines.append("\t".join(cells))
    return lines


def _draw_cola(rng: Random, topics: Topics, label: str) -> Example:
    """Draws a correct sentence (label 1) or a sentence that breaks a rule of grammar (label 0)."""
    if label == "1":
        words = elaborate_event(rng, draw_scene(rng, topics))
        return Example(print_sentence(words), "", label)
    rule = rng.choices(list(RULES), list(RULES.values()))[0]
    broken = None
    while broken is None:
        broken = violate_rule(rng, elaborate_event(rng, draw_scene(rng, topics)), rule)
    return Example(print_sentence(broken), "", label)


def _draw_sst2(rng: Random, _topics: Topics, label: str) -> Example:
    """Draws a sentence of praise (label 1) or blame (label 0); the topics play no role."""
    return Example(draw_review(rng, label == "1") + " .", "", label)


def _draw_mrpc(rng: Random, topics: Topics, label: str) -> Example:
    """Draws two sentences on a scene that say the same (label 1) or not (label 0)."""
    events = draw_statements(rng, draw_scene(rng, topics), label == "1")
    return Example(*say_pair(rng, *events), label)


def _draw_stsb(rng: Random, topics: Topics, label: str) -> Example:
    """Draws two sentences on a scene, whose label is the similarity of the meanings, from 0 to 5.

    Args:
        rng: source of all choices.
        topics: topics of the scene.
        label: `0` to `3`, the number of parts (such as action or place) in which the events differ; `4`: independent
            events.
    """
    scene = draw_scene(rng, topics)
    first = draw_event(rng, scene, place=0.4)
    if label == "4":
        second = draw_event(rng, scene, place=0.4)
    else:
        second = first
        # A change may undo another change.
        while len(vars(first).items() - vars(second).items()) != int(label):
            second = alter_event(rng, second, scene)
    texts = say_pair(rng, first, second, passive=0.0)
    return Example(*texts, f"{compute_similarity(first, second):.3f}")


def _draw_qqp(rng: Random, topics: Topics, label: str) -> Example:
    """Draws two questions that ask the same (label 1) or not (label 0)."""
    return Example(*draw_questions(rng, topics, label == "1"), label)


def _draw_inference(rng: Random, topics: Topics, label: str) -> Example:
    """Draws a premise and a hypothesis for a label of MNLI or RTE, such as `neutral` or `not_entailment`."""
    wanted = label
    if label == "not_entailment":
        wanted = rng.choice(("neutral", "contradiction"))
    scene = draw_scene(rng, topics)
    events = draw_inference(rng, scene, wanted)
    return Example(*say_pair(rng, *events), label, scene.topic)


def _draw_qnli(rng: Random, topics: Topics, label: str) -> Example:
    """Draws a question and a sentence that answers the question (label entailment) or not (label not_entailment)."""
    return Example(*draw_question_and_statement(rng, draw_scene(rng, topics), label == "entailment"), label)


DRAW = {
    "CoLA": _draw_cola,
    "SST-2": _draw_sst2,
    "MRPC": _draw_mrpc,
    "STS-B": _draw_stsb,
    "QQP": _draw_qqp,
    "MNLI": _draw_inference,
    "QNLI": _draw_qnli,
    "RTE": _draw_inference,
}
