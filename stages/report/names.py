"""The names that a reader knows for what the data call by keys: the papers' for tasks, operators and protocols."""

import re

from stages.benchmarks import glue
from stages.plumbing.operators import described

TASKS = {
    split.evaluated_on: task.folder + split.evaluated_on.removeprefix(task.name).replace("_", "-")
    for task in glue.TASKS.values()
    for split in task.validation_splits
} | {
    **{task.name: task.folder for task in glue.TASKS.values()},
    "squad": "SQuAD",
    "squad1": "SQuAD 1.1",
    "squad2": "SQuAD 2.0",
    "squad1_triviaqa": "SQuAD 1.1 after TriviaQA",
    "squad2_triviaqa": "SQuAD 2.0 after TriviaQA",
    "triviaqa": "TriviaQA",
    "glue_score": "GLUE score",
}
OPERATORS = {name: operator.label for name, operator in described().items() if operator.label} | {
    "original_tied_init": "original with keys that start as queries",
    "pairwise_scaled": "pairwise with S from N(0, 1/d)",
    "pairwise_fast": "pairwise with a larger learning rate for S",
}
PROTOCOLS = {"courtois2024": "Courtois et al.", "kowsher2025": "Kowsher et al."}
MILESTONES = {
    "plateau_end_step": "Plateau ends",
    "steps_to_95_percent": "95 % of pairwise",
    "steps_to_95_percent_of_own": "95 % of its own",
}
KEYS = re.compile(r"(?<![\w.])(" + "|".join(sorted(TASKS, key=len, reverse=True)) + r")(?![\w])")
BEFORE_PERCENT = re.compile(r"(?<=\d) (?=%)")
LABELLED = re.compile(r"[^ ,]+")  # words of a label
MINUS = re.compile(r"(?<![\w.\-])-(?=\d)")


def task(key: str) -> str:
    """Writes a task or split as the papers do; a key that none of them knows has spaces for its underscores."""
    return TASKS.get(key, key.replace("_", " "))


def operator(key: str) -> str:
    """Names an operator as a reader knows it."""
    return OPERATORS.get(key, key.replace("_", " "))


def protocol(key: str) -> str:
    """Names whose recipe of fine-tuning a protocol is."""
    return PROTOCOLS.get(key, key)


def milestone(key: str) -> str:
    """Names what a run reaches: a loss, the end of the plateau, a share of a score."""
    return MILESTONES.get(key) or f"Loss {float(key.removeprefix('loss=')):g}"


def model(size: str, key: str) -> str:
    """Names a model, as in `BERT-base pairwise`."""
    return f"BERT-{size} {operator(key)}"


def label(text: str) -> str:
    """Replaces keys among the words of a row's label: `BERT-base partial_qk`, `BERT-tiny, mnli_m, courtois2024`."""
    return LABELLED.sub(lambda match: _named(match[0]), text)


def _named(key: str) -> str:
    return TASKS.get(key) or PROTOCOLS.get(key) or (operator(key) if "_" in key else key)


def prose(text: str) -> str:
    """Replaces keys of tasks in a sentence of the audit by the papers' names, and hyphens by true minus signs."""
    return unbroken(MINUS.sub("−", KEYS.sub(lambda match: TASKS[match[1]], text)))


def unbroken(text: str) -> str:
    """Keeps a number and its per cent sign on one line."""
    return BEFORE_PERCENT.sub("\N{NO-BREAK SPACE}", text)
