"""`dvc repro` in fresh clones: files and operators of one's own, hostile names, and what the laptop learns."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from stages.evidence import baselines, scores
from tests.toy import OWN
from tests.toy_pipeline import (
    HOSTILE,
    NAMED,
    change,
    clone,
    commit,
    is_refused_before_any_stage,
    read,
    run,
    shrink,
    stages_run,
)

ABOVE_CHANCE, ABOVE_WORDS = 6, 5  # tasks of eight, at least
LOST = 0.05  # of the GLUE score without pre-training, at least
pytestmark = pytest.mark.pipeline


def from_files(params: dict) -> None:
    shrink(params)
    params["data"] = {"source": "files", "root": "data/original"}
    params["corpus"] |= {"files": ["text/*.txt"], "documents": None, "shards": 1}


def test_original_files_below_a_relative_root_are_tracked_and_reach_experiments(tmp_path):
    folder = clone(tmp_path / "clone", from_files)
    text = folder / "data/original/text/a.txt"
    text.parent.mkdir()
    text.write_text("one\n\ntwo\n")
    run(folder, "dvc", "add", "data/original/text")
    commit(folder)
    tracked = run(folder, "git", "ls-files", "data/original").split()
    assert tracked == ["data/original/README.md", "data/original/text.dvc"]
    assert stages_run(run(folder, "dvc", "exp", "run", "--temp", "corpus")) == {"corpus"}
    assert stages_run(run(folder, "dvc", "repro", "corpus")) <= {"corpus"}
    text.write_text("one\n\ntwo\n\nthree\n")
    assert stages_run(run(folder, "dvc", "repro", "corpus")) == {"corpus"}
    assert not run(folder, "git", "status", "--short", "--untracked-files=all", "data/original/text")


def test_a_hostile_name_is_refused_before_any_stage_of_a_fresh_clone(tmp_path):
    folder = clone(tmp_path / "clone")
    for key in NAMED:
        assert is_refused_before_any_stage(folder, key, HOSTILE[0])


def test_a_hostile_stage_that_is_run_alone_executes_no_part_of_its_name_and_deletes_nothing(tmp_path):
    folder = clone(tmp_path / "clone")
    (folder / "precious-tiny").mkdir()
    (folder / "precious-tiny" / "file").touch()
    change(folder, lambda params: params["operators"].extend([HOSTILE[0], "../../precious"]))
    for target in ("settings", f"pretraining@{HOSTILE[0]}-tiny", "pretraining@../../precious-tiny"):
        command = [str(Path(sys.executable).with_name("dvc")), "repro", "--single-item", "--force", target]
        assert subprocess.run(command, cwd=folder, capture_output=True, text=True).returncode
    assert not list(tmp_path.rglob("*pwned*"))
    assert (folder / "precious-tiny" / "file").exists()


def with_own(params: dict) -> None:
    shrink(params)
    params["operators"] = ["original", "plain_queries"]
    params["tasks"]["names"] = ["sst2", "mnli", "qnli"]
    params["pretraining"]["seeds"] = params["finetuning"]["courtois2024"]["seeds"] = [1]
    params["question_answering"] |= {"seeds": [1], "tasks": ["squad1"]}
    params["noise"] |= {"tasks": ["sst2"], "seeds": [1], "text": ["typos"]}
    params["convergence"] |= {"steps": [12], "seeds": [1], "tasks": ["sst2"]}


def test_an_operator_of_ones_own_is_trained_counted_timed_and_reported(tmp_path):
    folder = clone(tmp_path, with_own)
    (folder / "my_operators.py").write_text(OWN)
    run(folder, "dvc", "repro")
    rows = pd.concat([pd.read_csv(path) for path in (folder / "data/observations").iterdir()])
    own = set(rows[rows["operator"] == "plain_queries"]["stage"])
    assert own >= {"parameters", "pretraining", "finetuning", "noise", "convergence", "question_answering", "timing"}
    assert "plain queries" in (folder / "reports/report.html").read_text()
    assert "an idea of mine" in (folder / "reports/model_cards/plain_queries-tiny.md").read_text()
    (folder / "my_operators.py").write_text(OWN.replace("return X, self", "return 2 * X, self"))
    again = run(folder, "dvc", "repro", "finetuning")
    assert sorted(line for line in again.splitlines() if line.startswith("pretraining: ")) == [
        "pretraining: 1 job, 0 of them done before",
        "pretraining: 1 job, 1 of them done before",  # of original, which the file does not concern
    ]
    assert "finetuning: 9 jobs, 6 of them done before" in again


def learn(params: dict) -> None:
    """The laptop scale with one operator and one pre-training seed."""
    params["operators"] = ["original"]
    params["pretraining"]["seeds"] = [1]
    params["question_answering"]["tasks"] = ["squad1"]


def test_at_the_laptop_scale_a_model_learns_and_pre_training_matters(tmp_path):
    folder = clone(tmp_path, learn)
    run(folder, "dvc", "repro", "baselines", "finetuning", "question_answering")
    names = ("baselines", "finetuning", "question_answering")
    rows = pd.concat([read(folder / f"data/observations/{name}.csv") for name in names])
    references = baselines.references(rows, 0.95)
    measured = pd.concat([scores.column_scores(rows), rows[rows["stage"] == "question_answering"]])
    found = baselines.add_baselines(measured, baselines.without_model(references)).set_index("evaluated_on")
    glue = found[found["metric"] == "score"]
    tasks = glue.drop(index="mnli_mm")
    assert (~tasks["at_chance"]).sum() >= ABOVE_CHANCE
    assert (tasks["value"] > tasks["words_and_overlap"]).sum() >= ABOVE_WORDS
    from_first_weights = references[references["operator"] == baselines.NOT_PRETRAINED].query("metric == 'score'")
    lost = glue["value"] - from_first_weights.set_index("evaluated_on")["value"]
    assert lost.mean() > LOST
    f1 = found[found["metric"] == "f1"]
    assert f1.loc["squad1", "value"] > f1.loc["squad1", "most_frequent"] + 0.3
