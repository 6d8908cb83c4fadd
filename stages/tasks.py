"""Stage `tasks`: the GLUE tasks in one form.

Reads the data source (generated here; original files below data.root; the hub). Writes
data/tasks/TASK/SPLIT.parquet (example_id, text_a, text_b, label) and data/tasks/statistics.csv: of each split
its examples, of how many available ones, whether the source is a subset of the original, its name, and the
share of the most frequent class.
"""

import shutil
from pathlib import Path

import pandas as pd

from stages import command, observations
from stages.benchmarks import glue
from stages.embedded.tasks import write_glue
from stages.files import temporary_sibling
from stages.settings import Settings, load_settings

FOLDER = Path("data/tasks")
STATISTICS = "statistics.csv"


def main() -> None:
    command.parser("tasks", __doc__).parse_args()
    settings = load_settings()
    with observations.provenance("tasks"), temporary_sibling(FOLDER) as folder:
        folder.mkdir()
        build(folder, settings)


def build(folder: Path, settings: Settings) -> None:
    """Writes every split of the named tasks, and the statistics."""
    tasks, root = settings.tasks, Path(settings.data.root or ".")
    if settings.data.source == "embedded":
        root = folder / "source"
        generate(root, settings)
    statistics = []
    for name in tasks.names:
        task = glue.TASKS[name]
        (folder / name).mkdir()
        for split in task.splits:
            if settings.data.source == "hub":
                examples = glue.read_hub(tasks.hub.repository, tasks.hub.revision, task, split)
            else:
                examples = glue.read_original(root, task, split)
            limit = tasks.train_examples if split.name == "train" else tasks.validation_examples
            seed = [tasks.seed, list(glue.TASKS).index(name), task.splits.index(split)]
            frame = glue.sample(examples.frame, limit, seed)
            frame.to_parquet(folder / name / f"{split.name}.parquet", index=False)
            statistics.append(
                {
                    "task": name,
                    "split": split.name,
                    "examples": len(frame),
                    "available": len(examples.frame),
                    "reduced": len(frame) < len(examples.frame),
                    "subset": examples.subset,
                    "corrupt_rows": examples.corrupt,
                    "source": examples.source,
                    "majority_share": glue.majority_share(frame["label"], task),
                }
            )
    pd.DataFrame(statistics).to_csv(folder / STATISTICS, index=False, lineterminator="\n")
    shutil.rmtree(folder / "source", ignore_errors=True)


def generate(folder: Path, settings: Settings) -> None:
    """The embedded tasks as original files. ValueError when the number of examples is left open."""
    tasks = settings.tasks
    for key in ("train_examples", "validation_examples"):
        if getattr(tasks, key) is None:
            raise ValueError(f"tasks.{key}: null; source `embedded` needs the number of examples to generate")
    write_glue(folder, tasks.train_examples, tasks.validation_examples, tasks.seed)


if __name__ == "__main__":
    command.run(main)
