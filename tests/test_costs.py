"""A change of params.yaml costs what it must: tables of what every key starts again, and of the jobs that are redone.

DVC starts the stages that list a key, and then those whose inputs have become others. A stage that is started redoes
only the jobs whose settings have changed. The report is rendered after every change of the file.
"""

import shutil
from itertools import product
from pathlib import Path

import pytest
import yaml

from stages.convergence import stage as convergence
from stages.files.paths import pretrained
from stages.finetuning import stage as finetuning
from stages.pretraining import stage as pretraining
from stages.question_answering import stage as question_answering
from stages.schema.settings import Settings
from stages.translation import stage as translation
from tests.toy_settings import leaves, other

ROOT = Path(__file__).parents[1]
STAGES = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
PARAMS = yaml.safe_load((ROOT / "stages/scales/laptop.yaml").read_text())
PARAMS["finetuning"]["courtois2024"]["seeds"] = [1, 2]
KEYS = [key for key, _, _ in leaves(PARAMS)]
ITEM = {"operator": "original", "size": "tiny"}  # the command of pretraining that is looked at

ALL = "pretraining finetuning noise cross_domain convergence question_answering timing analysis"
STARTS = {  # key, or the section that holds it: what DVC starts first; the longest key that fits a key holds
    "scale": "",
    "workers": "",
    "report": "",
    "operators_file": "parameters pretraining timing",
    "operators": ALL,
    "sizes": ALL,
    "protocols": "finetuning noise cross_domain convergence analysis",
    "data.source": "corpus tasks sentence_pairs analysis",
    "data.root": "corpus tokenization tasks sentence_pairs analysis",
    "corpus": "corpus",
    "filtering": "filtering",
    "filtering.malformed_share": "filtering sentence_pairs",
    "tokenization": "tokenization",
    "tasks": "tasks",
    "tasks.names": "tasks baselines finetuning convergence",
    "models": "parameters pretraining timing",
    "variants": "parameters pretraining timing",
    "pretraining": "pretraining timing",
    "pretraining.initializer_range": "parameters pretraining timing",
    "pretraining.steps": "pretraining convergence timing",
    "pretraining.seeds": "pretraining finetuning noise cross_domain convergence question_answering timing",
    "finetuning": "finetuning noise cross_domain timing",  # of the other protocol, which timing follows
    "finetuning.courtois2024": "finetuning noise cross_domain convergence",
    "question_answering": "question_answering",
    "question_answering.tasks": "baselines question_answering",
    "noise": "noise",
    "noise.tasks": "finetuning noise convergence",
    "cross_domain": "cross_domain",
    "cross_domain.tasks": "finetuning cross_domain convergence",
    "convergence": "convergence",
    "convergence.steps": "pretraining convergence",
    "translation": "sentence_pairs translation analysis",
    "translation.protocols": "sentence_pairs translation timing analysis",
    "timing": "timing",
    "analysis": "analysis",
}

