"""Reading the GLUE tasks: the original distribution, or the Hugging Face hub.

Original distribution: one folder per task, tab-separated, UTF-8, quotation marks without meaning; a byte order mark at
the beginning and blank lines at the end do no harm. A file NAME.subset.tsv stands in for NAME.tsv and is marked as a
subset. Once read, a split is a frame with the columns example_id (the row's number, from 0, as text; dropped rows are
counted), text_a, text_b (null for single sentences) and label (index of the class, int64; for stsb a similarity from 0
to 5, float64).
"""

import re
from pathlib import Path

import pandas as pd

from stages.benchmarks.glue import HIGHEST_SIMILARITY, Split, Task
from stages.files import commits
from stages.records import reading
from stages.schema.sections import HubRepository
from stages.tasks.examples import Examples, is_subset, require_file

COLUMNS = ("example_id", "text_a", "text_b", "label")
DECIMAL = re.compile(r"[0-9]+(\.[0-9]+)?")  # Python would read more as a number, such as 0_4


def read_original(root: Path, task: Task, split: Split) -> Examples:
    """Reads a split of a task from its original file.

    Rows with a wrong number of columns are dropped and counted, up to the number in GLUE's own file, `corrupt_rows`.

    Args:
        root: the folder that has the folder of the task, in its folder `glue` or, failing that, in itself.
        task, split: a task of GLUE, and one of its splits.

    Raises:
        ValueError: there is no such file; it is not UTF-8, lacks a column or has no example; or a row has a label that
            is not allowed or, after those dropped, a wrong number of columns. The message names the file and the line.
    """
    folders = [root / "glue" / task.folder, root / task.folder]
    what = f"task {task.name}, split {split.name}"
    path = require_file(folders, split.stem, ".tsv", what, "take the task from tasks.names")
    lines = list(reading.texts(path))
    while lines and not lines[-1].strip():
        lines.pop()
    table = ((line, text.split("\t")) for line, text in enumerate(lines, 1))
    header = list(task.header) or next(table, (1, []))[1]  # a task whose files have no header, CoLA, brings it along
    places = reading.places(path, header, (*task.texts, task.label), "restore GLUE's header")
    rows, corrupt = [], 0
    for example, (line, row) in enumerate(table):
        if len(row) == len(header):
            *texts, label = (row[place] for place in places)
            rows.append((str(example), texts[0], texts[1] if texts[1:] else None, _label(label, task, path, line)))
        elif corrupt < task.corrupt_rows:
            corrupt += 1
        else:
            raise ValueError(
                f"{path}, line {line}: {len(row)} columns, expected {len(header)} ({', '.join(header)}); "
                "mend the line or delete it"
            )
    if not rows:
        raise ValueError(f"{path}: no example; fetch the file again")
    reason = "wrong number of columns" if corrupt else ""
    return Examples(as_frame(rows, task), path.name, is_subset(path), corrupt, reason)


def read_hub(hub: HubRepository, task: Task, split: Split) -> Examples:
    """Reads a split of a task from the Hugging Face hub (nyu-mll/glue).

    Args:
        hub: repository and revision of the dataset.
        task, split: a task of GLUE, whose name is that of the configuration, and one of its splits.

    Raises:
        ValueError: the dataset cannot be had, lacks a column, or has other classes than GLUE or another order of them.
    """
    columns = task.hub_texts or task.texts
    needed = (*columns, "label")
    data, source = commits.dataset(hub.repository, task.name, hub.revision, split.name, "tasks.hub", needed)
    names = getattr(data.features["label"], "names", None)  # None where the column says no classes, as for stsb
    if names is not None and tuple(names) != task.classes:
        raise ValueError(
            f"tasks.hub.repository: {hub.repository}, {task.name}: classes {names}, expected {task.classes}; name a "
            "repository that keeps GLUE's own"
        )
    texts = [data[name] for name in columns]
    second = texts[1] if len(texts) > 1 else [None] * len(data)
    rows = list(zip(map(str, range(len(data))), texts[0], second, data["label"], strict=True))
    return Examples(as_frame(rows, task), source)


def as_frame(rows: list[tuple], task: Task) -> pd.DataFrame:
    """Makes a frame of rows of COLUMNS; labels are class indices, or similarities where the task is a regression."""
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame.astype({"label": "int64" if task.labels else "float64"})


def _label(word: str, task: Task, path: Path, line: int) -> int | float:
    """Reads a label: the index of its class or, for a regression, its value. ValueError, with the place, for others."""
    if task.labels:
        if word in task.labels:
            return task.labels.index(word)
        allowed = ", ".join(task.labels)
    else:
        if DECIMAL.fullmatch(word) and (value := float(word)) <= HIGHEST_SIMILARITY:
            return value
        allowed = f"a number from 0 to {HIGHEST_SIMILARITY:g}"
    raise ValueError(f"{path}, line {line}: label {word!r}, allowed: {allowed}; mend the line or delete it")
