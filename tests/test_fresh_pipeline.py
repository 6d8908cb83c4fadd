"""`dvc repro` in fresh clones: files and operators of one's own, hostile names, a typo, and what the laptop learns."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from stages.common.evidence import baselines, scores
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
HELPED = ["stsb", "mrpc"]  # tasks on which pre-training was seen to help
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


def test_a_hostile_stage_that_is_run_alone_executes_no_part_of_its_name(tmp_path):
    folder = clone(tmp_path / "clone")
    change(folder, lambda params: params["operators"].append(HOSTILE[0]))
    for target in ("settings", f"pretraining@{HOSTILE[0]}-tiny"):
        command = [str(Path(sys.executable).with_name("dvc")), "repro", "--single-item", "--force", target]
        assert subprocess.run(command, cwd=folder, capture_output=True, text=True).returncode
    assert not list(tmp_path.rglob("*pwned*"))


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
        "pretraining: 1 jobs, 0 of them done before",
        "pretraining: 1 jobs, 1 of them done before",  # of original, which the file does not concern
    ]
    assert "Running stage 'finetuning@courtois2024-plain_queries-tiny'" in again
    assert "Running stage 'finetuning@courtois2024-original-tiny'" not in again


def test_a_typo_in_params_stops_with_one_clear_error(tmp_path):
    folder = clone(tmp_path)
    change(folder, lambda params: params["corpus"].update(shrads=3))
    done = subprocess.run([sys.executable, "-m", "stages", "corpus"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 1
    assert "corpus.shrads: unknown key (given: 3)" in done.stderr
    assert "Traceback" not in done.stderr


def learn(params: dict) -> None:
    """The laptop scale with one operator and one seed of each kind.

    Of the two pre-training seeds it is the one from which MNLI and QNLI are learnt; the report has the mean over both.
    """
    params["operators"] = ["original"]
    params["pretraining"]["seeds"] = [2]
    params["finetuning"]["courtois2024"]["seeds"] = [2]
    params["question_answering"]["tasks"] = ["squad1", "squad2"]


def learn_from_scratch(params: dict) -> None:
    """The same without pre-training, on the tasks of HELPED alone."""
    learn(params)
    params["pretraining"] |= {"steps": 2, "warmup_steps": 1, "learning_rate": 1.0e-9}
    params["convergence"]["steps"] = [2]
    params["noise"]["tasks"] = params["timing"]["tasks"] = params["convergence"]["tasks"] = HELPED
    params["cross_domain"] |= {"tasks": ["mrpc"], "positive_labels": {"mrpc": ["1"]}}
    params["tasks"]["names"] = HELPED


def scored(folder: Path, *stages: str) -> pd.DataFrame:
    """Scores of the stages beside those of the baselines."""
    frames = [read(folder / f"data/observations/{stage}-original-tiny.csv") for stage in stages]
    baseline = baselines.references(read(folder / "data/observations/baselines.csv"), 0.95)
    rows = pd.concat(frames)
    columns = scores.column_scores(rows)
    answers = rows[rows["stage"] == "question_answering"]
    return baselines.beside(pd.concat([columns, answers]), baselines.known(baseline)).set_index("evaluated_on")


def test_at_the_laptop_scale_a_model_learns_and_pre_training_matters(tmp_path):
    folder = clone(tmp_path / "learnt", learn)
    run(folder, "dvc", "repro", "baselines", "finetuning", "question_answering")
    found = scored(folder, "finetuning-courtois2024", "question_answering")
    glue = found[found["metric"] == "score"].drop(index="mnli_mm")
    assert (~glue["at_chance"]).sum() >= ABOVE_CHANCE
    assert (glue["value"] > glue["bag_of_words"]).sum() >= ABOVE_WORDS
    f1 = found[found["metric"] == "f1"]
    assert f1.loc["squad1", "value"] > f1.loc["squad1", "most_frequent"] + 0.3
    fresh = clone(tmp_path / "scratch", learn_from_scratch)
    run(fresh, "dvc", "repro", "finetuning", "baselines")
    scratch = scored(fresh, "finetuning-courtois2024")
    lost = glue.loc[HELPED, "value"] - scratch.loc[HELPED, "value"]
    assert (lost > 0.05).all()
