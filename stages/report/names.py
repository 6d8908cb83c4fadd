"""The names that readers know for the keys in the data: tasks, operators, protocols and milestones."""

import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from stages.benchmarks import glue
from stages.files.yaml_files import read_yaml
from stages.schema.operators import describe_operators

# keys and names by kind
NAMES = read_yaml(Path(__file__).with_suffix(".yaml"))
TASKS, PROTOCOLS, SOURCES = NAMES["tasks"], NAMES["protocols"], NAMES["sources"]
for _task in glue.TASKS.values():
    TASKS[_task.name] = _task.folder
    for _split in _task.validation_splits:
        # `mnli_m` is MNLI-m
        _end = _split.evaluated_on.removeprefix(_task.name)
        TASKS[_split.evaluated_on] = _task.folder + _end.replace("_", "-")
OPERATORS = {name: operator.label for name, operator in describe_operators().items() if operator.label}
LABELS = {**TASKS, **OPERATORS, **NAMES["variants"], **PROTOCOLS, **SOURCES, **NAMES["further"]}
# the key of a task as a whole word; after a full stop it is part of the name of a check
KEYS = re.compile(r"(?<![\w.])(" + "|".join(TASKS) + r")(?![\w])")


def name_key(key: str) -> str:
    """Names any key for readers: `loss=2.5` gives `Loss 2.5`; an unknown key is shown with spaces for underscores."""
    return LABELS.get(key, key.replace("_", " ").replace("loss=", "Loss "))


def name_fields(fields: str, values: dict[str, object]) -> str:
    """Writes the values of fields for readers: the fields `size operator` give `BERT-tiny original`.

    Empty values are left out.
    """
    words = []
    for field in fields.split():
        name_value = FIELDS.get(field, str)
        if values[field] != "":
            words.append(name_value(values[field]))
    return keep_percent_together(" ".join(words))


def join_names(rows: pd.DataFrame, fields: Sequence[str]) -> pd.Series:
    """Writes a text for every row: the fields `["size", "source"]` give `BERT-base, released results`."""
    texts = []
    for row in rows.to_dict("records"):
        named = [name_fields(field, row) for field in fields]
        texts.append(", ".join(filter(None, named)))
    return pd.Series(texts, rows.index)


def replace_keys(text: str) -> str:
    """Replaces keys among the words of a row's label: `BERT-base partial_qk` is `BERT-base partial QK`.

    Keys are tasks, protocols and any word with an underscore, which becomes a space if the word has no name.
    """
    # the group keeps the separators in the list
    parts = re.split("([ ,]+)", text)
    for index, word in enumerate(parts):
        if word in TASKS or word in PROTOCOLS or "_" in word:
            parts[index] = name_key(word)
    return "".join(parts)


def write_names(text: str) -> str:
    """Replaces keys of tasks by the papers' names and hyphens by minus signs: `qqp -1.5` is `QQP −1.5`."""
    named = KEYS.sub(lambda match: TASKS[match[1]], text)
    # a hyphen before a number that is in no word, date or range
    signed = re.sub(r"(?<![\w.\-])-(?=\d)", "−", named)
    return keep_percent_together(signed)


def keep_percent_together(text: str) -> str:
    """Keeps a number and the per cent sign on one line, by a no-break space."""
    return re.sub(r"(?<=\d) (?=%)", "\N{NO-BREAK SPACE}", text)


# by field: the function that names a value; values of other fields stay as they are
FIELDS = {
    **dict.fromkeys(NAMES["fields"], name_key),
    "size": "BERT-{}".format,
    "fate": lambda key: name_key(key).capitalize(),
    # a protocol of translation stands for itself
    "protocol": lambda key: f"recipe of {PROTOCOLS[key]}" if key in PROTOCOLS else key,
    # may be the address of a file
    "source": lambda key: SOURCES.get(key, key),
}
