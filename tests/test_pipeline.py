"""`dvc repro` from end to end on a tiny scale: what a finished clone holds, and what an edit or a kill leads to."""

import csv
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import yaml
from dvc.schema import COMPILED_LOCKFILE_SCHEMA
from huggingface_hub import ModelCard
from voluptuous import Invalid

from tests.toy_pipeline import (
    ENVIRONMENT,
    HOSTILE,
    NAMED,
    change,
    clone,
    commit,
    is_refused_before_any_stage,
    jobs_to_do,
    observations,
    run,
    stages_run,
)

KINDS = ("finetuning", "noise", "cross_domain", "convergence", "question_answering")
pytestmark = pytest.mark.pipeline


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
        *(f"{stage}.csv" for stage in KINDS),
        "translation.csv",
        "timing.csv",
    }
    assert "laptop" in (finished / "reports/report.html").read_text()


def test_a_second_repro_runs_nothing(finished):
    assert stages_run(run(finished, "dvc", "repro")) == set()


def test_every_card_is_valid_and_its_line_runs(finished):
    cards = [*finished.glob("data/*/*/**/README.md"), *finished.glob("reports/model_cards/*.md")]
    lines, folders = ["import fewer_attention.bert", "from transformers import pipeline"], set()
    for path in cards:
        data = ModelCard.load(path).data
        [(task, folder)] = re.findall(r'^model = pipeline\("(.+)", "(.+)"\)$', path.read_text(), re.MULTILINE)
        assert task == data.pipeline_tag
        results = [(one.dataset_config, one.metric_type) for one in data.eval_results or ()]
        assert len(results) == len(set(results))
        lines.append(f"pipeline({task!r}, {folder!r})('a [MASK]')")
        folders.add(folder)
    assert folders == {path.parent.relative_to(finished).as_posix() for path in cards if "reports" not in path.parts}
    (finished.parent / "fewer_attention").symlink_to(finished / "stages/attention")
    environment = ENVIRONMENT | {"PYTHONPATH": str(finished.parent)}
    subprocess.run([sys.executable, "-c", "\n".join(lines)], cwd=finished, env=environment, check=True)


def test_metrics_plots_and_params_say_something(finished):
    metrics = run(finished, "dvc", "metrics", "show")
    assert "original" in metrics and "shared" in metrics
    run(finished, "dvc", "plots", "show", "--out", "plots")
    page = (finished / "plots/index.html").read_text()
    assert "pretraining_loss" in page and "glue" in page


def pulled(finished: Path, folder: Path) -> Path:
    """A clone of a committed copy of `finished`, with what that has pushed to a remote."""
    first, second = folder / "first", folder / "second"
    shutil.copytree(finished, first)
    run(first, "dvc", "remote", "add", "--default", "store", str(folder / "store"))
    commit(first)
    run(first, "dvc", "push")
    run(folder, "git", "clone", "--quiet", str(first), str(second))
    run(second, "dvc", "pull")
    return second


def test_what_a_remote_hands_on_serves_experiments_that_keep_their_metrics(finished, tmp_path):
    folder = pulled(finished, tmp_path)
    assert stages_run(run(folder, "dvc", "repro")) == set()
    temporary = run(folder, "dvc", "exp", "run", "--temp", "-S", "operators=[original]", "-n", "fewer", "analysis")
    assert stages_run(temporary) == {*KINDS, "timing", "analysis"}
    assert not jobs_to_do(temporary)
    for name, edit in (("strict", "analysis.alpha=0.01"), ("wide", "analysis.confidence=0.99")):
        run(folder, "dvc", "exp", "run", "--queue", "-S", edit, "-n", name, "analysis")
    run(folder, "dvc", "exp", "run", "--run-all", "--jobs", "2")
    head, *rows = csv.reader(run(folder, "dvc", "exp", "show", "--only-changed", "--csv").splitlines())
    assert {"fewer", "strict", "wide"} < {row[0] for row in rows}
    assert {"analysis.alpha", "shared.tiny.validation_loss"} < set(head) and "corpus.seed" not in head
    assert "shared.tiny.validation_loss" in run(folder, "dvc", "metrics", "diff", "HEAD", "fewer")
    assert run(folder, "dvc", "metrics", "diff", "HEAD", "strict") == ""  # of the scores, none depends on it
    assert "original.tiny.validation_loss" in run(folder, "dvc", "metrics", "diff", "--all", "HEAD", "strict")
    assert "analysis.alpha" in run(folder, "dvc", "params", "diff", "HEAD", "strict")
    run(folder, "dvc", "plots", "diff", "HEAD", "fewer", "--out", "plots")
    assert '"rev": "fewer"' in (folder / "plots/index.html").read_text()


