"""The eight GLUE tasks of the papers, which glue.yaml describes: texts, labels, metrics and splits."""

from dataclasses import dataclass
from pathlib import Path

from stages.files.paths import TASK_FOLDER
from stages.files.quoting import quote_value
from stages.files.yaml_files import read_yaml
from stages.schema.testing_sections import CrossDomain

# Of stsb; the lowest similarity is 0.
HIGHEST_SIMILARITY = 5.0


@dataclass(frozen=True)
class Split:
    """A split of a task."""

    # Here and on the hub, such as `validation`.
    name: str
    # Name of the original file without suffix, such as `dev`.
    stem: str
    # The papers' name for the column of scores; empty for a split without scores.
    evaluated_on: str = ""


@dataclass(frozen=True)
class Task:
    """A task of GLUE."""

    # In params.yaml and on the hub.
    name: str
    # Name in the original distribution.
    folder: str
    # Names of the text columns, and of the label column, in the original files.
    texts: tuple[str, ...]
    label: str
    # Words of the label column, in the order of classes; empty for a regression.
    labels: tuple[str, ...]
    # Names of the same classes on the hub.
    classes: tuple[str, ...]
    # Names in metrics.py.
    metrics: tuple[str, ...]
    # The splits with known labels.
    splits: tuple[Split, ...]
    # Names of the text columns on the hub, if different from `texts`.
    hub_texts: tuple[str, ...] = ()
    # Names of all columns, if the original files have no header.
    header: tuple[str, ...] = ()
    # Largest number of rows with a wrong number of columns in an original file.
    corrupt_rows: int = 0
    # Whether an original file quotes cells with a quotation mark, as spreadsheets do.
    quotes_cells: bool = False
    # Word of the label column where annotators did not agree on a label; such rows are left out.
    no_label: str | None = None

    @property
    def outputs(self) -> int:
        """Number of outputs of a classifier: the number of classes, or 1 for a regression."""
        return len(self.labels) or 1

    @property
    def head(self) -> dict:
        """Describes the outputs in a classifier's configuration, by the keys of Hugging Face's libraries.

        The classes negative and positive give `id2label` `{"0": "negative", "1": "positive"}`, and `label2id`.
        """
        # The single output of a regression has the name of the label column.
        names = self.classes or (self.label,)
        head = {
            "id2label": {str(index): name for index, name in enumerate(names)},
            "label2id": {name: index for index, name in enumerate(names)},
        }
        if not self.classes:
            head["problem_type"] = "regression"
        return head

    @property
    def validation_splits(self) -> tuple[Split, ...]:
        """The splits on which models are scored."""
        return self.splits[1:]


_TASKS = read_yaml(Path(__file__).with_suffix(".yaml"), list[Task])
TASKS = {task.name: task for task in _TASKS}

# By the papers' name for the column of a split.
TASK_OF = {}

# By task, for tables with a single column a task: for MNLI the column of the matched split.
COLUMN_OF = {}
for _task in _TASKS:
    for _split in _task.validation_splits:
        TASK_OF[_split.evaluated_on] = _task.name
        COLUMN_OF.setdefault(_task.name, _split.evaluated_on)


def list_validation_tables(task: str) -> dict[str, Path]:
    """Returns the parquet files on which a task is scored, by the papers' name for the column, such as `mnli_m`."""
    folder = TASK_FOLDER / task
    return {split.evaluated_on: folder / f"{split.name}.parquet" for split in TASKS[task].validation_splits}


def find_positive_classes(mapping: CrossDomain) -> dict[str, set[int]]:
    """Returns by task the indices of the classes that mean that both texts say the same.

    `mapping` is the section `cross_domain` of params.yaml; label `1` of `("0", "1")` gives `{"mrpc": {1}}`.

    Raises:
        ValueError: a task does not have a chosen label, or all labels of a task are chosen.
    """
    result = {}
    for task in mapping.tasks:
        labels = TASKS[task].labels
        chosen = mapping.positive_labels[task]
        unknown = [label for label in chosen if label not in labels]
        if unknown or len(chosen) == len(labels):
            raise ValueError(
                f"cross_domain.positive_labels.{task}: {quote_value(unknown or chosen)}; allowed are some, not all, of "
                f"{', '.join(labels) or '(none: a regression)'}"
            )
        result[task] = {labels.index(label) for label in chosen}
    return result
