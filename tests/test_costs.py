"""A changed key of params.yaml reruns only the jobs that depend on the key: a table of rerun jobs by key."""

import shutil
from itertools import product
from pathlib import Path

import pytest

from stages.convergence import stage as convergence
from stages.files.documents import read_yaml
from stages.files.paths import find_pretrained
from stages.finetuning import stage as finetuning
from stages.pretraining import stage as pretraining
from stages.question_answering import stage as question_answering
from stages.schema.settings import Settings
from stages.translation import stage as translation
from tests.toy_settings import list_leaves, make_other

ROOT = Path(__file__).parents[1]
PARAMS = read_yaml(ROOT / "stages/scales/laptop.yaml")
PARAMS["finetuning"]["courtois2024"]["seeds"] = [1, 2]

# The jobs of pretraining, finetuning, convergence, question_answering and translation: "." no job is redone, "+" only
# new jobs run, "*" every job runs. The longest key that a key begins with holds; other keys redo nothing.
REDOES = {
    "": ".....",
    "operators": "++++.",
    "sizes": "++++.",
    "protocols": ".+...",
    "models.tiny": "*....",
    "pretraining": "*....",
    "pretraining.seeds": "++++.",
    "pretraining.steps": "*.+..",  # models fine-tuned from the last step start from another step
    "finetuning.courtois2024": ".**..",
    "finetuning.courtois2024.seeds": ".+...",
    "question_answering": "...*.",
    "question_answering.tasks": "...+.",
    "question_answering.seeds": "...+.",
    "convergence.protocol": "..*..",
    "convergence.steps": "..+..",
    "convergence.tasks": "..+..",
    "convergence.seeds": "..+..",
    "translation.protocols": "....+",  # jobs of the other protocol stay
    "translation.protocols.blog.operators": ".....",
    "translation.protocols.draft.operators": ".....",
    "translation.sequence_tasks": "....+",
    "translation.sequence_tasks.operators": ".....",
}
# A value that asks for less than laptop
LESS = {
    "operators": ("original",),
    "translation.operators": ("original", "fixed"),
    "tasks.names": ("cola", "sst2", "qqp"),
    "pretraining.seeds": (1,),
    "finetuning.courtois2024.seeds": (2,),
    "question_answering.tasks": ("squad1",),
    "convergence.steps": (1200,),
    "convergence.tasks": ("sst2",),
    "translation.protocols.blog.seeds": (1,),
}
# Other values of keys that take only known names
VALUES = {
    "operators": (*PARAMS["operators"], "tied_qkv"),
    "sizes": ("tiny", "mini"),
    "protocols": ("courtois2024", "kowsher2025"),
    "tasks.names": ("cola", "sst2", "qqp", "mnli"),
    "question_answering.tasks": ("squad1", "squad2", "squad1_triviaqa", "squad2_triviaqa", "triviaqa"),
    "convergence.protocol": "kowsher2025",
    "convergence.tasks": ("cola", "sst2", "rte"),
}


def plan(settings: Settings) -> list[set[str]]:
    """The settings of all jobs of five stages."""
    models = settings.list_pretrained()
    trained = {}
    for model, number, seed in product(models, settings.pretraining.seeds, settings.question_answering.seeds):
        trained[str(find_pretrained(*model, number)), seed] = Path(f"{model}-{number}-{seed}")
    plans = (
        pretraining.plan_runs(settings, models),
        finetuning.plan_runs(settings, settings.list_finetuned()),
        convergence.plan_runs(settings, models),
        question_answering.plan_runs(settings, models, trained),
        translation.plan_jobs(settings, settings.translation.operators),
    )
    texts = []
    for runs in plans:
        texts.append({run.text for run in runs})
    return texts


def replace_value(section, key: str, change):
    """A copy of the settings, or of a section, in which `change` makes the value at a key from the value there."""
    name, _, below = key.partition(".")
    present = section[name] if isinstance(section, dict) else getattr(section, name)
    new = {name: replace_value(present, below, change) if below else change(present)}
    return section | new if isinstance(section, dict) else section.model_copy(update=new)


@pytest.fixture
def settings(tmp_path, monkeypatch) -> Settings:
    """The settings of scale `laptop`, in a folder that has nothing else."""
    shutil.copyfile(ROOT / PARAMS["operators_file"], tmp_path / PARAMS["operators_file"])
    monkeypatch.chdir(tmp_path)
    return Settings.model_validate(PARAMS)


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # values of another kind
def test_another_value_of_every_key_redoes_the_jobs_of_the_table(settings):
    before = plan(settings)
    for key, _, _ in list_leaves(PARAMS):
        after = plan(replace_value(settings, key, lambda present: VALUES.get(key, make_other(present))))  # noqa: B023
        found = ["." if new <= old else "+" if new & old else "*" for old, new in zip(before, after, strict=True)]
        fitting = [name for name in REDOES if f"{key}.".startswith(f"{name}.") or not name]
        assert "".join(found) == REDOES[max(fitting, key=len)], key


@pytest.mark.parametrize(("key", "value"), LESS.items())
def test_asking_for_less_redoes_nothing(key, value, settings):
    after = plan(replace_value(settings, key, lambda _: value))
    assert all(new <= old for old, new in zip(plan(settings), after, strict=True))
