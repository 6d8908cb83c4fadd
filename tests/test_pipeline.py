"""`dvc repro` from end to end on a tiny scale, in a temporary clone."""

import csv
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import psutil
import pytest
import yaml
from dvc.schema import COMPILED_LOCKFILE_SCHEMA
from voluptuous import Invalid

from stages.common.evidence import baselines, scores
from tests.toy import OWN

ROOT = Path(__file__).parents[1]
ABOVE_CHANCE, ABOVE_WORDS = 3, 1  # tasks of eight, at least
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
    commit(folder)
    return folder


def commit(folder: Path) -> None:
    run(folder, "git", "add", "--all")
    run(folder, "git", "-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "--message", "tiny")


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
    shrink_translation(params["translation"])
    params["timing"] |= {"tasks": ["sst2"], "repeats": 1, "steps": 1}


def shrink_translation(section: dict) -> None:
    section["operators"] = ["original", "hadamard"]
    small = {"hidden": 16, "heads": 2, "seeds": [1], "operators": ["original", "hadamard"]}
    for protocol in section["protocols"].values():
        protocol |= small | {"train_pairs": 40, "held_out_pairs": 10, "epochs": 1, "warmup_steps": 2}
    section["sequence_tasks"] |= small | {"steps": 3, "warmup_steps": 1}


def learn(params: dict) -> None:
    """The laptop scale with one operator and one seed of each kind."""
    params["operators"] = ["original"]
    params["pretraining"]["seeds"] = [1]
    params["finetuning"]["courtois2024"]["seeds"] = [2]
    params["question_answering"]["tasks"] = ["squad1", "squad2"]


def learn_from_scratch(params: dict) -> None:
    """The same without pre-training, on the task of acceptability alone."""
    learn(params)
    params["pretraining"] |= {"steps": 2, "warmup_steps": 1, "learning_rate": 1.0e-9}
    params["convergence"]["steps"] = [2]
    params["noise"]["tasks"] = params["timing"]["tasks"] = params["convergence"]["tasks"] = ["cola"]
    params["cross_domain"] |= {"tasks": ["cola"], "positive_labels": {"cola": ["1"]}}
    params["tasks"]["names"] = ["cola"]


def scored(folder: Path, *stages: str) -> pd.DataFrame:
    """Scores of the stages beside those of the baselines."""
    frames = [read(folder / f"data/observations/{stage}-original-tiny.csv") for stage in stages]
    baseline = baselines.references(read(folder / "data/observations/baselines.csv"), 0.95)
    rows = pd.concat(frames)
    columns = scores.column_scores(rows)
    answers = rows[rows["stage"] == "question_answering"]
    return baselines.beside(pd.concat([columns, answers]), baselines.known(baseline)).set_index("evaluated_on")


def read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype={"protocol": "str", "condition": "str"})


def change(folder: Path, edit) -> None:
    path = folder / "params.yaml"
    params = yaml.safe_load(path.read_text())
    edit(params)
    path.write_text(yaml.safe_dump(params, sort_keys=False))


def stages_run(output: str) -> set[str]:
    """The stages that ran, beside the check of params.yaml, which every edit of it brings."""
    return {line.split("'")[1].split("@")[0] for line in output.splitlines() if line.startswith("Running stage")} - {
        "settings"
    }


def observations(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "data/observations").iterdir()}


def undisturbed(finished: Path) -> dict[str, bytes]:
    """The observations that `finished` had before any test changed its parameters."""
    return {path.name: path.read_bytes() for path in (finished.parent / "undisturbed/observations").iterdir()}


