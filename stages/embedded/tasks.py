"""The eight GLUE tasks of the embedded world, written as the real ones are distributed.

`write_glue` writes folders and tab-separated files with GLUE's names, headers and label words (no quoting). A label is
computed from the meanings behind the sentences. Pairs of sentences of a validation file are of those that are held out
(pairs.held_out): in no order do they stand in a training file or, compared, in the corpus. MNLI's training and matched
topics are one half of the world's, its mismatched topics (and names) the other half; every other task uses all topics.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from random import Random

from stages.embedded.acceptability import RULES, elaborate, violate
from stages.embedded.grammar import Event, sentence, text_of
from stages.embedded.inference import similarity
from stages.embedded.lexicon import MATCHED_TOPICS, MISMATCHED_TOPICS
from stages.embedded.pairs import alter, held_out, inferred, questioned, requested, restated, say_pair
from stages.embedded.sentiment import review
from stages.embedded.world import ALL_TOPICS, any_wording, happening, imagine, reworded
from stages.plumbing.files import write_atomically

MNLI_COLUMNS = (
    *("index", "promptID", "pairID", "genre", "sentence1_binary_parse", "sentence2_binary_parse", "sentence1_parse"),
    *("sentence2_parse", "sentence1", "sentence2"),
)
STSB_COLUMNS = (
    *("index", "genre", "filename", "year", "old_index", "source1", "source2", "sentence1", "sentence2", "score"),
)
Topics = tuple[str, ...]
DRAWS = 5000  # of an example that must differ from all before, until the world counts as exhausted


@dataclass(frozen=True)
class Example:
    """text_b: empty for single sentences. note: the rule broken (CoLA) or the topic (MNLI)."""

    text_a: str
    text_b: str
    label: str
    note: str = ""


def write_glue(folder: Path, train_examples: int, validation_examples: int, seed: int) -> None:
    """Write `folder`/TASK/*.tsv for the eight tasks, with that many examples in each training and validation file.

    Raises ValueError unless both numbers are at least 10.
    """
    if min(train_examples, validation_examples) < 10:
        raise ValueError(
            f"embedded tasks: train_examples {train_examples} and validation_examples {validation_examples}; "
            "give at least 10 of each"
        )
    sizes = {"train": train_examples, "dev": validation_examples}
    for task in TASKS:
        seen: set[tuple[str, str]] = set()
        for split in ("train", "dev_matched", "dev_mismatched") if task.name == "MNLI" else ("train", "dev"):
            topics = ALL_TOPICS
            if task.name == "MNLI":
                topics = MISMATCHED_TOPICS if split == "dev_mismatched" else MATCHED_TOPICS
            rng = Random(f"{seed} {task.name} {split}")
            examples = draw_examples(task, sizes[split.split("_")[0]], topics, rng, seen, split != "train")
            lines = ["\t".join(row) for row in task.rows(examples, split)]
            write_atomically(folder / task.name / f"{split}.tsv", "\n".join(lines) + "\n")


def draw_examples(
    task: "Task", number: int, topics: Topics, rng: Random, seen: set[tuple[str, str]], validation: bool
) -> list[Example]:
    """Distinct examples in random order, none of them in `seen` (which grows), with the task's share of each label.

    Pairs for a validation file are those that are held out. Raises ValueError where the world does not hold so many.
    """
    examples = []
    for label in spread_labels(task.shares, number, rng):
        for _ in range(DRAWS):
            example = task.draw(rng, topics, label)
            texts = example.text_a, example.text_b
            if texts not in seen and (not example.text_b or held_out(*texts) == validation):
                break
        else:
            raise ValueError(
                f"embedded {task.name}: {len(seen)} different examples exist, and hardly more; ask for fewer in "
                "tasks.train_examples"
            )
        seen.add(texts)
        examples.append(example)
    return examples


def spread_labels(shares: dict[str, float], number: int, rng: Random) -> list[str]:
    """`number` labels in random order, in the given shares up to rounding."""
    labels: list[str] = []
    for label, share in shares.items():
        labels += [label] * round(number * share)
    labels = (labels + [next(iter(shares))] * number)[:number]
    rng.shuffle(labels)
    return labels


def draw_cola(rng: Random, topics: Topics, label: str) -> Example:
    """Draws a sentence; for label 0 with one rule of grammar broken."""
    if label == "1":
        return Example(text_of(elaborate(rng, imagine(rng, topics))), "", label)
    (rule,) = rng.choices(tuple(RULES), tuple(RULES.values()))
    broken = None
    while broken is None:
        broken = violate(rng, elaborate(rng, imagine(rng, topics)), rule)
    return Example(text_of(broken), "", label, rule)


def draw_sst2(rng: Random, topics: Topics, label: str) -> Example:
    """Draws a sentence of praise (label 1) or blame (label 0)."""
    return Example(review(rng, label == "1")[0] + " .", "", label)


def draw_mrpc(rng: Random, topics: Topics, label: str) -> Example:
    """Draws two sentences on one scene that say the same (label 1) or not."""
    return Example(*restated(rng, imagine(rng, topics), label == "1")[2:], label)


def draw_qqp(rng: Random, topics: Topics, label: str) -> Example:
    """Draws two questions that ask the same (label 1) or not."""
    return Example(*requested(rng, topics, label == "1"), label)


def draw_qnli(rng: Random, topics: Topics, label: str) -> Example:
    """Draws a question and a sentence that answers it (label entailment) or not."""
    return Example(*questioned(rng, imagine(rng, topics), label == "entailment"), label)


def draw_mnli(rng: Random, topics: Topics, label: str) -> Example:
    """Draws a premise and a hypothesis that stand in the relation of the label."""
    scene = imagine(rng, topics)
    return Example(*say_pair(rng, *inferred(rng, scene, label)), label, scene.topic)


def draw_rte(rng: Random, topics: Topics, label: str) -> Example:
    """Draws a premise and a hypothesis that follows (label entailment) or does not."""
    wanted = label if label == "entailment" else rng.choice(("neutral", "contradiction"))
    return Example(*say_pair(rng, *inferred(rng, imagine(rng, topics), wanted)), label)


def draw_stsb(rng: Random, topics: Topics, label: str) -> Example:
    """label: in how many components two meanings differ, 4 for any two of one scene; the score follows from them."""
    scene = imagine(rng, topics)
    first = second = happening(rng, scene, place=0.4)
    while label != "4" and _differing(first, second) != int(label):  # a change may undo another
        second = alter(rng, second, scene)
    if label == "4":
        second = happening(rng, scene, place=0.4)
    wording = any_wording(rng, first, passive=0.0)
    texts = sentence(first, wording), sentence(second, reworded(rng, first, wording, passive=0.1))
    return Example(*texts, f"{similarity(first, second):.3f}")


def _differing(one: Event, other: Event) -> int:
    """The number of components in which two events differ."""
    return sum(getattr(one, field.name) != getattr(other, field.name) for field in fields(Event))


def cola_rows(examples: list[Example], split: str) -> Iterator[list[str]]:
    """The lines of CoLA's file: source, label, a star before what is wrong, sentence; no head."""
    for example in examples:
        yield ["emb", example.label, "" if example.label == "1" else "*", example.text_a]


def sst2_rows(examples: list[Example], split: str) -> Iterator[list[str]]:
    """The lines of SST-2's file, head first: sentence, label."""
    yield ["sentence", "label"]
    yield from ([example.text_a + " ", example.label] for example in examples)


def mrpc_rows(examples: list[Example], split: str) -> Iterator[list[str]]:
    """The lines of MRPC's file, head first: label, two numbers, two texts."""
    yield ["Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"]
    for number, example in enumerate(examples):
        yield [example.label, str(2 * number), str(2 * number + 1), example.text_a, example.text_b]


def qqp_rows(examples: list[Example], split: str) -> Iterator[list[str]]:
    """The lines of QQP's file, head first: three numbers, two questions, label."""
    yield ["id", "qid1", "qid2", "question1", "question2", "is_duplicate"]
    for number, example in enumerate(examples):
        yield [str(number), str(2 * number), str(2 * number + 1), example.text_a, example.text_b, example.label]


def stsb_rows(examples: list[Example], split: str) -> Iterator[list[str]]:
    """The lines of STS-B's file, head first: where a pair is from, two sentences, similarity."""
    yield [*STSB_COLUMNS]
    for number, example in enumerate(examples):
        source = [str(number), "embedded", "embedded", "none", f"{number:04d}", "none", "none"]
        yield [*source, example.text_a, example.text_b, example.label]


def mnli_rows(examples: list[Example], split: str) -> Iterator[list[str]]:
    """One annotator's label in the training file, five in the others, as in the distribution; no parses."""
    votes = 1 if split == "train" else 5
    yield [*MNLI_COLUMNS, *(f"label{vote + 1}" for vote in range(votes)), "gold_label"]
    for number, example in enumerate(examples):
        source = [str(number), str(number), f"{number}{example.label[0]}", example.note, "", "", "", ""]
        yield [*source, example.text_a, example.text_b, *[example.label] * votes, example.label]


def qnli_rows(examples: list[Example], split: str) -> Iterator[list[str]]:
    """The lines of QNLI's file, head first: number, question, sentence, label."""
    yield ["index", "question", "sentence", "label"]
    yield from _indexed(examples)


def rte_rows(examples: list[Example], split: str) -> Iterator[list[str]]:
    """The lines of RTE's file, head first: number, two sentences, label."""
    yield ["index", "sentence1", "sentence2", "label"]
    yield from _indexed(examples)


def _indexed(examples: list[Example]) -> Iterator[list[str]]:
    yield from ([str(n), example.text_a, example.text_b, example.label] for n, example in enumerate(examples))


@dataclass(frozen=True)
class Task:
    """shares: the labels to draw and their frequency, about as skewed as in the real training set."""

    name: str
    shares: dict[str, float]
    draw: Callable[[Random, Topics, str], Example]
    rows: Callable[[list[Example], str], Iterator[list[str]]]


TASKS = (
    Task("CoLA", {"1": 0.7, "0": 0.3}, draw_cola, cola_rows),
    Task("SST-2", {"1": 0.55, "0": 0.45}, draw_sst2, sst2_rows),
    Task("MRPC", {"1": 0.67, "0": 0.33}, draw_mrpc, mrpc_rows),
    Task("STS-B", {str(changes): 0.2 for changes in range(5)}, draw_stsb, stsb_rows),
    Task("QQP", {"0": 0.63, "1": 0.37}, draw_qqp, qqp_rows),
    Task("MNLI", dict.fromkeys(("entailment", "neutral", "contradiction"), 1 / 3), draw_mnli, mnli_rows),
    Task("QNLI", {"entailment": 0.5, "not_entailment": 0.5}, draw_qnli, qnli_rows),
    Task("RTE", {"entailment": 0.5, "not_entailment": 0.5}, draw_rte, rte_rows),
)
