"""`dvc repro` from end to end on a tiny scale: a finished clone, an added operator, and stages that were killed."""

import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import psutil
import pytest
import yaml
from huggingface_hub import ModelCard

from tests.toy_pipeline import (
    ENVIRONMENT,
    OWN_OPERATOR,
    change,
    clone,
    commit,
    count_new_jobs,
    list_stages_run,
    read_observations,
    run,
    serve,
)

KINDS = ("finetuning", "noise", "cross_domain", "convergence", "question_answering")
pytestmark = pytest.mark.pipeline


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A clone in which the whole pipeline has run; no test changes the clone."""
    folder = clone(tmp_path_factory.mktemp("finished") / "clone")
    run(folder, "dvc", "repro")
    return folder


@pytest.fixture(scope="module")
def published(finished, tmp_path_factory) -> Iterator[SimpleNamespace]:
    """The finished clone, committed in `folder`; its outputs, served at `address`; and all `requests` of the server.

    The outputs were pushed to a folder, as the maintainers do. No test changes the folders.
    """
    above = tmp_path_factory.mktemp("published")
    folder = above / "clone"
    shutil.copytree(finished, folder)
    commit(folder)
    run(folder, "dvc", "remote", "add", "--local", "staging", str(above / "remote"))
    run(folder, "dvc", "push", "--remote", "staging")
    with serve(above / "remote") as (address, requests):
        yield SimpleNamespace(folder=folder, address=address, requests=requests)


def pull(published: SimpleNamespace, folder: Path) -> Path:
    """A fresh clone that has pulled the outputs from the default remote, which is served on this machine."""
    run(folder.parent, "git", "clone", "--quiet", str(published.folder), str(folder))
    run(folder, "dvc", "remote", "modify", "--local", "published", "url", published.address)
    run(folder, "dvc", "pull")
    return folder


def test_a_finished_clone_has_every_output_and_runs_nothing_again(finished):
    for stage in yaml.safe_load((finished / "dvc.lock").read_text())["stages"].values():
        for output in stage["outs"]:
            assert (finished / output["path"]).exists()
    names = ("parameters", "baselines", "pretraining", *KINDS, "translation")
    assert set(read_observations(finished)) == {f"{name}.csv" for name in names}
    assert list_stages_run(run(finished, "dvc", "repro")) == set()


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


def test_a_clone_that_pulled_runs_nothing_and_after_a_new_remark_the_report_alone_without_a_request(
    published, tmp_path
):
    folder = pull(published, tmp_path / "clone")
    assert published.requests
    published.requests.clear()
    run(folder, "dvc", "status")
    assert list_stages_run(run(folder, "dvc", "repro")) == set()
    change(folder, lambda params: params["report"].update(remark="as it was pulled"))
    assert list_stages_run(run(folder, "dvc", "repro")) == {"report"}
    assert "as it was pulled" in (folder / "reports/report.html").read_text()
    assert not published.requests


def test_an_operator_that_is_added_in_a_clone_that_pulled_computes_only_its_own_jobs(finished, published, tmp_path):
    folder = pull(published, tmp_path / "clone")
    edit = f"operators=[original,{OWN_OPERATOR},symmetric]"
    output = run(folder, "dvc", "exp", "run", "-S", edit, "-n", "more", "analysis")
    assert list_stages_run(output) == {"pretraining", *KINDS, "timing", "analysis"}
    # two seeds of pre-training, by the tasks of `shrink`
    expected = {"pretraining": 2, "finetuning": 6, "noise": 2, "cross_domain": 4, "convergence": 2}
    assert count_new_jobs(output) == expected | {"question_answering": 6}
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


@pytest.mark.parametrize(("stage", "kills"), [("pretraining", 3), ("finetuning", 1)])
def test_a_stage_that_was_killed_gives_the_bytes_of_a_stage_that_was_not(stage, kills, finished, tmp_path):
    folder = tmp_path / "clone"
    shutil.copytree(finished, folder)
    for path in ("data/jobs", f"data/results/{stage}", f"data/observations/{stage}.csv"):
        path = folder / path
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    # a machine that lets each worker take two threads
    environment = ENVIRONMENT | {"OMP_NUM_THREADS": "2"}
    command = [sys.executable, "-m", "stages", stage]
    chance = random.Random(1)
    for _ in range(kills):
        kill_at_random(subprocess.Popen(command, cwd=folder, env=environment), folder, chance)
    subprocess.run(command, cwd=folder, env=environment, check=True)
    assert read_observations(folder) == read_observations(finished)
    assert not list((folder / "data").glob(".*"))
