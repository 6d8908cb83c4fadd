"""The eight GLUE tasks of the embedded world, written as the real ones are distributed.

`write_glue` writes folders and tab-separated files with GLUE's names, headers and label words (no quoting). A label is
computed from the meanings behind the sentences. The sentence pairs of a validation file are held out (pairs.held_out):
no training file has one. MNLI's training and matched topics are one half of the world's, its mismatched topics (and
names) the other; every other task uses all topics.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from random import Random

from stages.embedded import pairs
from stages.embedded.acceptability import RULES, elaborate, violate
from stages.embedded.grammar import Event, sentence, text_of
from stages.embedded.inference import similarity
from stages.embedded.lexicon import MATCHED_TOPICS, MISMATCHED_TOPICS
from stages.embedded.sentiment import review
from stages.embedded.world import ALL_TOPICS, draw_event, draw_scene, draw_wording, reworded
from stages.files.storage import write_atomically

Topics = tuple[str, ...]
DRAWS = 5000  # attempts to draw an example that differs from all before, until the world counts as exhausted


@dataclass(frozen=True)
class Example:
    """text_b: empty for single sentences. label: as in the file. note: rule broken (CoLA), topic (MNLI, RTE)."""

    text_a: str
    text_b: str
    label: str
    note: str = ""


def write_glue(folder: Path, train_examples: int, validation_examples: int, seed: int) -> None:
    """Writes the eight tasks; equal seeds give equal bytes.

    Args:
        folder: gets TASK/*.tsv.
        train_examples, validation_examples: the number of examples in each training file and each validation file.

    Raises:
        ValueError: a number is below 10 (8 would leave out one of STS-B's kinds of pairs) or more than the world holds.
    """
    if min(train_examples, validation_examples) < 10:
        raise ValueError(
            f"embedded tasks: train_examples {train_examples} and validation_examples {validation_examples}; "
            "give at least 10 of each"
        )
    sizes = {"train": train_examples, "dev": validation_examples}
    for task in TASKS:
        seen: set[tuple[str, str]] = set()
        for split, topics in task.topics.items():
            rng = Random(f"{seed} {task.name} {split}")
            examples = draw_examples(task, sizes[split.split("_")[0]], topics, rng, seen, split != "train")
            left_out = VOTES[1:] if split == "train" else ()
            columns = {name: cell for name, cell in task.columns.items() if name not in left_out}
            lines = [] if task.name == "CoLA" else ["\t".join(columns)]  # CoLA's files have no header
            for n, example in enumerate(examples):
                values = vars(example) | {"n": n, "even": 2 * n, "odd": 2 * n + 1, "star": "*" * (example.label == "0")}
                lines.append("\t".join(cell.format_map(values) for cell in columns.values()))
            write_atomically(folder / task.name / f"{split}.tsv", "\n".join(lines) + "\n")


def draw_examples(
    task: "Task", number: int, topics: Topics, rng: Random, seen: set[tuple[str, str]], validation: bool
) -> list[Example]:
    """Draws different examples in random order, with the task's share of each label, but for rounding.

    Args:
        task, rng: the task of the examples, and what all choices are drawn from.
        number, topics: how many examples to draw, and the topics that they may be about.
        seen: (text_a, text_b) of earlier examples, which no example may repeat; those of the new examples are added.
        validation: whether they are for a validation file, which takes held-out pairs; training files take the others.

    Raises:
        ValueError: the world does not hold so many.
    """
    labels = [label for label, share in task.shares.items() for _ in range(round(number * share))]
    labels = (labels + [next(iter(task.shares))] * number)[:number]  # the first fills up, the last gives way
    rng.shuffle(labels)
    examples = []
    for label in labels:
        for _ in range(DRAWS):
            example = task.draw(rng, topics, label)
            texts = example.text_a, example.text_b
            if texts not in seen and (not example.text_b or pairs.held_out(*texts) == validation):
                break
        else:
            raise ValueError(
                f"embedded {task.name}: {len(seen)} different examples exist, and hardly more; ask for fewer in "
                f"tasks.{'validation' if validation else 'train'}_examples"
            )
        seen.add(texts)
        examples.append(example)
    return examples


def _cola(rng: Random, topics: Topics, label: str) -> Example:
    """Draws a sentence; for label 0 with one rule of grammar broken."""
    if label == "1":
        return Example(text_of(elaborate(rng, draw_scene(rng, topics))), "", label)
    (rule,) = rng.choices(tuple(RULES), tuple(RULES.values()))
    broken = None
    while broken is None:
        broken = violate(rng, elaborate(rng, draw_scene(rng, topics)), rule)
    return Example(text_of(broken), "", label, rule)


def _sst2(rng: Random, topics: Topics, label: str) -> Example:
    """Draws a sentence of praise (label 1) or blame (label 0)."""
    return Example(review(rng, label == "1") + " .", "", label)


def _mrpc(rng: Random, topics: Topics, label: str) -> Example:
    """Draws two sentences on one scene that say the same (label 1) or not."""
    return Example(*pairs.statement_pair(rng, draw_scene(rng, topics), label == "1")[2:], label)  # without the events


def _qqp(rng: Random, topics: Topics, label: str) -> Example:
    """Draws two questions that ask the same (label 1) or not."""
    return Example(*pairs.question_pair(rng, topics, label == "1"), label)


def _qnli(rng: Random, topics: Topics, label: str) -> Example:
    """Draws a question and a sentence that answers it (label entailment) or not."""
    return Example(*pairs.question_and_statement(rng, draw_scene(rng, topics), label == "entailment"), label)


def _inference(rng: Random, topics: Topics, label: str) -> Example:
    """Draws a premise and a hypothesis in the relation of the label, one of MNLI or of RTE."""
    wanted = rng.choice(("neutral", "contradiction")) if label == "not_entailment" else label
    scene = draw_scene(rng, topics)
    return Example(*pairs.say_pair(rng, *pairs.inference_pair(rng, scene, wanted)), label, scene.topic)


def _stsb(rng: Random, topics: Topics, label: str) -> Example:
    """Draws two sentences on one scene; the label of the example is the similarity of their meanings, from 0 to 5.

    label: "0" to "3", the number of fields of `Event` in which the meanings differ, or "4" for two independent draws.
    """
    scene = draw_scene(rng, topics)
    first = second = draw_event(rng, scene, place=0.4)
    differing = 0
    while label != "4" and differing != int(label):  # a change may undo another
        second = pairs.alter(rng, second, scene)
        differing = sum(getattr(first, part.name) != getattr(second, part.name) for part in fields(Event))
    if label == "4":
        second = draw_event(rng, scene, place=0.4)
    wording = draw_wording(rng, first, passive=0.0)
    texts = sentence(first, wording), sentence(second, reworded(rng, first, wording))
    return Example(*texts, f"{similarity(first, second):.3f}")


@dataclass(frozen=True)
class Task:
    """name: of the folder. shares: that of each label, about as skewed as in the real training set; for STS-B, whose
    labels are scores, of each kind of pair that `_stsb` draws.
    draw: draws an example on one of the topics, with a label.
    columns: format string of the cell by name of the column. It may use the fields of `Example`, its number `n` from 0,
    `even` and `odd` numbers for its two texts, and `star`, which is "*" for the label 0.
    topics: what the sentences are about, by the name of the file without suffix."""

    name: str
    shares: dict[str, float]
    draw: Callable[[Random, Topics, str], Example]
    columns: dict[str, str]
    topics: dict[str, Topics] = field(default_factory=lambda: {"train": ALL_TOPICS, "dev": ALL_TOPICS})


HALVES = {"entailment": 0.5, "not_entailment": 0.5}
VOTES = ("label1", "label2", "label3", "label4", "label5")  # MNLI's annotators, of whom training files have the first
PARSES = ("sentence1_binary_parse", "sentence2_binary_parse", "sentence1_parse", "sentence2_parse")
SENTENCES = {"sentence1": "{text_a}", "sentence2": "{text_b}"}
TASKS = (
    Task(
        "CoLA", {"1": 0.7, "0": 0.3}, _cola,
        {"source": "emb", "label": "{label}", "star": "{star}", "sentence": "{text_a}"},
    ),
    Task("SST-2", {"1": 0.55, "0": 0.45}, _sst2, {"sentence": "{text_a} ", "label": "{label}"}),
    Task(
        "MRPC", {"1": 0.67, "0": 0.33}, _mrpc,
        {
            "Quality": "{label}", "#1 ID": "{even}", "#2 ID": "{odd}",
            "#1 String": "{text_a}", "#2 String": "{text_b}",
        },
    ),
    Task(
        "STS-B", {str(changes): 0.2 for changes in range(5)}, _stsb,
        {"index": "{n}", "genre": "embedded", "filename": "embedded", "year": "none", "old_index": "{n:04d}"}
        | {"source1": "none", "source2": "none", **SENTENCES, "score": "{label}"},
    ),
    Task(
        "QQP", {"0": 0.63, "1": 0.37}, _qqp,
        {
            "id": "{n}", "qid1": "{even}", "qid2": "{odd}",
            "question1": "{text_a}", "question2": "{text_b}", "is_duplicate": "{label}",
        },
    ),
    Task(
        "MNLI", dict.fromkeys(("entailment", "neutral", "contradiction"), 1 / 3), _inference,
        {"index": "{n}", "promptID": "{n}", "pairID": "{n}{label[0]}", "genre": "{note}", **dict.fromkeys(PARSES, "")}
        | SENTENCES | dict.fromkeys((*VOTES, "gold_label"), "{label}"),
        {"train": MATCHED_TOPICS, "dev_matched": MATCHED_TOPICS, "dev_mismatched": MISMATCHED_TOPICS},
    ),
    Task(
        "QNLI", HALVES, _qnli,
        {"index": "{n}", "question": "{text_a}", "sentence": "{text_b}", "label": "{label}"},
    ),
    Task("RTE", HALVES, _inference, {"index": "{n}", **SENTENCES, "label": "{label}"}),
)  # fmt: skip
