"""Repositories of a tiny run, in which tests call `dvc repro`."""

import re
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml

from tests.places import ROOT
from tests.processes import run, run_git
from tests.toy import OWN

OWN_OPERATOR = "plain_queries"
# a tiny run, as its differences from scale laptop
TINY = """
operators: [original, plain_queries]
corpus: {documents: 300, shards: 2}
tokenization: {validation_documents: 20}
tasks:
  names: [stsb, mnli, qnli]
  train_examples: 64
  validation_examples: 32
  questions: {train_examples: 32, validation_examples: 16}
question_answering: {seeds: [1], epochs: 1, tasks: [squad1, squad1_triviaqa]}
noise: {tasks: [mnli], levels: [0.0, 0.4], seeds: [1]}
cross_domain: {tasks: [mnli, qnli]}
models:
  tiny: {layers: 1, hidden: 16, heads: 4, intermediate: 64}
pretraining: {seeds: [1, 2], steps: 12, warmup_steps: 2, batch_size: 8, evaluation_interval: 4, checkpoint_interval: 5}
finetuning:
  courtois2024: {seeds: [1], epochs: 1}
convergence: {steps: [6], seeds: [1], tasks: [stsb]}
translation:
  operators: [original, hadamard]
  protocols:
    blog: &small
      hidden: 16
      heads: 2
      seeds: [1]
      operators: [original, hadamard]
      train_pairs: 40
      held_out_pairs: 10
      epochs: 1
      warmup_steps: 2
    draft: *small
  sequence_tasks: {hidden: 16, heads: 2, seeds: [1], operators: [original, hadamard], steps: 3, warmup_steps: 1}
timing: {tasks: [stsb], repeats: 1, steps: 1}
"""


def clone(folder: Path, edit: Callable[[dict], None] | None = None) -> Path:
    """A repository of the files that Git tracks or would track, with the parameters of a tiny run, or of `edit`."""
    names = run(ROOT, "git", "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    for name in names:
        if (ROOT / name).is_file() and name != "dvc.lock" and not name.startswith("reports/examples/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    shutil.copyfile(ROOT / "stages/scales/laptop.yaml", folder / "params.yaml")
    (folder / "my_operators.py").write_text(OWN)
    change(folder, edit or shrink)
    run_git(folder, "init", "--quiet")
    commit(folder)
    return folder


def commit(folder: Path) -> None:
    run_git(folder, "add", "--all")
    run_git(folder, "commit", "--quiet", "--message", "tiny")


def shrink(params: dict) -> None:
    """Makes every stage of a run as small as it can be, with an operator of a user's own."""
    merge(params, yaml.safe_load(TINY))


def merge(params: dict, changes: dict) -> None:
    """Puts changes into nested parameters, key by key."""
    for key, value in changes.items():
        if isinstance(value, dict):
            merge(params[key], value)
        else:
            params[key] = value


def change(folder: Path, edit: Callable[[dict], None]) -> None:
    """Edits params.yaml."""
    path = folder / "params.yaml"
    params = yaml.safe_load(path.read_text())
    edit(params)
    path.write_text(yaml.safe_dump(params, sort_keys=False))


def list_stages_run(output: str) -> set[str]:
    """The stages that ran, without the check of params.yaml, which every edit of this file starts."""
    return set(re.findall(r"^Running stage '(\w+)'", output, re.MULTILINE)) - {"settings"}


def count_new_jobs(output: str) -> dict[str, int]:
    """The number of jobs of each stage that were not done before: {"pretraining": 2}."""
    counts = Counter()
    for stage, jobs, done in re.findall(r"^(\w+): (\d+) jobs?, (\d+) of them done before", output, re.MULTILINE):
        counts[stage] += int(jobs) - int(done)
    return dict(+counts)


def read_observations(folder: Path) -> dict[str, bytes]:
    """The files of observations by name, without those of stage `timing`."""
    paths = (folder / "data/observations").iterdir()
    return {path.name: path.read_bytes() for path in paths if path.name != "timing.csv"}


@contextmanager
def serve(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Serves a folder over HTTP on this machine. Gives the address, and a list to which every request is added."""
    requests = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, form: str, *values) -> None:
            requests.append(form % values)

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", requests
        server.shutdown()
