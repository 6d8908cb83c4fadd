"""Reads the GLUE tasks from the original files, or from the Hugging Face hub.

The original distribution has a folder for each task with tab-separated files in UTF-8, in which quotation marks have no
meaning. A byte order mark at the beginning and blank lines at the end are allowed. A file NAME.subset.tsv replaces a
missing NAME.tsv and is marked as a subset.

A split becomes a frame with these columns:

- `example_id`: number of the row in the source, from 0, as text; dropped rows are counted.
- `text_a` and `text_b`, which is null for single sentences.
- `label`: index of the class (int64); for stsb a similarity from 0 to 5 (float64).

A ValueError names the file and the line at fault, or the dataset.
"""

import re
from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pandas as pd

from stages.benchmarks.glue import HIGHEST_SIMILARITY, Split, Task
from stages.files import commits
from stages.files.quoting import quote_value
from stages.originals.tasks import find_glue, is_subset
from stages.records import reading
from stages.schema.sections import HubRepository
from stages.tasks.examples import Examples

COLUMNS = ["example_id", "text_a", "text_b", "label"]

Similarity = Annotated[float, msgspec.Meta(ge=0, le=HIGHEST_SIMILARITY)]

# Reasons for leaving out rows.
NO_LABEL = "no gold label"
WRONG_COLUMNS = "wrong number of columns"

# A quoted cell, in which two marks stand for one.
QUOTED = re.compile(r'"(?:[^"]|"")*"')


def read_original(root: Path, task: Task, split: Split) -> Examples:
    """Reads a split of a GLUE task from the original file, in a folder `glue` below `root` or directly below `root`.

    Rows without a label, and up to `task.corrupt_rows` rows with a wrong number of columns, are dropped and counted;
    any other fault is an error.
    """
    path = find_glue(root, task, split)
    # Blank lines at the end are no rows.
    lines = list(reading.read_texts(path))
    while lines and not lines[-1].strip():
        lines.pop()
    _require_unquoted(path, lines, task)
    table = (line.split("\t") for line in lines)
    # `task.header` names the columns of a file without a header; otherwise the first line is the header.
    header = list(task.header) or next(table, [])
    first_line = 1 if task.header else 2
    columns = reading.find_columns(path, header, (*task.texts, task.label), "restore GLUE's header")
    rows = []
    # Number of dropped rows by reason.
    dropped = Counter()
    for line, row in enumerate(table, first_line):
        if len(row) == len(header):
            *texts, label = [row[column] for column in columns]
            if label == task.no_label:
                dropped[NO_LABEL] += 1
            else:
                # Rows are numbered from 0; dropped rows are counted, too.
                rows.append(_make_row(line - first_line, texts, _read_label(label, task, path, line)))
        elif dropped[WRONG_COLUMNS] < task.corrupt_rows:
            dropped[WRONG_COLUMNS] += 1
        else:
            raise ValueError(
                f"{path}, line {line}: {len(row)} columns, expected {len(header)} ({quote_value(header)}); "
                "fix the line or delete it"
            )
    if not rows:
        raise ValueError(f"{path}: no example is left after {dropped.total()} dropped rows; fetch the file again")
    return Examples(_make_frame(rows, task), path.name, is_subset(path), dropped.total(), "; ".join(dropped))


def _require_unquoted(path: Path, lines: list[str], task: Task) -> None:
    """Raises a ValueError if a spreadsheet saved the table: spreadsheets quote cells, and double the marks inside."""
    marked = []
    for line in lines:
        marked += [cell for cell in line.split("\t") if '"' in cell]
    # A spreadsheet quotes each cell with a mark. In GLUE's own files, marks also stand in cells that are not quoted.
    if not all(map(QUOTED.fullmatch, marked)):
        return
    # Two signs of a spreadsheet: a doubled mark (but QQP's own files double marks), or at least as many quoted cells as
    # lines below the header.
    doubled = any('""' in cell[1:-1] for cell in marked)
    if (doubled and not task.quotes_cells) or 0 < len(lines) - 1 <= len(marked):
        raise ValueError(
            f"{path}: {len(marked)} cells are in quotation marks, as a spreadsheet saves cells, but in GLUE these "
            "marks are text; save the table without quoting of cells, or fetch the file again"
        )


def read_hub(hub: HubRepository, task: Task, split: Split) -> Examples:
    """Reads a split of a GLUE task from the hub (nyu-mll/glue); drops and counts rows without a label.

    ValueError if a column or a text is missing, no row has a label, or the classes are not GLUE's classes in order.
    """
    needed = (*(task.hub_texts or task.texts), "label")
    data, source = commits.load_split(hub.repository, task.name, hub.revision, split.name, "tasks.hub", needed)
    place = f"tasks.hub.repository: {source}, {task.name}, {split.name}"
    # A column without classes, such as the similarities of stsb, has no names.
    names = getattr(data.features["label"], "names", None)
    if names is not None and tuple(names) != task.classes:
        raise ValueError(
            f"{place}: classes {quote_value(names)}, expected {task.classes}; name a repository with the classes of "
            "GLUE"
        )
    # The valid labels: for two classes 0 and 1, for stsb a number from 0 to 5.
    label_form = Literal[*range(len(task.labels))] if task.labels else Similarity
    form = tuple[list[str], label_form]
    rows = []
    for number, row in enumerate(data):
        *texts, label = [row[name] for name in needed]
        # The hub writes -1 for an example without a label.
        if label in (None, -1):
            continue
        # If some labels are missing, `datasets` reads the other labels as decimals: 1.0 for 1.
        if task.labels and isinstance(label, float) and label.is_integer():
            label = int(label)
        try:
            msgspec.convert((texts, label), form)
        except msgspec.ValidationError as error:
            raise ValueError(
                f"{place}, row {number}: texts and label {quote_value((texts, label))}: {error} (`datasets` reads null "
                "and NA in CSV files as missing); name a repository of Parquet files"
            ) from None
        rows.append(_make_row(number, texts, label))
    if not rows:
        raise ValueError(f"{place}: no example has a label; name another repository")
    dropped = len(data) - len(rows)
    return Examples(_make_frame(rows, task), source, dropped=dropped, reason=NO_LABEL if dropped else "")


def _make_row(number: int, texts: list[str], label: float) -> tuple:
    # A missing second text is null.
    second = texts[1] if len(texts) > 1 else None
    return str(number), texts[0], second, label


def _make_frame(rows: list[tuple], task: Task) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=COLUMNS).astype({"label": "int64" if task.labels else "float64"})


def _read_label(
    word: str,
    task: Task,
    path: Path,
    line: int,
) -> float:
    """Converts a class to its index (`entailment` to 0 in RTE), and a similarity to a number."""
    if word in task.labels:
        return task.labels.index(word)
    allowed = ", ".join(task.labels)
    if not task.labels:
        # Python would read more texts as numbers, such as 0_4.
        if re.fullmatch(r"[0-9]+(\.[0-9]+)?", word) and float(word) <= HIGHEST_SIMILARITY:
            return float(word)
        allowed = f"a number from 0 to {HIGHEST_SIMILARITY:g}"
    raise ValueError(f"{path}, line {line}: label {quote_value(word)}, allowed: {allowed}; fix the line or delete it")
