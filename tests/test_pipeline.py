"""`dvc repro` from end to end on a tiny scale: a finished clone, an added operator, and stages that were killed."""

import random
import re
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pandas as pd
import psutil
import pytest
import yaml
from huggingface_hub import ModelCard

from tests.processes import ENVIRONMENT, run
from tests.toy_pipeline import (
    OWN_OPERATOR,
    change,
    clone,
    commit,
    count_new_jobs,
    list_stages_run,
    read_observations,
    serve,
)

KINDS = ("finetuning", "noise", "cross_domain", "convergence", "question_answering")
pytestmark = pytest.mark.pipeline


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A clone in which the whole pipeline has run; no test changes its files."""
    folder = clone(tmp_path_factory.mktemp("finished") / "clone")
    run(folder, "dvc", "repro")
    commit(folder)
    return folder


def test_a_finished_clone_has_every_output_and_runs_nothing_again(finished):
    for stage in yaml.safe_load((finished / "dvc.lock").read_text())["stages"].values():
        for output in stage["outs"]:
            assert (finished / output["path"]).exists()
    names = ("parameters", "baselines", "pretraining", *KINDS, "translation")
    assert set(read_observations(finished)) == {f"{name}.csv" for name in names}
    assert list_stages_run(run(finished, "dvc", "repro")) == set()


def test_an_experiment_is_refused_before_its_first_stage_if_outputs_are_missing(finished, tmp_path):
    """At the end of an experiment, DVC would look for them in the remote."""
    run(tmp_path, "git", "clone", "--quiet", str(finished), "clone")
    command = ["dvc", "exp", "run", "-S", "pretraining.initializer_range=0.03", "parameters"]
    done = subprocess.run(command, cwd=tmp_path / "clone", env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode and "parameters: stage" not in done.stdout
    assert "more outputs are missing, but with an experiment DVC saves all; run `git checkout" in done.stderr


def test_an_operator_of_a_user_is_trained_counted_timed_and_reported(finished):
    rows = pd.concat([pd.read_csv(path) for path in (finished / "data/observations").iterdir()])
    stages = set(rows[rows["operator"] == OWN_OPERATOR]["stage"])
    assert stages >= {"parameters", "pretraining", *KINDS, "timing"}
    assert "plain queries" in (finished / "reports/report.html").read_text()
    assert "an idea of mine" in (finished / f"reports/model_cards/{OWN_OPERATOR}-tiny.md").read_text()


def test_the_record_of_every_stage_with_jobs_has_their_seconds(finished):
    for name in ("filtering", "tokenization", "pretraining", *KINDS, "translation"):
        record = yaml.safe_load((finished / f"data/runs/{name}.json").read_text())
        assert record["stage"] == name and record["seconds_of_jobs"] >= 0


def test_every_card_is_valid_and_its_line_runs(finished):
    cards = [*finished.glob("data/*/*/**/README.md"), *finished.glob("reports/model_cards/*.md")]
    lines = ["import fewer_attention", "from transformers import pipeline"]
    for path in cards:
        text = path.read_text()
        data = ModelCard.load(path).data
        [(task, folder)] = re.findall(r'^model = pipeline\("(.+)", "(.+)"\)$', text, re.MULTILINE)
        assert task == data.pipeline_tag
        assert (finished / folder / "model.safetensors").exists()
        results = [(result.dataset_config, result.metric_type) for result in data.eval_results or ()]
        assert len(results) == len(set(results))
        # the code of a user's operator needs a checkout
        if "import_own_operators" not in text:
            lines.append(f"pipeline({task!r}, {folder!r})('a [MASK]')")
    assert 2 < len(lines) < len(cards)
    (finished.parent / "fewer_attention").symlink_to(finished / "stages/attention")
    environment = ENVIRONMENT | {"PYTHONPATH": str(finished.parent)}
    subprocess.run([sys.executable, "-c", "\n".join(lines)], cwd=finished, env=environment, check=True)


def test_a_clone_that_pulled_runs_only_what_an_edit_needs(finished, tmp_path):
    folder, remote = tmp_path / "clone", tmp_path / "remote"
    # pushed to a folder, as the maintainers do, and pulled over HTTP
    run(finished, "dvc", "remote", "add", "--local", "staging", str(remote))
    run(finished, "dvc", "push", "--remote", "staging")
    run(tmp_path, "git", "clone", "--quiet", str(finished), str(folder))
    with serve(remote) as (address, requests):
        run(folder, "dvc", "remote", "modify", "--local", "published", "url", address)
        run(folder, "dvc", "pull")
        assert requests
        requests.clear()
        run(folder, "dvc", "status")
        assert list_stages_run(run(folder, "dvc", "repro")) == set()
        change(folder, lambda params: params["report"].update(data="data as pulled"))
        assert list_stages_run(run(folder, "dvc", "repro")) == {"report"}
        assert not requests
    assert "data as pulled" in (folder / "reports/report.html").read_text()
    # an added operator
    edit = f"operators=[original,{OWN_OPERATOR},symmetric]"
    output = run(folder, "dvc", "exp", "run", "-S", edit, "-n", "more", "analysis")
    assert list_stages_run(output) == {"parameters", "pretraining", *KINDS, "timing", "analysis"}
    # two seeds of pre-training, by the tasks of `shrink`
    expected = {"pretraining": 2, "finetuning": 6, "noise": 2, "cross_domain": 4, "convergence": 2}
    expected["question_answering"] = 6
    assert count_new_jobs(output) == expected
    # as stage `settings` said before
    announced = re.findall(r"^(\w+): ([1-9]\d*) new of", output, re.MULTILINE)
    assert {stage: int(new) for stage, new in announced} == expected
    for name, before in read_observations(finished).items():
        assert set(before.splitlines()) <= set((folder / "data/observations" / name).read_bytes().splitlines())
    assert "symmetric.tiny.validation_loss" in run(folder, "dvc", "metrics", "diff", "HEAD", "more")
    run(folder, "dvc", "plots", "diff", "HEAD", "more", "--out", "plots")
    page = (folder / "plots/index.html").read_text()
    assert '"rev": "more"' in page and "pretraining_loss" in page and "glue" in page


def kill_at_random(process: subprocess.Popen, folder: Path, chance: random.Random) -> None:
    """Kills some workers of a stage, and then the stage, at a random moment after the start of the first job."""
    while not list(folder.glob("data/jobs/*/*")):
        time.sleep(0.02)
    time.sleep(chance.uniform(0, 3))
    # a stage that has ended already was too fast to be killed
    with suppress(psutil.NoSuchProcess):
        below = psutil.Process(process.pid).children(recursive=True)
        workers = chance.sample(below, chance.randint(0, len(below)))
        for victim in (*workers, process):
            victim.kill()
    process.wait()


def test_a_stage_that_was_killed_gives_the_bytes_of_a_stage_that_was_not(finished, tmp_path):
    folder = tmp_path / "clone"
    shutil.copytree(finished, folder)
    for path in ("data/jobs", "data/results/pretraining"):
        shutil.rmtree(folder / path)
    (folder / "data/observations/pretraining.csv").unlink()
    # a machine that lets each worker take two threads
    environment = ENVIRONMENT | {"OMP_NUM_THREADS": "2"}
    command = [sys.executable, "-m", "stages", "pretraining"]
    chance = random.Random(1)
    for _ in range(2):
        kill_at_random(subprocess.Popen(command, cwd=folder, env=environment), folder, chance)
    subprocess.run(command, cwd=folder, env=environment, check=True)
    assert read_observations(folder) == read_observations(finished)
    assert not list((folder / "data").glob(".*"))
