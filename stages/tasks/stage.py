"""Stage `tasks`: the GLUE tasks, SQuAD and TriviaQA in one form.

Reads the data source (generated here; original files below data.root; the hub). Writes data/tasks/TASK/SPLIT.parquet
(GLUE: example_id, text_a, text_b, label; questions: example_id, context, question, answers, starts) and
data/tasks/statistics.csv: of each split its examples, of how many available ones, whether the source is a subset of
the original, what was left out of it and why, its name, and the share of the most frequent class (of SQuAD 2.0: of
questions without an answer).
"""

import shutil
from pathlib import Path

import pandas as pd

from stages.benchmarks.glue import TASKS
from stages.embedded.comprehension import write_squad, write_triviaqa
from stages.embedded.tasks import write_glue
from stages.plumbing.files import STATISTICS, TASK_FOLDER, temporary_sibling
from stages.plumbing.settings import Settings
from stages.tasks import glue, squad, triviaqa

QUESTIONS = (*squad.VERSIONS, "triviaqa")


def main(settings: Settings) -> dict:
    with temporary_sibling(TASK_FOLDER) as folder:
        folder.mkdir()
        statistics = build(folder, settings)
    return {"read": sorted({row["source"] for row in statistics})}


def build(folder: Path, settings: Settings) -> list[dict]:
    """Writes every split of the named tasks, and the statistics; gives these, a row a split."""
    root = Path(settings.data.root or ".")
    if settings.data.source == "embedded":
        root = folder / "source"
        generate(root, settings)
    statistics = [*classification(folder, root, settings), *question_answering(folder, root, settings)]
    pd.DataFrame(statistics).to_csv(folder / STATISTICS.name, index=False, lineterminator="\n")
    shutil.rmtree(folder / "source", ignore_errors=True)
    return statistics


def classification(folder: Path, root: Path, settings: Settings) -> list[dict]:
    """Writes the GLUE tasks; gives their statistics, a row a split."""
    tasks, statistics = settings.tasks, []
    for name in tasks.names:
        task = TASKS[name]
        (folder / name).mkdir()
        for split in task.splits:
            if settings.data.source == "hub":
                examples = glue.read_hub(tasks.hub.repository, tasks.hub.revision, task, split)
            else:
                examples = glue.read_original(root, task, split)
            limit = tasks.train_examples if split.name == "train" else tasks.validation_examples
            seed = [tasks.seed, list(TASKS).index(name), task.splits.index(split)]
            frame = glue.sample(examples.frame, limit, seed)
            frame.to_parquet(folder / name / f"{split.name}.parquet", index=False)
            row = _statistics(name, split.name, frame, examples)
            reason = "wrong number of columns" if examples.corrupt else ""
            row |= {"dropped": examples.corrupt, "reason": reason}
            statistics.append(row | {"majority_share": glue.majority_share(frame["label"], task)})
    return statistics


def question_answering(folder: Path, root: Path, settings: Settings) -> list[dict]:
    """Writes SQuAD and TriviaQA; gives their statistics, a row a split."""
    tasks, statistics = settings.tasks, []
    for name in tasks.questions.names:
        (folder / name).mkdir()
        for split in squad.STEMS:
            found = questions(root, name, split, settings)
            limit = tasks.questions.train_examples if split == "train" else tasks.questions.validation_examples
            seed = [tasks.seed, len(TASKS) + QUESTIONS.index(name), list(squad.STEMS).index(split)]
            frame = glue.sample(found.frame, limit, seed)
            frame[list(squad.COLUMNS)].to_parquet(folder / name / f"{split}.parquet", index=False)
            row = _statistics(name, split, frame, found) | {"dropped": found.dropped, "reason": found.reason}
            statistics.append(row | {"majority_share": squad.unanswerable_share(frame)})
    return statistics


def questions(root: Path, name: str, split: str, settings: Settings) -> squad.Questions:
    """A split of SQuAD or TriviaQA from the data source; for SQuAD 2.0's training split, a stand-in if so set."""
    wanted = settings.tasks.questions
    if name == "squad2" and split == "train" and wanted.squad2_training == "derived":
        return squad.without_answer(questions(root, "squad1", "train", settings), [settings.tasks.seed])
    if settings.data.source == "hub":
        hub = wanted.hub[name]
        where = (hub.repository, hub.configuration, hub.revision)
        if name == "triviaqa":
            return triviaqa.read_hub(*where, split, wanted.triviaqa_words)
        return squad.read_hub(*where, name, split)
    if name == "triviaqa":
        return triviaqa.read_original(root, split, wanted.triviaqa_words)
    return squad.read_original(root, name, split)


def generate(folder: Path, settings: Settings) -> None:
    """The embedded tasks as original files. ValueError when the number of examples is left open."""
    tasks = settings.tasks
    for section, limits in (("tasks", tasks), ("tasks.questions", tasks.questions)):
        for key in ("train_examples", "validation_examples"):
            if getattr(limits, key) is None:
                raise ValueError(f"{section}.{key}: null; source `embedded` needs the number of examples to generate")
    write_glue(folder, tasks.train_examples, tasks.validation_examples, tasks.seed)
    numbers = (tasks.questions.train_examples, tasks.questions.validation_examples)
    write_squad(folder, *numbers, tasks.seed)
    write_triviaqa(folder, *numbers, tasks.seed)


def _statistics(name: str, split: str, frame: pd.DataFrame, found: glue.Examples | squad.Questions) -> dict:
    """What the statistics of all tasks have in common; frame: what was taken of what was found."""
    return {
        "task": name,
        "split": split,
        "examples": len(frame),
        "available": len(found.frame),
        "reduced": len(frame) < len(found.frame),
        "subset": found.subset,
        "source": found.source,
    }
