"""A user's own text: files are looked for before any stage runs, and tasks may be missing or generated."""

from pathlib import Path

import pandas as pd
import pytest

from stages.files.yaml_files import read_yaml
from stages.report.facts import describe_data
from stages.schema.settings import Settings
from stages.settings.sources import require_sources
from stages.tasks import stage as tasks
from tests.toy_settings import LAPTOP, edit_laptop

ROOT = Path(__file__).parents[1]
LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"


def make_settings(**edits: object) -> Settings:
    """Makes the settings of a text without tasks and translation, with edits by key, such as tasks__names."""
    own = {
        "operators_file": "my_operators.py",
        "data.source": "files",
        "data.root": "root",
        "corpus.files": ["*.txt"],
        "tasks.names": [],
        "tasks.questions.names": [],
        "translation.protocols": {},
    }
    for key, value in edits.items():
        own[key.replace("__", ".")] = value
    return Settings.model_validate(edit_laptop(own))


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    """The folder `root` with a text, in a working folder that has nothing else."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_operators.py").write_text((ROOT / "my_operators.py").read_text())
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "own.txt").write_text("one\n\ntwo\n")
    return folder


def test_a_text_alone_is_enough_without_tasks_and_translation(root):
    require_sources(make_settings())


PAIRS = {"blog": read_yaml(LAPTOP)["translation"]["protocols"]["blog"]}
MISSING = {
    "text": ({"corpus__files": ["*.jsonl"]}, r"corpus\.files: `\*\.jsonl` matches no file below .*root"),
    "root": ({"data__root": "nowhere"}, r"data\.root: .*nowhere: no such folder; put the original files there"),
    "vocabulary": ({"tokenization__vocabulary": "v.txt"}, r"tokenization\.vocabulary: root/v\.txt: no such .* null"),
    "task": ({"tasks__names": ["sst2"]}, r"task sst2, split train: .*SST-2.*tasks\.names .*tasks\.source.*embedded"),
    "questions": ({"tasks__questions__names": ["squad1"]}, r"neither train-v1\.1\.json .*tasks\.questions\.names"),
    "triviaqa": ({"tasks__questions__names": ["triviaqa"]}, r"neither wikipedia-train\.json .*questions\.names"),
    "pairs": ({"translation__protocols": PAIRS}, r"train\.en: no such file; translation\.protocols.*`protocols: \{\}`"),
    "blocklists": ({"filtering__annotation__blocklists": "lists"}, r"annotation\.blocklists: lists: no such folder"),
    "kenlm": ({"filtering__annotation__kenlm_model": "m.bin"}, r"annotation\.kenlm_model: m\.bin: no such file"),
}


# lists of tasks of which none is prepared
UNTESTED = {f"{name}__tasks": [] for name in ("noise", "cross_domain", "convergence", "timing", "question_answering")}


@pytest.mark.parametrize(("edits", "message"), MISSING.values(), ids=MISSING)
def test_a_file_that_is_not_there_is_named_with_its_key_and_the_remedy(root, edits, message):
    with pytest.raises(ValueError, match=message):
        require_sources(make_settings(**UNTESTED, **edits))


def test_all_missing_files_come_in_one_error(root):
    (root / "own.txt").unlink()
    settings = make_settings(**UNTESTED, tasks__names=["sst2"], translation__protocols=PAIRS)
    with pytest.raises(ValueError, match=r"3 problem\(s\)(.|\n)*corpus\.files(.|\n)*translation(.|\n)*task sst2"):
        require_sources(settings)


def test_a_pointer_in_place_of_the_text_is_named_before_any_stage_runs(root):
    (root / "own.txt").write_text(LFS)
    with pytest.raises(ValueError, match=r"own\.txt: a Git LFS pointer"):
        require_sources(make_settings())


def test_a_missing_folder_of_generated_data_is_named_with_the_remedy(root):
    settings = make_settings(**UNTESTED, tasks__source="embedded", tasks__names=["sst2"])
    with pytest.raises(ValueError, match=r"data/embedded: no README.md, .*`git checkout -- data/embedded` restores"):
        require_sources(settings)
    Path("data").mkdir()
    Path("data/embedded").symlink_to(ROOT / "data/embedded")
    require_sources(settings)
    assert settings.tasks_generated and not settings.text_generated


def test_tasks_from_files_are_looked_for_beside_generated_text(root):
    Path("data").mkdir()
    Path("data/embedded").symlink_to(ROOT / "data/embedded")
    settings = make_settings(**UNTESTED, data__source="embedded", tasks__source="files", tasks__names=["sst2"])
    with pytest.raises(ValueError, match="task sst2, split train"):
        require_sources(settings)
    with pytest.raises(ValueError, match=r"tasks\.source: files needs data\.root"):
        make_settings(data__source="embedded", data__root=None, tasks__source="files")


def test_no_tasks_empty_all_lists_of_tests_and_no_questions_those_of_question_answering(root):
    settings = make_settings()
    for section in ("noise", "cross_domain", "convergence", "timing", "question_answering"):
        assert getattr(settings, section).tasks == ()
    asked = make_settings(tasks__names=["mnli", "qqp", "sst2", "qnli", "mrpc", "cola"])
    assert asked.noise.tasks and asked.timing.tasks and not asked.question_answering.tasks


def test_without_tasks_the_stage_tasks_writes_a_table_without_rows(root, tmp_path):
    folder = tmp_path / "tasks"
    folder.mkdir()
    assert tasks.build_tasks(folder, make_settings()).empty
    table = pd.read_csv(folder / "statistics.csv")
    assert table.empty and list(table.columns) == list(tasks.COLUMNS)


DATA = {
    ("embedded", None, True): "text and tasks generated by this repository",
    ("files", "files", True): "files on disk",
    ("files", "embedded", True): "text from files on disk and tasks generated by this repository",
    ("hub", "files", True): "text of the Hugging Face hub and tasks from files on disk",
    ("files", None, False): "text from files on disk, without tasks",
}


@pytest.mark.parametrize(("data", "source", "some"), DATA)
def test_the_report_says_what_text_and_tasks_are(root, monkeypatch, data, source, some):
    names = ["sst2"] if some else []
    settings = make_settings(**UNTESTED, data__source=data, tasks__source=source, tasks__names=names)
    monkeypatch.chdir(ROOT)
    assert describe_data(settings) == DATA[data, source, some]
    assert settings.generated == ("embedded" in (data, source))
