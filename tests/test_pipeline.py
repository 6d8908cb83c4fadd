"""`dvc repro` from end to end on a tiny scale, in a temporary clone."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.pipeline


def run(folder: Path, *command: str) -> str:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def clone(folder: Path, edit=None) -> Path:
    """A repository of the files that Git tracks or would, with the parameters of a tiny run, or of `edit`."""
    names = run(ROOT, "git", "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    for name in names:
        if (ROOT / name).is_file() and name != "dvc.lock" and not name.startswith("reports/examples/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    shutil.copyfile(ROOT / "stages/scales/laptop.yaml", folder / "params.yaml")
    change(folder, edit or shrink)
    run(folder, "git", "init", "--quiet")
    run(folder, "git", "add", ".")
    run(folder, "git", "-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "--message", "tiny")
    return folder


def shrink(params: dict) -> None:
    params["operators"] = ["original", "shared"]
    params["corpus"] |= {"documents": 300, "shards": 2}
    params["tokenization"] |= {"validation_documents": 20}
    params["tasks"] |= {"names": ["sst2", "stsb", "mnli", "qnli"], "train_examples": 64, "validation_examples": 32}
    params["tasks"]["questions"] |= {"train_examples": 32, "validation_examples": 16}
    params["question_answering"] |= {"seeds": [1, 2], "epochs": 1}
    params["noise"] |= {"tasks": ["sst2", "mnli"], "levels": [0.0, 0.4], "seeds": [1, 2]}
    params["cross_domain"]["tasks"] = ["mnli", "qnli"]
    params["models"]["tiny"] |= {"layers": 1, "hidden": 16, "intermediate": 64}
    params["pretraining"] |= {
        "steps": 12,
        "warmup_steps": 2,
        "batch_size": 8,
        "evaluation_interval": 4,
        "checkpoint_interval": 5,
    }
    params["finetuning"]["courtois2024"] |= {"seeds": [1, 2], "epochs": 1}
    params["convergence"] |= {"steps": [6, 12], "tasks": ["sst2", "stsb"]}
    params["timing"] |= {"tasks": ["sst2"], "repeats": 1, "steps": 1}


def learn(params: dict) -> None:
    """The laptop scale with one operator and one seed of each kind, and training enough for a sure outcome."""
    params["operators"] = ["original"]
    params["tasks"] |= {"train_examples": 3000, "validation_examples": 400}
    params["tasks"]["questions"] |= {"train_examples": 1500, "validation_examples": 400}
    params["pretraining"] |= {"seeds": [1], "steps": 1600, "warmup_steps": 160, "batch_size": 64}
    params["convergence"]["steps"] = [1600]
    params["finetuning"]["courtois2024"]["seeds"] = [1]


def change(folder: Path, edit) -> None:
    path = folder / "params.yaml"
    params = yaml.safe_load(path.read_text())
    edit(params)
    path.write_text(yaml.safe_dump(params, sort_keys=False))


def stages_run(output: str) -> set[str]:
    return {line.split("'")[1].split("@")[0] for line in output.splitlines() if line.startswith("Running stage")}


def observations(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "data/observations").iterdir()}


def without_times(rows: dict[str, bytes]) -> dict[str, bytes]:
    return {name: content for name, content in rows.items() if name != "timing.csv"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = clone(tmp_path_factory.mktemp("finished"))
    run(folder, "dvc", "repro")
    return folder


def test_every_output_is_there(finished):
    stages = yaml.safe_load((finished / "dvc.lock").read_text())["stages"]
    for stage in stages.values():
        for output in stage["outs"]:
            assert (finished / output["path"]).exists()
    names = set(observations(finished))
    assert names == {
        "parameters.csv",
        *(f"pretraining-{operator}-tiny.csv" for operator in ("original", "shared")),
        *(
            f"{stage}-courtois2024-{operator}-tiny.csv"
            for stage in ("finetuning", "noise", "cross_domain")
            for operator in ("original", "shared")
        ),
        *(f"question_answering-{operator}-tiny.csv" for operator in ("original", "shared")),
        *(f"convergence-{operator}-tiny.csv" for operator in ("original", "shared")),
        "timing.csv",
    }
    assert "laptop" in (finished / "reports/report.html").read_text()


def test_a_second_repro_runs_nothing(finished):
    assert stages_run(run(finished, "dvc", "repro")) == set()


def test_metrics_plots_and_params_say_something(finished):
    metrics = run(finished, "dvc", "metrics", "show")
    assert "original" in metrics and "shared" in metrics
    run(finished, "dvc", "plots", "show", "--out", "plots")
    page = (finished / "plots/index.html").read_text()
    assert "pretraining_loss" in page and "glue" in page


def test_two_runs_give_the_same_bytes_of_observations(finished, tmp_path):
    again = clone(tmp_path)
    run(again, "dvc", "repro", "analysis")
    assert without_times(observations(again)) == without_times(observations(finished))
    for name in ("cells.csv", "comparisons.csv"):
        assert (again / "data/analysis" / name).read_bytes() == (finished / "data/analysis" / name).read_bytes()


def test_a_new_fine_tuning_rate_reruns_fine_tuning_and_what_follows_from_it_alone(finished):
    change(finished, lambda params: params["finetuning"]["courtois2024"].update(learning_rates=[5.0e-4]))
    rerun = {
        "finetuning",
        "convergence",
        "noise",
        "cross_domain",
        "analysis",
        "report",
    }  # and what tests the fine-tuned models
    assert stages_run(run(finished, "dvc", "repro")) == rerun


def test_a_new_template_reruns_the_report_alone(finished):
    template = finished / "reports/templates/report.html"
    template.write_text(template.read_text() + "\n")
    assert stages_run(run(finished, "dvc", "repro")) == {"report"}


def test_a_new_operator_trains_that_operator_alone(finished):
    change(finished, lambda params: params["operators"].append("symmetric"))
    output = run(finished, "dvc", "repro")
    trained = {line.split("'")[1] for line in output.splitlines() if line.startswith("Running stage")}
    assert trained == {
        "pretraining@symmetric-tiny",
        *(f"{stage}@courtois2024-symmetric-tiny" for stage in ("finetuning", "noise", "cross_domain")),
        *(f"{stage}@symmetric-tiny" for stage in ("convergence", "question_answering")),
        "timing",  # which times all operators in turn
        "analysis",
        "report",
    }


def test_a_typo_in_params_stops_with_one_clear_error(tmp_path):
    folder = clone(tmp_path)
    change(folder, lambda params: params["corpus"].update(shrads=3))
    done = subprocess.run([sys.executable, "-m", "stages.corpus"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 1
    assert "corpus.shrads: unknown key (given: 3)" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_tiny_model_learns_every_embedded_task_better_than_the_majority_class(tmp_path):
    folder = clone(tmp_path, learn)
    run(folder, "dvc", "repro", "finetuning", "question_answering")
    scores = pd.read_csv(folder / "data/observations/finetuning-courtois2024-original-tiny.csv")
    scores = scores.set_index(["evaluated_on", "metric"])["value"]
    prior = pd.read_csv(folder / "data/tasks/statistics.csv").query("split != 'train'")
    answers = pd.read_csv(folder / "data/observations/question_answering-original-tiny.csv")
    answers = answers.set_index(["task", "metric"])["value"]
    assert answers["squad1", "exact_match"] > 0.5  # the most frequent answer that the passage has: 0.24
    nothing = prior.set_index("task").loc["squad2", "majority_share"]  # are the questions without an answer
    assert answers["squad2", "exact_match"] > nothing + 0.05
    for row in prior[~prior["task"].isin(("squad1", "squad2", "triviaqa"))].itertuples():
        evaluated_on = {"validation_matched": "mnli_m", "validation_mismatched": "mnli_mm"}.get(row.split, row.task)
        if row.task == "cola":
            assert scores[evaluated_on, "matthews_correlation"] > 0.2
        elif row.task == "stsb":
            assert scores[evaluated_on, "pearson"] > 0.3
        else:
            assert scores[evaluated_on, "accuracy"] > row.majority_share + 0.02, evaluated_on
