"""The names that readers know for the keys in the data: tasks, operators, protocols and milestones."""

import re

from stages.benchmarks import glue
from stages.schema.operators import described

TASKS = {  # splits (`mnli_m`: MNLI-m), tasks, and other things that are scored
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
OPERATORS = {name: operator.label for name, operator in described().items() if operator.label} | {  # and `variants`
    "original_tied_init": "original with keys that start as queries",
    "pairwise_scaled": "pairwise with S from N(0, 1/d)",
    "pairwise_fast": "pairwise with a larger learning rate for S",
    "original_self": "original with the self-score of symmetric",
    "symmetric_centred": "symmetric with the self-score of original",
}
PROTOCOLS = {"courtois2024": "Courtois et al.", "kowsher2025": "Kowsher et al."}
MILESTONES = {  # of the loss, and of the GLUE score: 95 % of that of the last checkpoint, of pairwise or its own
    "plateau_end_step": "Plateau ends",
    "steps_to_95_percent": "95 % of pairwise",
    "steps_to_95_percent_of_own": "95 % of its own",
}
# The key of a task as a whole word; after a full stop it is part of the name of a check.
KEYS = re.compile(r"(?<![\w.])(" + "|".join(sorted(TASKS, key=len, reverse=True)) + r")(?![\w])")
BEFORE_PERCENT = re.compile(r"(?<=\d) (?=%)")
MINUS = re.compile(r"(?<![\w.\-])-(?=\d)")  # a hyphen before a number that is in no word, date or range


def task(key: str) -> str:
    """Writes a task or split as the papers do; an unknown key is shown with spaces for its underscores."""
    return TASKS.get(key, key.replace("_", " "))


def operator(key: str) -> str:
    """Names an operator as a reader knows it; an unknown key is shown with spaces for its underscores."""
    return OPERATORS.get(key, key.replace("_", " "))


def protocol(key: str) -> str:
    """Names a fine-tuning protocol by the authors of its recipe; an unknown key stands for itself."""
    return PROTOCOLS.get(key, key)


def milestone(key: str) -> str:
    """Names a milestone: `loss=2.5` as `Loss 2.5`, others as MILESTONES has it. ValueError for any other key."""
    return MILESTONES.get(key) or f"Loss {float(key.removeprefix('loss=')):g}"


def model(size: str, key: str) -> str:
    """Names a model, as in `BERT-base pairwise`."""
    return f"BERT-{size} {operator(key)}"


def label(text: str) -> str:
    """Replaces keys among the words of a row's label: `BERT-base partial_qk`, `BERT-tiny, mnli_m, courtois2024`.

    Keys are tasks, protocols, and operators with an underscore, as others are called by their keys. Any other word
    stays, with spaces for underscores.
    """
    words = re.split("([ ,]+)", text)  # and what stands between them
    return "".join(
        TASKS.get(word) or PROTOCOLS.get(word) or (operator(word) if "_" in word else word) for word in words
    )


def prose(text: str) -> str:
    """Replaces keys of tasks in a sentence by the papers' names, and MINUS by minus signs; then as `unbroken`."""
    return unbroken(MINUS.sub("−", KEYS.sub(lambda match: TASKS[match[1]], text)))


def unbroken(text: str) -> str:
    """Keeps a number and its per cent sign on one line, by a no-break space between them."""
    return BEFORE_PERCENT.sub("\N{NO-BREAK SPACE}", text)