def test_an_operator_that_is_added_in_a_clone_that_pulled_computes_itself_alone(finished, tmp_path):
    """Twice: in a workspace beside the clone, and in the clone, where neither has anything but what DVC has brought."""
    folder = pulled(finished, tmp_path)
    of_one = ("-S", "operators=[original,shared,symmetric]", "analysis")
    expected = {  # seeds of pre-training x seeds x tasks of one operator, as `shrink` has them
        "pretraining": 2, "finetuning": 2 * 2 * 4, "convergence": 2 * 2, "noise": 2 * 2 * 2, "cross_domain": 2 * 2 * 2,
        "question_answering": 2 * 2 * (1 + 4),
    }  # fmt: skip
    assert jobs_to_do(run(folder, "dvc", "exp", "run", "--temp", *of_one)) == expected
    assert not (folder / "data/jobs").exists()
    assert jobs_to_do(run(folder, "dvc", "exp", "run", *of_one)) == expected
    whole = undisturbed(finished)
    for name, content in observations(folder).items():
        assert name == "timing.csv" or name not in whole or set(whole[name].splitlines()) <= set(content.splitlines())


def test_two_runs_give_the_same_bytes_of_observations(finished, tmp_path):
    again = clone(tmp_path)
    run(again, "dvc", "repro", "analysis")
    assert without_times(observations(again)) == without_times(undisturbed(finished))
    for name in ("cells.csv", "contrasts.csv"):
        assert (again / "data/analysis" / name).read_bytes() == (
            finished.parent / "undisturbed/analysis" / name
        ).read_bytes()


def test_a_new_fine_tuning_rate_reruns_fine_tuning_and_what_follows_from_it_alone(finished):
    change(finished, lambda params: params["finetuning"]["courtois2024"].update(learning_rates=[5.0e-4]))
    tests_of_it = {"noise", "cross_domain", "convergence"}
    assert stages_run(run(finished, "dvc", "repro")) == {"finetuning", *tests_of_it, "analysis", "report"}


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
    """Two workers on a machine that lets each take two threads; DVC, stages and workers die at random.

    A run that ends before it was killed often enough is followed by another, from nothing.
    """
    environment = ENVIRONMENT | {"OMP_NUM_THREADS": "2"}
    chance, kills, targets = random.Random(1), 0, ("pretraining", "finetuning", "noise")
    while kills < KILLS:
        folder = clone(tmp_path / f"killed-{kills}")
        change(folder, lambda params: params.update(workers=2))
        while True:
            process = subprocess.Popen(["dvc", "repro", *targets], cwd=folder, env=environment, start_new_session=True)
            if kills == KILLS or not kill_at_random(process, folder, chance):
                break
            kills += 1
            mend_files_of_dvc(folder)
        assert process.wait() == 0
        rows, whole = observations(folder), undisturbed(finished)
        assert {name: whole[name] for name in rows} == rows
        assert {name.split("-")[0].removesuffix(".csv") for name in rows} >= set(targets)
        assert not list((folder / "data").glob(".*"))


@pytest.mark.parametrize(
    ("key", "name"), [(key, HOSTILE[0]) for key in NAMED] + [("operators", name) for name in HOSTILE[1:]]
)
def test_a_hostile_name_is_refused_before_any_stage_of_a_finished_clone(key, name, finished):
    assert is_refused_before_any_stage(finished, key, name)


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
        *KINDS,
        "timing",  # which times all operators in turn
        "analysis",
        "report",
    }
