"""Stage `tasks`: the GLUE tasks, SQuAD and TriviaQA in one form.

Reads the data source (generated here; original files below data.root; the hub). Writes data/tasks/TASK/SPLIT.parquet
(GLUE: example_id, text_a, text_b, label; questions: example_id, context, question, answers, starts) and
data/tasks/statistics.csv, a row per split: task, split; the numbers of examples and of those available; reduced,
whether these are more; subset, source, dropped and reason (examples.py); and majority_share, that of the most frequent
class, or of questions without an answer (none for a regression, and where all questions have answers).
"""

import shutil
from pathlib import Path

import pandas as pd

from stages.benchmarks.glue import TASKS, Split
from stages.embedded.comprehension import write_squad, write_triviaqa
from stages.embedded.tasks import write_glue
from stages.files.paths import STATISTICS, TASK_FOLDER
from stages.files.storage import temporary_sibling
from stages.schema.settings import Settings
from stages.tasks import glue, squad, triviaqa
from stages.tasks.examples import Examples

QUESTIONS = (*squad.VERSIONS, "triviaqa")
SPLITS = tuple(Split(name, stem) for name, stem in squad.STEMS.items())  # of QUESTIONS


def main(settings: Settings) -> dict:
    """Writes the tasks; returns what was read, for the record of the run."""
    with temporary_sibling(TASK_FOLDER) as folder:  # becomes TASK_FOLDER once all is written
        folder.mkdir()
        statistics = build(folder, settings)
    return {"read": sorted({row["source"] for row in statistics})}


def build(folder: Path, settings: Settings) -> list[dict]:
    """Writes every split of the named tasks, and statistics.csv; returns the rows of the latter, one per split.

    folder: an empty one, in which generated data are for a while, too. ValueError where data are missing or at fault.
    """
    tasks, statistics, root = settings.tasks, [], Path(settings.data.root or ".")
    if settings.data.generated:
        root = folder / "source"
        _generate(root, settings)
    for name in (*tasks.names, *tasks.questions.names):
        section = tasks.questions if name in QUESTIONS else tasks
        (folder / name).mkdir()
        for number, split in enumerate(SPLITS if name in QUESTIONS else TASKS[name].splits):
            examples = _read(root, name, split, settings)
            limit = section.train_examples if split.name == "train" else section.validation_examples
            # the seed is the split's own, whichever other tasks are named
            frame = examples.sample(limit, [tasks.seed, (*TASKS, *QUESTIONS).index(name), number])
            frame.drop(columns="article", errors="ignore").to_parquet(  # GLUE has no such column
                folder / name / f"{split.name}.parquet", index=False
            )
            row = {"task": name, "split": split.name, "examples": len(frame), "available": len(examples.frame)}
            row |= {"reduced": len(frame) < len(examples.frame), "subset": examples.subset, "source": examples.source}
            row |= {"dropped": examples.dropped, "reason": examples.reason}
            statistics.append(row | {"majority_share": majority_share(frame, name)})
    pd.DataFrame(statistics).to_csv(folder / STATISTICS.name, index=False, lineterminator="\n")
    shutil.rmtree(folder / "source", ignore_errors=True)
    return statistics


def majority_share(frame: pd.DataFrame, name: str) -> float | None:
    """The share of the most frequent class (None for a regression), or of questions without an answer (None for 0)."""
    if name in QUESTIONS:
        return float((frame["answers"].str.len() == 0).mean()) or None
    return float(frame["label"].value_counts(normalize=True).max()) if TASKS[name].labels else None


def _read(root: Path, name: str, split: Split, settings: Settings) -> Examples:
    """Reads a split from the hub or from files below `root`; for SQuAD 2.0's training split, a stand-in if so set."""
    tasks, questions, from_hub = settings.tasks, settings.tasks.questions, settings.data.source == "hub"
    if name == "squad2" and split.name == "train" and questions.squad2_training == "derived":
        return squad.without_answer(_read(root, "squad1", split, settings), [tasks.seed])
    if name in TASKS:
        if from_hub:
            return glue.read_hub(tasks.hub, TASKS[name], split)
        return glue.read_original(root, TASKS[name], split)
    if name == "triviaqa":
        if from_hub:
            return triviaqa.read_hub(questions.hub[name], split.name, questions.triviaqa_words)
        return triviaqa.read_original(root, split.name, questions.triviaqa_words)
    if from_hub:
        return squad.read_hub(questions.hub[name], name, split.name)
    return squad.read_original(root, name, split.name)


def _generate(folder: Path, settings: Settings) -> None:
    """Writes the generated tasks (data.source: embedded), all of them, into `folder` in the form of original files."""
    tasks = settings.tasks
    write_glue(folder, tasks.train_examples, tasks.validation_examples, tasks.seed)
    numbers = (tasks.questions.train_examples, tasks.questions.validation_examples)
    write_squad(folder, *numbers, tasks.seed)
    write_triviaqa(folder, *numbers, tasks.seed)