NONE, NEW, EVERY = "no job", "new jobs alone", "every job"
NOTHING = (NONE,) * 5
REDOES = {  # as above: the jobs of pretraining, finetuning, convergence, question_answering and translation, of which
    # each runs again, too, when the files that it reads have become others
    **dict.fromkeys(("scale", "operators_file", "workers", "variants"), NOTHING),
    **dict.fromkeys(("operators", "sizes"), (NEW, NEW, NEW, NEW, NONE)),
    "protocols": (NONE, NEW, NONE, NONE, NONE),
    **dict.fromkeys(("data", "corpus", "filtering", "tokenization", "tasks", "models", "finetuning"), NOTHING),
    **dict.fromkeys(("noise", "cross_domain", "timing", "analysis", "report", "translation"), NOTHING),
    "models.tiny": (EVERY, NONE, NONE, NONE, NONE),
    "pretraining": (EVERY, NONE, NONE, NONE, NONE),
    "pretraining.seeds": (NEW, NEW, NEW, NEW, NONE),
    "pretraining.steps": (EVERY, NONE, NEW, NONE, NONE),  # what was fine-tuned from the last step is from another now
    "finetuning.courtois2024": (NONE, EVERY, EVERY, NONE, NONE),
    "finetuning.courtois2024.seeds": (NONE, NEW, NONE, NONE, NONE),
    "question_answering": (NONE, NONE, NONE, EVERY, NONE),
    "question_answering.tasks": (NONE, NONE, NONE, NEW, NONE),
    "question_answering.seeds": (NONE, NONE, NONE, NEW, NONE),
    "convergence.protocol": (NONE, NONE, EVERY, NONE, NONE),
    "convergence.steps": (NONE, NONE, NEW, NONE, NONE),  # pre-training goes to the new step again, no further
    "convergence.tasks": (NONE, NONE, NEW, NONE, NONE),
    "convergence.seeds": (NONE, NONE, NEW, NONE, NONE),
    "translation.protocols": (NONE, NONE, NONE, NONE, NEW),  # those of the protocol
    "translation.protocols.blog.operators": NOTHING,
    "translation.protocols.draft.operators": NOTHING,
    "translation.sequence_tasks": (NONE, NONE, NONE, NONE, NEW),
    "translation.sequence_tasks.operators": NOTHING,
}
LESS = {  # a value that asks for less than there is redoes nothing
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
VALUES = {  # of keys that take no value but known ones
    "operators": (*PARAMS["operators"], "tied_qkv"),
    "sizes": ("tiny", "mini"),
    "protocols": ("courtois2024", "kowsher2025"),
    "tasks.names": ("cola", "sst2", "qqp", "mnli"),
    "question_answering.tasks": ("squad1", "squad2", "squad1_triviaqa", "squad2_triviaqa", "triviaqa"),
    "convergence.protocol": "kowsher2025",
    "convergence.tasks": ("cola", "sst2", "rte"),
}


def listed(stage: dict) -> list[str]:
    """The parameters of a command of a stage, and the lists that its matrix runs over."""
    known = {f"${{item.{name}}}": value for name, value in ITEM.items()}
    known |= {f"${{{name}.protocol}}": PARAMS[name]["protocol"] for name in ("convergence", "timing")}
    names = [*stage.get("params", []), *(text.strip("${}") for text in stage.get("matrix", {}).values())]
    for pattern, value in known.items():
        names = [name.replace(pattern, value) for name in names]
    return names


def started(key: str) -> set[str]:
    return {
        name
        for name, stage in STAGES.items()
        if any(key == other or key.startswith(f"{other}.") for other in listed(stage))
    }


@pytest.mark.parametrize("key", KEYS)
def test_every_key_starts_the_stages_of_the_table(key):
    sections = [name for name in STARTS if key == name or key.startswith(f"{name}.")]
    assert started(key) == set(STARTS[max(sections, key=len)].split())


def planned(settings: Settings) -> list[set[str]]:
    """The settings of all jobs of five stages."""
    models = settings.pretrained()
    starts = product(models, settings.pretraining.seeds, settings.question_answering.seeds)
    trained = {
        (str(pretrained(*model, number)), seed): Path(f"{model}-{number}-{seed}") for model, number, seed in starts
    }
    plans = (
        pretraining.planned(settings, models),
        finetuning.planned(settings, settings.finetuned()),
        convergence.planned(settings, models),
        question_answering.planned(settings, models, trained),
        translation.planned(settings, settings.translation.operators),
    )
    return [{run.text for run in plan} for plan in plans]


def with_value(section, keys: list[str], value):
    """A copy of the settings, or of a section, with another value at a key."""
    key, *below = keys
    present = section[key] if isinstance(section, dict) else getattr(section, key)
    new = {key: with_value(present, below, value) if below else value}
    return section | new if isinstance(section, dict) else section.model_copy(update=new)


def value_of(section, keys: list[str]):
    for key in keys:
        section = section[key] if isinstance(section, dict) else getattr(section, key)
    return section


@pytest.fixture
def settings(tmp_path, monkeypatch) -> Settings:
    """Those of scale `laptop`, in a folder that has nothing else."""
    shutil.copyfile(ROOT / PARAMS["operators_file"], tmp_path / PARAMS["operators_file"])
    monkeypatch.chdir(tmp_path)
    return Settings.model_validate(PARAMS)


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # values of another kind
def test_another_value_of_every_key_redoes_the_jobs_of_the_table(settings):
    before = planned(settings)
    for key in KEYS:
        place = key.split(".")
        value = VALUES[key] if key in VALUES else other(value_of(settings, place))
        after = planned(with_value(settings, place, value))
        fitting = [name for name in REDOES if key == name or key.startswith(f"{name}.")]
        found = [NONE if new <= old else NEW if new & old else EVERY for old, new in zip(before, after, strict=True)]
        assert found == list(REDOES[max(fitting, key=len)]), key


@pytest.mark.parametrize(("key", "value"), LESS.items())
def test_asking_for_less_redoes_nothing(key, value, settings):
    after = planned(with_value(settings, key.split("."), value))
    assert all(new <= old for old, new in zip(planned(settings), after, strict=True))
