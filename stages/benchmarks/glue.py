"""The eight GLUE tasks of the papers: their texts, labels, metrics and splits."""

from dataclasses import dataclass
from pathlib import Path

from stages.files.paths import TASK_FOLDER
from stages.schema.testing_sections import CrossDomain

HIGHEST_SIMILARITY = 5.0  # of stsb; the lowest is 0


@dataclass(frozen=True)
class Split:
    """name: here and on the hub. stem: of the original file's name. evaluated_on: the papers' name for the column of
    scores on this split; None where no scores are on it.
    """

    name: str
    stem: str
    evaluated_on: str | None = None


@dataclass(frozen=True)
class Task:
    """name: in params.yaml and on the hub. folder: in the original distribution. texts, label: names of columns there.

    labels: the words of the label column in the order of classes; none for a regression. classes: the hub's names of
    the same classes. metrics: names in metrics.METRICS. hub_texts: the names of the text columns on the hub where they
    are not `texts`. header: the names of all columns where the original files have none. corrupt_rows: how many rows
    with a wrong number of columns an original file is known to hold, at most.
    """

    name: str
    folder: str
    texts: tuple[str, ...]
    label: str
    labels: tuple[str, ...]
    classes: tuple[str, ...]
    metrics: tuple[str, ...]
    splits: tuple[Split, ...]
    hub_texts: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    corrupt_rows: int = 0

    @property
    def outputs(self) -> int:
        """Number of a classifier's outputs: one per class, or one for a regression."""
        return len(self.labels) or 1

    @property
    def head(self) -> dict:
        """What a classifier's configuration says of its outputs, by the keys that Hugging Face's libraries read."""
        if not self.classes:
            return {"id2label": {"0": self.label}, "label2id": {self.label: 0}, "problem_type": "regression"}
        names = dict(enumerate(self.classes))
        return {"id2label": {str(i): name for i, name in names.items()}, "label2id": {v: k for k, v in names.items()}}

    @property
    def validation_splits(self) -> tuple[Split, ...]:
        """The splits on which models are scored."""
        return tuple(split for split in self.splits if split.evaluated_on)


def _splits(name: str) -> tuple[Split, ...]:
    return Split("train", "train"), Split("validation", "dev", name)


BINARY = ("0", "1")
ENTAILMENT = ("entailment", "not_entailment")
NLI = ("entailment", "neutral", "contradiction")
SENTENCES = ("sentence1", "sentence2")
MNLI_SPLITS = (
    Split("train", "train"),
    Split("validation_matched", "dev_matched", "mnli_m"),
    Split("validation_mismatched", "dev_mismatched", "mnli_mm"),
)

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task(
            "cola", "CoLA", ("sentence",), "label", BINARY, ("unacceptable", "acceptable"),
            ("matthews_correlation",), _splits("cola"), header=("source", "label", "star", "sentence"),
        ),
        Task(
            "sst2", "SST-2", ("sentence",), "label", BINARY, ("negative", "positive"),
            ("accuracy",), _splits("sst2"),
        ),
        Task(
            "mrpc", "MRPC", ("#1 String", "#2 String"), "Quality", BINARY, ("not_equivalent", "equivalent"),
            ("accuracy", "f1"), _splits("mrpc"), hub_texts=SENTENCES,
        ),
        Task("stsb", "STS-B", SENTENCES, "score", (), (), ("pearson", "spearmanr"), _splits("stsb")),
        Task(
            "qqp", "QQP", ("question1", "question2"), "is_duplicate", BINARY, ("not_duplicate", "duplicate"),
            ("accuracy", "f1"), _splits("qqp"), corrupt_rows=50,
        ),
        Task(
            "mnli", "MNLI", SENTENCES, "gold_label", NLI, NLI, ("accuracy",), MNLI_SPLITS,
            hub_texts=("premise", "hypothesis"),
        ),
        Task(
            "qnli", "QNLI", ("question", "sentence"), "label", ENTAILMENT, ENTAILMENT,
            ("accuracy",), _splits("qnli"),
        ),
        Task("rte", "RTE", SENTENCES, "label", ENTAILMENT, ENTAILMENT, ("accuracy",), _splits("rte")),
    )
}  # fmt: skip
TASK_OF = {  # by the papers' name for the column of a split
    split.evaluated_on: name for name, task in TASKS.items() for split in task.validation_splits
}
COLUMN_OF = {  # by task, where the papers have one column for it: for MNLI that of the matched split
    name: task.validation_splits[0].evaluated_on for name, task in TASKS.items()
}


def validation_tables(task: str) -> dict[str, Path]:
    """The tables on which a task is scored (example_id, text_a, text_b, label), by Split.evaluated_on."""
    return {split.evaluated_on: TASK_FOLDER / task / f"{split.name}.parquet" for split in TASKS[task].validation_splits}


def positive_classes(mapping: CrossDomain) -> dict[str, set[int]]:
    """The classes that say that two texts mean the same: their indices among the task's labels, by task.

    mapping: the section `cross_domain` of params.yaml. Raises ValueError where a label is chosen that its task does not
    have, or all labels of a task are.
    """
    result = {}
    for task in mapping.tasks:
        labels, chosen = TASKS[task].labels, mapping.positive_labels[task]
        unknown = [label for label in chosen if label not in labels]
        if unknown or len(chosen) == len(labels):
            raise ValueError(
                f"cross_domain.positive_labels.{task}: {', '.join(unknown or chosen)}; allowed are some, not all, of "
                f"{', '.join(labels) or '(none: a regression)'}"
            )
        result[task] = {labels.index(label) for label in chosen}
    return result
