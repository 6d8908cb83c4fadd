"""The names that readers know for the keys in the data: tasks, operators, protocols and milestones."""

import re

from stages.benchmarks import glue
from stages.schema.operators import describe_operators

TASKS = {
    "squad": "SQuAD",
    "squad1": "SQuAD 1.1",
    "squad2": "SQuAD 2.0",
    "squad1_triviaqa": "SQuAD 1.1 after TriviaQA",
    "squad2_triviaqa": "SQuAD 2.0 after TriviaQA",
    "triviaqa": "TriviaQA",
    "glue_score": "GLUE score",
}
for _task in glue.TASKS.values():
    TASKS[_task.name] = _task.folder
    for _split in _task.validation_splits:
        # `mnli_m` is MNLI-m
        _end = _split.evaluated_on.removeprefix(_task.name)
        TASKS[_split.evaluated_on] = _task.folder + _end.replace("_", "-")
OPERATORS = {name: operator.label for name, operator in describe_operators().items() if operator.label}
# variants of params.yaml
OPERATORS.update(
    original_tied_init="original with keys that start as queries",
    pairwise_scaled="pairwise with S from N(0, 1/d)",
    original_self="original with the self-score of symmetric",
    symmetric_centred="symmetric with the self-score of original",
    original_masked="masked original",
    symmetric_masked="masked symmetric",
    shared_masked="masked shared",
)
PROTOCOLS = {"courtois2024": "Courtois et al.", "kowsher2025": "Kowsher et al."}
# sources of numbers in titles, legends and tables
SOURCES = {
    "published": "printed by its paper",
    "released": "released results",
    "study": "our study",
    "reproduced": "this run",
    "counted": "counted on built models",
}
# all keys; further keys are measures of answers, questions of studies, milestones of the GLUE score (95 % of the last
# score of pairwise, or of the operator itself), and fates of documents and sentence pairs
LABELS = {
    **TASKS,
    **OPERATORS,
    **PROTOCOLS,
    **SOURCES,
    "f1": "F1",
    "em": "exact match",
    "single": "",
    "learns": "steps",
    "loss": "final loss",
    "steps_to_95_percent": "95 % of pairwise",
    "steps_to_95_percent_of_own": "95 % of its own",
    "in": "read",
    "not_selected": "kept, but more than requested",
}
# the key of a task as a whole word; after a full stop it is part of the name of a check
KEYS = re.compile(r"(?<![\w.])(" + "|".join(TASKS) + r")(?![\w])")
BEFORE_PERCENT = re.compile(r"(?<=\d) (?=%)")
# a hyphen before a number that is in no word, date or range
MINUS = re.compile(r"(?<![\w.\-])-(?=\d)")


def name_key(key: str) -> str:
    """Names any key for readers: `loss=2.5` gives `Loss 2.5`; an unknown key is shown with spaces for underscores."""
    return LABELS.get(key, key.replace("_", " ").replace("loss=", "Loss "))


def name_recipe(key: str) -> str:
    """Names a protocol beside a model: `recipe of Courtois et al.`; a protocol of translation stands for itself."""
    return f"recipe of {PROTOCOLS[key]}" if key in PROTOCOLS else key


def name_fields(fields: str, values: dict[str, object]) -> str:
    """Names the values of fields, separated by spaces, for readers: `size operator` gives `BERT-tiny original`."""
    words = []
    for field in fields.split():
        if values[field] != "":
            words.append(FIELDS.get(field, str)(values[field]))
    return keep_percent_together(" ".join(words))


def replace_keys(text: str) -> str:
    """Replaces keys among the words of a row's label: `BERT-base partial_qk` is `BERT-base partial QK`.

    Keys are tasks, protocols, and operators with an underscore; other words have spaces for underscores.
    """
    # the separators stay
    parts = re.split("([ ,]+)", text)
    for place, word in enumerate(parts):
        known = TASKS.get(word) or PROTOCOLS.get(word)
        if known or "_" in word:
            parts[place] = known or name_key(word)
    return "".join(parts)


def write_names(text: str) -> str:
    """Replaces keys of tasks by the papers' names and hyphens by minus signs: `qqp -1.5` is `QQP −1.5`."""
    named = KEYS.sub(lambda match: TASKS[match[1]], text)
    return keep_percent_together(MINUS.sub("−", named))


def keep_percent_together(text: str) -> str:
    """Keeps a number and the per cent sign on one line, by a no-break space."""
    return BEFORE_PERCENT.sub("\N{NO-BREAK SPACE}", text)


# by field: how the values are named; other values stand for themselves
FIELDS = {
    "size": "BERT-{}".format,
    "fate": lambda key: name_key(key).capitalize(),
    "protocol": name_recipe,
    # may be the address of a file
    "source": lambda key: SOURCES.get(key, key),
}
for _field in (
    "operator",
    "arm",
    "task",
    "evaluated_on",
    "at",
    "split",
    "measure",
    "metric",
    "milestone",
    "question",
    "questions",
    "reason",
    "trained",
):
    FIELDS[_field] = name_key