def without_times(rows: dict[str, bytes]) -> dict[str, bytes]:
    return {name: content for name, content in rows.items() if name != "timing.csv"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = clone(tmp_path_factory.mktemp("finished") / "clone")
    run(folder, "dvc", "repro")
    for name in ("observations", "analysis"):
        shutil.copytree(folder / "data" / name, folder.parent / "undisturbed" / name)
    return folder


def test_every_output_is_there(finished):
    stages = yaml.safe_load((finished / "dvc.lock").read_text())["stages"]
    for stage in stages.values():
        for output in stage["outs"]:
            assert (finished / output["path"]).exists()
    names = set(observations(finished))
    assert names == {
        "parameters.csv",
        "baselines.csv",
        *(f"pretraining-{operator}-tiny.csv" for operator in ("original", "shared")),
        *(
            f"{stage}-courtois2024-{operator}-tiny.csv"
            for stage in ("finetuning", "noise", "cross_domain")
            for operator in ("original", "shared")
        ),
        *(f"question_answering-{operator}-tiny.csv" for operator in ("original", "shared")),
        *(f"convergence-{operator}-tiny.csv" for operator in ("original", "shared")),
        *(f"translation-{operator}.csv" for operator in ("original", "hadamard")),
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


def test_what_a_remote_hands_on_serves_experiments_that_keep_their_metrics(finished, tmp_path):
    first, folder = tmp_path / "first", tmp_path / "second"
    shutil.copytree(finished, first)
    run(first, "dvc", "remote", "add", "--default", "store", str(tmp_path / "store"))
    commit(first)
    run(first, "dvc", "push")
    run(tmp_path, "git", "clone", "--quiet", str(first), str(folder))
    run(folder, "dvc", "pull")
    assert stages_run(run(folder, "dvc", "repro")) == set()
    temporary = run(folder, "dvc", "exp", "run", "--temp", "-S", "operators=[original]", "-n", "fewer", "analysis")
    assert stages_run(temporary) == {"timing", "analysis"}
    for name, change in (("strict", "analysis.alpha=0.01"), ("wide", "analysis.confidence=0.99")):
        run(folder, "dvc", "exp", "run", "--queue", "-S", change, "-n", name, "analysis")
    run(folder, "dvc", "exp", "run", "--run-all", "--jobs", "2")
    head, *rows = csv.reader(run(folder, "dvc", "exp", "show", "--only-changed", "--csv").splitlines())
    assert {"fewer", "strict", "wide"} < {row[0] for row in rows}
    assert {"analysis.alpha", "shared.tiny.validation_loss"} < set(head) and "analysis.seed" not in head
    assert "shared.tiny.validation_loss" in run(folder, "dvc", "metrics", "diff", "HEAD", "fewer")
    assert run(folder, "dvc", "metrics", "diff", "HEAD", "strict") == ""  # of the scores, none depends on it
    assert "original.tiny.validation_loss" in run(folder, "dvc", "metrics", "diff", "--all", "HEAD", "strict")
    assert "analysis.alpha" in run(folder, "dvc", "params", "diff", "HEAD", "strict")
    run(folder, "dvc", "plots", "diff", "HEAD", "fewer", "--out", "plots")
    assert '"rev": "fewer"' in (folder / "plots/index.html").read_text()


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


def test_two_runs_give_the_same_bytes_of_observations(finished, tmp_path):
    again = clone(tmp_path)
    run(again, "dvc", "repro", "analysis")
    assert without_times(observations(again)) == without_times(undisturbed(finished))
    for name in ("cells.csv", "comparisons.csv"):
        assert (again / "data/analysis" / name).read_bytes() == (
            finished.parent / "undisturbed/analysis" / name
        ).read_bytes()


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


KILLS = 10


def kill_at_random(process: subprocess.Popen, folder: Path, chance: random.Random) -> bool:
    """Kills all of a run, its stage or a worker, some results later; False where the run ended before."""
    before, wanted, kind = results(folder), chance.randint(0, 2), chance.choice(("all", "stage", "worker"))
    while results(folder) < before + wanted and process.poll() is None:
        time.sleep(0.02)
    while process.poll() is None:
        time.sleep(chance.uniform(0, 2))
        try:
            below = psutil.Process(process.pid).children(recursive=True)
            stages = [child for child in below if "stages" in child.cmdline()]
            if kind == "all":
                os.killpg(process.pid, signal.SIGKILL)
            elif stages:
                chance.choice(stages if kind == "stage" else stages[-1].children(recursive=True) or stages).kill()
            else:
                continue
        except (psutil.NoSuchProcess, ProcessLookupError):
            continue
        process.wait()
        return True
    return False


def results(folder: Path) -> int:
    return sum(1 for _ in folder.glob("data/jobs/*/*/result.json"))


def mend_files_of_dvc(folder: Path) -> None:
    """Deletes what DVC itself was killed while writing, as the README says."""
    (folder / ".dvc/tmp/rwlock").unlink(missing_ok=True)
    lock = folder / "dvc.lock"
    try:
        COMPILED_LOCKFILE_SCHEMA(yaml.safe_load(lock.read_text()))
    except (yaml.YAMLError, Invalid):
        lock.unlink()
    except FileNotFoundError:
        pass


def test_a_run_that_is_killed_again_and_again_gives_the_observations_of_one_that_is_not(finished, tmp_path):
    """Two workers on a machine that lets each take two threads; DVC, stages and workers die at random."""
    folder = clone(tmp_path / "killed")
    change(folder, lambda params: params.update(workers=2))
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "2"}
    chance, kills, targets = random.Random(1), 0, ("pretraining", "finetuning", "noise")
    while True:
        process = subprocess.Popen(["dvc", "repro", *targets], cwd=folder, env=environment, start_new_session=True)
        if kills == KILLS or not kill_at_random(process, folder, chance):
            break
        kills += 1
        mend_files_of_dvc(folder)
    assert process.wait() == 0
    assert kills == KILLS
    rows, whole = observations(folder), undisturbed(finished)
    assert {name: whole[name] for name in rows} == rows
    assert {name.split("-")[0] for name in rows} >= set(targets)
    assert not list((folder / "data").glob(".*"))


HOSTILE = ("shared; touch pwned; echo", "$(touch pwned)", "`touch pwned`", "' & touch pwned & '", "../../pwned", "a b")
NAMES = (
    "operators",
    "sizes",
    "protocols",
    "translation.operators",
)  # of which dvc.yaml makes names of stages and paths


def extend(params: dict, key: str, name: str) -> None:
    *sections, last = key.split(".")
    for section in sections:
        params = params[section]
    params[last] = [*params[last], name]


def is_refused_before_any_stage(folder: Path, key: str, name: str) -> bool:
    before = (folder / "params.yaml").read_text()
    change(folder, lambda params: extend(params, key, name))
    command = [str(Path(sys.executable).with_name("dvc")), "repro"]
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    (folder / "params.yaml").write_text(before)
    said = done.stdout + done.stderr
    return done.returncode != 0 and not stages_run(said) and not list(folder.parent.rglob("*pwned*"))


@pytest.mark.parametrize(
    ("key", "name"), [(key, HOSTILE[0]) for key in NAMES] + [("operators", name) for name in HOSTILE[1:]]
)
def test_a_hostile_name_is_refused_before_any_stage_of_a_finished_clone(key, name, finished):
    assert is_refused_before_any_stage(finished, key, name)


def test_a_hostile_name_is_refused_before_any_stage_of_a_fresh_clone(tmp_path):
    folder = clone(tmp_path / "clone")
    for key in NAMES:
        assert is_refused_before_any_stage(folder, key, HOSTILE[0])


def test_a_hostile_stage_that_is_run_alone_executes_no_part_of_its_name(tmp_path):
    folder = clone(tmp_path / "clone")
    change(folder, lambda params: params["operators"].append(HOSTILE[0]))
    for target in ("settings", f"pretraining@{HOSTILE[0]}-tiny"):
        command = [str(Path(sys.executable).with_name("dvc")), "repro", "--single-item", "--force", target]
        assert subprocess.run(command, cwd=folder, capture_output=True, text=True).returncode
    assert not list(tmp_path.rglob("*pwned*"))


def test_a_new_template_reruns_the_report_alone(finished):
    template = finished / "reports/templates/report.html"
    template.write_text(template.read_text() + "\n")
    assert stages_run(run(finished, "dvc", "repro")) == {"report"}


def test_a_new_operator_trains_that_operator_alone(finished):
    change(finished, lambda params: params["operators"].append("symmetric"))
    output = run(finished, "dvc", "repro")
    trained = {line.split("'")[1] for line in output.splitlines() if line.startswith("Running stage")}
    assert trained - {"settings"} == {
        "pretraining@symmetric-tiny",
        *(f"{stage}@courtois2024-symmetric-tiny" for stage in ("finetuning", "noise", "cross_domain")),
        *(f"{stage}@symmetric-tiny" for stage in ("convergence", "question_answering")),
        "timing",  # which times all operators in turn
        "analysis",
        "report",
    }


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
    assert scratch.loc["cola", "value"] < glue.loc["cola", "value"] - 0.1  # order of words is what pre-training teaches
