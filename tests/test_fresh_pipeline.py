"""`dvc repro` in fresh clones: original files, hostile names, and the scores that the default scale reaches."""

import re
import subprocess
import sys

import pandas as pd
import pytest
import yaml

from stages.evidence import baselines, scores
from tests.processes import ENVIRONMENT, run
from tests.toy_pipeline import change, clone, commit, list_stages_run, merge, shrink

# tasks of eight, at least
ABOVE_CHANCE, ABOVE_WORDS = 6, 5
# of the GLUE score without pre-training, at least
LOST = 0.05
# stages with jobs in a run without tasks
TRAINED = ("pretraining", "translation")
FILES = """
data: {source: files, root: data/original}
corpus: {files: ["text/*.txt"], documents: null, shards: 1}
filtering: {missing_harmful_pp: keep}
tasks: {names: [], questions: {names: []}}
"""
pytestmark = pytest.mark.pipeline


def read_files(params: dict) -> None:
    """A text from files, without tasks and translation."""
    shrink(params)
    merge(params, yaml.safe_load(FILES))
    params["translation"]["protocols"] = {}


def read_alone(params: dict) -> None:
    """The same files, with a single model and few documents."""
    read_files(params)
    params["operators"] = ["original"]
    params["corpus"]["files"] = ["*.txt"]
    params["pretraining"]["seeds"] = [1]


def test_original_files_below_a_relative_root_are_tracked_and_reach_experiments(tmp_path):
    folder = clone(tmp_path / "clone", read_files)
    text = folder / "data/original/text/a.txt"
    text.parent.mkdir()
    text.write_text("one\n\ntwo\n")
    run(folder, "dvc", "add", "data/original/text")
    commit(folder)
    tracked = run(folder, "git", "ls-files", "data/original").split()
    assert tracked == ["data/original/README.md", "data/original/text.dvc"]
    assert list_stages_run(run(folder, "dvc", "exp", "run", "--temp", "corpus")) == {"corpus"}
    assert list_stages_run(run(folder, "dvc", "repro", "corpus")) <= {"corpus"}
    text.write_text("one\n\ntwo\n\nthree\n")
    assert list_stages_run(run(folder, "dvc", "repro", "corpus")) == {"corpus"}
    assert not run(folder, "git", "status", "--short", "--untracked-files=all", "data/original/text")


def test_a_text_alone_gets_through_the_chain_to_a_report_that_names_what_was_skipped(tmp_path):
    folder = clone(tmp_path / "clone", read_alone)
    documents = [f"a text of number {number} with some more words" for number in range(60)]
    (folder / "data/original/own.txt").write_text("\n\n".join(documents))
    # in one process, which is faster than `dvc repro`
    program = "from stages.__main__ import main; from stages.runner.pipeline import read_pipeline; "
    run(folder, sys.executable, "-c", program + "[main([stage]) for stage in read_pipeline()]")
    page = (folder / "reports/report.html").read_text()
    assert "on text from files on disk, without tasks" in page
    assert "No tasks: tasks.names is empty" in page and "No questions: tasks.questions.names is empty" in page
    # no page leads to a place that is not there
    for address in re.findall(r'href="([^"#]*)#([^"]+)"', page):
        other, place = address
        assert f'id="{place}"' in (folder / "reports" / (other or "report.html")).read_text(), address
    assert not [path for path in (folder / "data/results").glob("*/*") if path.parent.name not in TRAINED]


def test_a_hostile_name_is_refused_before_any_stage_and_no_part_of_it_is_executed(tmp_path):
    folder = clone(tmp_path / "clone")
    hostile = ["shared; touch pwned; echo", "$(touch pwned)", "../../pwned"]
    change(folder, lambda params: params["operators"].extend(hostile))
    for command in (["dvc", "repro"], ["dvc", "repro", "--single-item", "--force", "pretraining"]):
        done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)
        assert done.returncode and "shared; touch pwned; echo" in done.stdout + done.stderr
    assert not (folder / "data/runs").exists()
    assert not list(tmp_path.rglob("*pwned*"))


def learn(params: dict) -> None:
    """The default scale with a single operator and pre-training seed."""
    params["operators"] = ["original"]
    params["pretraining"]["seeds"] = [1]
    params["question_answering"]["tasks"] = ["squad1"]


@pytest.mark.nightly
def test_at_the_default_scale_a_model_learns_and_pre_training_matters(tmp_path):
    folder = clone(tmp_path, learn)
    names = ("baselines", "finetuning", "question_answering")
    run(folder, "dvc", "repro", *names)
    paths = [folder / f"data/observations/{name}.csv" for name in names]
    rows = pd.concat([pd.read_csv(path, dtype={"protocol": "str", "condition": "str"}) for path in paths])
    references = baselines.collect_baselines(rows, 0.95)
    measured = pd.concat([scores.compute_column_scores(rows), rows[rows["stage"] == "question_answering"]])
    found = baselines.add_baselines(measured, references).set_index("evaluated_on")
    glue = found[found["metric"] == "score"]
    tasks = glue.drop(index="mnli_mm")
    assert (~tasks["at_chance"]).sum() >= ABOVE_CHANCE
    assert (tasks["value"] > tasks["words_and_overlap"]).sum() >= ABOVE_WORDS
    from_first_weights = references[references["operator"] == baselines.NOT_PRETRAINED].query("metric == 'score'")
    lost = glue["value"] - from_first_weights.set_index("evaluated_on")["value"]
    assert lost.mean() > LOST
    f1 = found[found["metric"] == "f1"]
    assert f1.loc["squad1", "value"] > f1.loc["squad1", "most_frequent"] + 0.3
