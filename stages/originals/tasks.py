"""Finds the original files of GLUE, SQuAD and TriviaQA, each whole or as a subset.

`root` is the folder data.root, or data/embedded. A missing file is a ValueError.
"""

from collections.abc import Iterable
from pathlib import Path

from stages.benchmarks.glue import TASKS, Split, Task
from stages.files.stand_ins import require_data, require_target
from stages.schema.sections import Questions
from stages.schema.settings import Settings

# A file of SQuAD is named STEM-VERSION.json, such as train-v1.1.json.
VERSIONS = {"squad1": "v1.1", "squad2": "v2.0"}
STEMS = {"train": "train", "validation": "dev"}
# TriviaQA was collected in two parts, by the source of the documents.
PARTS = ("wikipedia", "web")


def find_file(folders: Iterable[Path], stem: str, suffix: str) -> Path | None:
    """Finds the first existing file, `None` if there is no such file.

    In each folder, the whole file (`train.tsv`, for stem `train` and suffix `.tsv`) comes before a subset
    (`train.subset.tsv`), and the subset before the whole file in the next folder.
    """
    for folder in folders:
        for name in (f"{stem}{suffix}", f"{stem}.subset{suffix}"):
            path = folder / name
            # A broken link is an error here, or else the next folder would be used without notice.
            require_target(path)
            if path.is_file():
                return path
    return None


def require_file(
    folders: list[Path],
    stem: str,
    suffix: str,
    what: str,
    remedy: str,
) -> Path:
    """Finds a file like `find_file`; a ValueError names `what`, a task and split, and ends with the remedy."""
    path = find_file(folders, stem, suffix)
    if path is None:
        raise ValueError(
            f"{what}: neither {stem}{suffix} nor {stem}.subset{suffix} is in {' or '.join(map(str, folders))}; put the "
            f"original files below data.root, or {remedy}"
        )
    return path


def is_subset(path: Path) -> bool:
    """Returns whether a file is a subset by name: true for `train.subset.tsv`."""
    return path.stem.endswith(".subset")


def find_glue(root: Path, task: Task, split: Split) -> Path:
    """Finds the file of a split of a GLUE task, in a folder `glue` below `root` or directly below `root`."""
    # The root may be the folder `glue` itself, or the folder above.
    return require_file(
        [root / "glue" / task.folder, root / task.folder],
        split.stem,
        ".tsv",
        f"task {task.name}, split {split.name}",
        "remove the task from tasks.names (`[]` is no task), or set tasks.source to `embedded`",
    )


def find_squad(root: Path, name: str, split: str) -> Path:
    """Finds the file of a split of `squad1` or `squad2`, such as train-v1.1.json, in a folder `squad` or in `root`."""
    stem = f"{STEMS[split]}-{VERSIONS[name]}"
    remedy = f"remove {name} from tasks.questions.names"
    if stem == "train-v2.0":
        remedy += "; `tasks.questions.squad2_training: derived` derives the file from SQuAD 1.1"
    return require_file([root / "squad", root], stem, ".json", f"{name}, split {split}", remedy)


def is_derived(name: str, split: str, questions: Questions) -> bool:
    """Returns whether params.yaml asks to derive a split from SQuAD 1.1: only the training split of SQuAD 2.0."""
    return (name, split) == ("squad2", "train") and questions.squad2_training == "derived"


def find_triviaqa(root: Path, split: str) -> list[Path]:
    """Finds the files of a split of TriviaQA below `root`, for the parts (wikipedia, web) that exist."""
    folder = root / "triviaqa" / "qa"
    stem = STEMS[split]
    found = [find_file([folder], f"{part}-{stem}", ".json") for part in PARTS]
    paths = [path for path in found if path]
    if not paths:
        raise ValueError(
            f"triviaqa, split {split}: {folder} has neither wikipedia-{stem}.json nor web-{stem}.json; unpack "
            "TriviaQA's RC data there, or remove triviaqa from tasks.questions.names"
        )
    return paths


def require_glue(settings: Settings) -> None:
    """Checks that the files of all splits of GLUE tasks exist and hold data, not a Git LFS pointer or web page."""
    for name in settings.tasks.names:
        for split in TASKS[name].splits:
            require_data(find_glue(settings.task_folder, TASKS[name], split))


def require_questions(settings: Settings) -> None:
    """Checks that the files of all configured sets of questions exist and hold data."""
    root = settings.task_folder
    questions = settings.tasks.questions
    for name in questions.names:
        for split in STEMS:
            if name == "triviaqa":
                paths = find_triviaqa(root, split)
            else:
                # A derived split is made from the questions of SQuAD 1.1.
                source = "squad1" if is_derived(name, split, questions) else name
                paths = [find_squad(root, source, split)]
            for path in paths:
                require_data(path)
