"""Stage `tasks`: converts the GLUE tasks, SQuAD and TriviaQA to a common form.

Reads original files below data/embedded or data.root, or the hub. Writes for each split of a task:

- data/tasks/TASK/SPLIT.parquet, with the columns that glue.py and squad.py describe, without `article`.
- a row of data/tasks/statistics.csv. Columns: `task`, `split`; `examples`, the number of written examples; `available`,
  the number of examples in the source; `reduced`, whether fewer examples than available are written; `subset`,
  `source`, `dropped` and `reason`, as examples.py describes; `majority_share`, the share of the most frequent class, or
  of questions without an answer (empty for a regression, and if all questions have answers).
"""

from pathlib import Path

import pandas as pd

from stages.benchmarks.glue import TASKS, Split
from stages.files.paths import STATISTICS, TASK_FOLDER
from stages.files.storage import make_temporary_sibling
from stages.originals.tasks import STEMS, VERSIONS, is_derived
from stages.schema.settings import Settings
from stages.tasks import glue, squad, triviaqa
from stages.tasks.examples import Examples

QUESTIONS = (*VERSIONS, "triviaqa")
QUESTION_SPLITS = tuple(Split(name, stem) for name, stem in STEMS.items())
COLUMNS = [
    "task",
    "split",
    "examples",
    "available",
    "reduced",
    "subset",
    "source",
    "dropped",
    "reason",
    "majority_share",
]


def main(settings: Settings) -> dict:
    """Writes the files of all tasks; returns the sources, for the record of the run."""
    # The folder replaces TASK_FOLDER after all tasks are written.
    with make_temporary_sibling(TASK_FOLDER) as folder:
        folder.mkdir()
        statistics = build_tasks(folder, settings)
    return {"read": sorted(set(statistics["source"]))}


def build_tasks(folder: Path, settings: Settings) -> pd.DataFrame:
    """Writes every split of the configured tasks, and statistics.csv, into an empty folder; returns the statistics.

    Raises:
        ValueError: data are missing or have a fault.
    """
    tasks = settings.tasks
    statistics = []
    for name in (*tasks.names, *tasks.questions.names):
        (folder / name).mkdir()
        # The section has the limits on the number of examples.
        if name in TASKS:
            section = tasks
            splits = TASKS[name].splits
        else:
            section = tasks.questions
            splits = QUESTION_SPLITS
        # A part of the seed: the place among all known tasks, so that the choice of other tasks changes no draw.
        place = (*TASKS, *QUESTIONS).index(name)
        for number, split in enumerate(splits):
            limit = section.train_examples if split.name == "train" else section.validation_examples
            examples = _read_split(name, split, settings)
            frame = examples.sample(limit, [tasks.seed, place, number])
            # Only frames of questions have the column `article`.
            frame = frame.drop(columns="article", errors="ignore")
            frame.to_parquet(folder / name / f"{split.name}.parquet", index=False)
            statistics.append(
                {
                    "task": name,
                    "split": split.name,
                    "examples": len(frame),
                    "available": len(examples.frame),
                    "reduced": len(frame) < len(examples.frame),
                    "subset": examples.subset,
                    "source": examples.source,
                    "dropped": examples.dropped,
                    "reason": examples.reason,
                    "majority_share": compute_majority_share(frame, name),
                }
            )
    table = pd.DataFrame(statistics, columns=COLUMNS)
    table.to_csv(folder / STATISTICS.name, index=False, lineterminator="\n")
    counts = table[["examples", "available", "dropped"]].sum().astype(int)
    print(f"tasks: {counts['examples']} examples of {counts['available']}, {counts['dropped']} dropped", flush=True)
    return table


def compute_majority_share(frame: pd.DataFrame, name: str) -> float | None:
    """Computes the share of the most frequent class of task `name`, or of questions without an answer.

    A regression, and questions that all have answers, give `None`.
    """
    if name in QUESTIONS:
        without_answer = frame["answers"].str.len() == 0
        # A share of 0 becomes `None`.
        return float(without_answer.mean()) or None
    if not TASKS[name].labels:
        return None
    return float(frame["label"].value_counts(normalize=True).max())


def _read_split(name: str, split: Split, settings: Settings) -> Examples:
    """Reads a split of task `name` from the original files or the hub, as the settings say."""
    tasks = settings.tasks
    questions = tasks.questions
    # The training questions of SQuAD 2.0 may be derived from the training questions of SQuAD 1.1.
    if is_derived(name, split.name, questions):
        return squad.derive_unanswerable(_read_split("squad1", split, settings), [tasks.seed])
    on_hub = settings.task_source == "hub"
    root = settings.task_folder
    if name in TASKS:
        task = TASKS[name]
        return glue.read_hub(tasks.hub, task, split) if on_hub else glue.read_original(root, task, split)
    hub = questions.hub[name]
    if name == "triviaqa":
        words = questions.triviaqa_words
        return triviaqa.read_hub(hub, split.name, words) if on_hub else triviaqa.read_original(root, split.name, words)
    return squad.read_hub(hub, name, split.name) if on_hub else squad.read_original(root, name, split.name)
