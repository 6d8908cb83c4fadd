"""Settings of the stage `tasks`, and a repository in the layout of the hub, for the tests of reading tasks."""

from pathlib import Path
from types import SimpleNamespace

from stages.schema.sections import Data, Hub
from stages.schema.settings import load_settings
from tests.places import ROOT

EMBEDDED = ROOT / "data/embedded"
LAPTOP = load_settings(ROOT / "stages/scales/laptop.yaml")
CARD = """---
configs:
- config_name: {0}
  data_files:
  - split: validation
    path: {0}/validation-*
---
"""


NAMES = LAPTOP.tasks.names


def make_settings(source="files", root=None, names=NAMES, train=None, validation=None, seed=1, questions=None):
    """The settings of laptop with other tasks. questions: changes of that section; None: only SQuAD 1.1."""
    sizes = {"train_examples": train, "validation_examples": validation}
    section = LAPTOP.tasks.questions.model_copy(update=sizes | (questions or {"names": ("squad1",)}))
    tasks = LAPTOP.tasks.model_copy(update=sizes | {"names": names, "seed": seed, "questions": section})
    data = Data(source=source, root=str(root) if root else None)
    return SimpleNamespace(data=data, tasks=tasks, task_source=source, task_folder=data.folder)


def make_hub(folder: Path, rows: list[dict], configuration: str, features=None) -> Hub:
    """A repository with these rows as the split `validation` of a configuration."""
    import datasets

    data = datasets.Dataset.from_list(rows, features=features)
    (folder / configuration).mkdir(parents=True)
    data.to_parquet(folder / configuration / "validation-00000-of-00001.parquet")
    (folder / "README.md").write_text(CARD.format(configuration))
    return Hub(repository=str(folder), configuration=configuration, revision="main")
