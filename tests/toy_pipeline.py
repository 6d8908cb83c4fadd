"""Repositories of a tiny run, in which tests call `dvc repro`."""

import os
import re
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml

from tests.toy import OWN

ROOT = Path(__file__).parents[1]
ENVIRONMENT = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
OWN_OPERATOR = "plain_queries"


def run(folder: Path, *command: str) -> str:
    """Runs a command in a folder, and returns the output."""
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


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
    run(folder, "git", "init", "--quiet")
    commit(folder)
    return folder


def commit(folder: Path) -> None:
    run(folder, "git", "add", "--all")
    run(folder, "git", "-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "--message", "tiny")


def shrink(params: dict) -> None:
    """Makes every stage of a run as small as it can be, with an operator of a user's own."""
    params["operators"] = ["original", OWN_OPERATOR]
    params["corpus"] |= {"documents": 300, "shards": 2}
    params["tokenization"] |= {"validation_documents": 20}
    params["tasks"] |= {"names": ["stsb", "mnli", "qnli"], "train_examples": 64, "validation_examples": 32}
    params["tasks"]["questions"] |= {"train_examples": 32, "validation_examples": 16}
    params["question_answering"] |= {"seeds": [1], "epochs": 1, "tasks": ["squad1", "squad1_triviaqa"]}
    params["noise"] |= {"tasks": ["mnli"], "levels": [0.0, 0.4], "seeds": [1]}
    params["cross_domain"]["tasks"] = ["mnli", "qnli"]
    params["models"]["tiny"] |= {"layers": 1, "hidden": 16, "heads": 4, "intermediate": 64}
    params["pretraining"] |= {"seeds": [1, 2], "steps": 12, "warmup_steps": 2, "batch_size": 8}
    params["pretraining"] |= {"evaluation_interval": 4, "checkpoint_interval": 5}
    params["finetuning"]["courtois2024"] |= {"seeds": [1], "epochs": 1}
    params["convergence"] |= {"steps": [6], "seeds": [1], "tasks": ["stsb"]}
    section = params["translation"]
    section["operators"] = ["original", "hadamard"]
    small = {"hidden": 16, "heads": 2, "seeds": [1], "operators": ["original", "hadamard"]}
    for protocol in section["protocols"].values():
        protocol |= small | {"train_pairs": 40, "held_out_pairs": 10, "epochs": 1, "warmup_steps": 2}
    section["sequence_tasks"] |= small | {"steps": 3, "warmup_steps": 1}
    params["timing"] |= {"tasks": ["stsb"], "repeats": 1, "steps": 1}


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
