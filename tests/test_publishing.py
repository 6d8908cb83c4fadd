"""The badge of the last execution, and the published pages: scripts that the workflows call, on toy repositories."""

import csv
import importlib
import io
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.places import ROOT
from tests.processes import run, run_git

README = """# Toy

```sh
false
```

## Run it

```sh
{}
```
"""
IN_ENVIRONMENT = "python -c 'import sys; assert sys.prefix != sys.base_prefix'"
GH = """#!/usr/bin/env bash
case "$1 $2" in
  "release list") [ "$TAG" != offline ] && echo "$TAG" ;;
  "release view") printf "%b" "$ASSETS" ;;
  "release download") cp "$ARCHIVE" "${@: -1}/remote.tar" ;;
esac
"""


def make_repository(folder: Path, *lines: str) -> Path:
    """Makes a repository whose README says to run these lines."""
    folder.mkdir()
    (folder / "README.md").write_text(README.format("\n".join(lines)))
    run_git(folder, "init", "--quiet")
    run_git(folder, "add", "--all")
    run_git(folder, "commit", "--quiet", "--message", "toy")
    return folder


def execute(repository: Path, folder: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, ROOT / ".ci/executed.py", repository, folder]
    return subprocess.run(command, capture_output=True, text=True)


def publish(repository: Path, folder: Path) -> None:
    run(repository, "python", str(ROOT / ".ci/badge.py"), str(folder), "origin")


def read_rows(text: str) -> list[dict]:
    return list(csv.DictReader(io.StringIO(text)))


def read_badge(text: str) -> str:
    """Reads the title of a badge, which is well-formed XML."""
    return ElementTree.fromstring(text)[0].text or ""


def test_the_commands_of_a_readme_run_in_a_fresh_clone_and_environment(tmp_path):
    lines = (f"{IN_ENVIRONMENT} && touch made    # sets up && runs", "test -e made  # tests")
    repository = make_repository(tmp_path / "toy", *lines)
    (repository / "made.txt").write_text("not in Git")
    result = execute(repository, tmp_path / "result")
    assert result.returncode == 0, result.stderr
    [row] = read_rows((tmp_path / "result/executed.csv").read_text())
    assert run_git(repository, "rev-parse", "HEAD").startswith(row["commit"])
    assert re.fullmatch(r"python \d+, touch \d+, test \d+", row["seconds"])
    assert row["outcome"] == "passed"
    title = read_badge((tmp_path / "result/executed.svg").read_text())
    assert title == f"executed: on {row['date']} in 0 min"
    assert not (repository / "made").exists()


def test_the_first_command_that_fails_ends_the_execution_and_reddens_the_badge(tmp_path):
    repository = make_repository(tmp_path / "toy", "true && bash -c 'exit 3'", f"touch {tmp_path / 'late'}")
    result = execute(repository, tmp_path / "result")
    assert result.returncode == 3
    assert not (tmp_path / "late").exists()
    [row] = read_rows((tmp_path / "result/executed.csv").read_text())
    assert row["outcome"] == "failed: bash -c 'exit 3'"
    picture = (tmp_path / "result/executed.svg").read_text()
    assert read_badge(picture) == f"executed: failed on {row['date']}"
    assert "#b3261e" in picture


def test_a_readme_without_the_commands_is_an_error_that_names_the_heading(tmp_path):
    repository = make_repository(tmp_path / "toy", "true")
    text = (repository / "README.md").read_text()
    (repository / "README.md").write_text(text.replace("Run it", "Start"))
    run_git(repository, "commit", "--quiet", "--all", "--message", "renamed")
    result = execute(repository, tmp_path / "result")
    assert result.returncode == 1
    assert "README.md: no code block ```sh below '## Run it'" in result.stderr
    assert not (tmp_path / "result").exists()


def test_the_readme_of_this_repository_has_commands_to_execute(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / ".ci")
    executed = importlib.import_module("executed")
    commands = executed.read_commands((ROOT / "README.md").read_text())
    assert "dvc repro" in commands
    assert commands[-1].startswith("pytest")


def test_a_branch_of_its_own_keeps_every_row_and_never_an_old_success(tmp_path):
    result = tmp_path / "result"
    result.mkdir()
    (result / "executed.csv").write_text("date,commit,minutes,outcome\n2026-01-02,abc,24.6,passed\n")
    repository = make_repository(tmp_path / "toy", "true")
    origin = tmp_path / "origin.git"
    run_git(tmp_path, "init", "--quiet", "--bare", str(origin))
    run_git(repository, "remote", "add", "origin", str(origin))
    publish(repository, result)
    assert read_badge(run_git(origin, "show", "badges:executed.svg")) == "executed: on 2026-01-02 in 25 min"
    # an execution that was stopped leaves no folder
    publish(repository, tmp_path / "missing")
    assert read_badge(run_git(origin, "show", "badges:executed.svg")).startswith("executed: failed on ")
    rows = read_rows(run_git(origin, "show", "badges:executed.csv"))
    assert [row["outcome"] for row in rows] == ["passed", "failed: the execution left no result"]
    assert run_git(origin, "ls-tree", "--name-only", "badges").split() == ["executed.csv", "executed.svg"]
    # the checkout is as it was
    assert run_git(repository, "status", "--porcelain") == ""
    assert run_git(repository, "branch", "--list", "badges") == ""


@pytest.fixture
def complete(tmp_path):
    """Completes toy pages with a fake GitHub whose newest release has a tag and assets."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "gh").write_text(GH)
    (programs / "gh").chmod(0o755)
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "index.html").write_text("findings")
    stored = tmp_path / "stored"
    stored.write_text("---\nkept as it is\n")
    stored.chmod(0o400)
    with tarfile.open(tmp_path / "remote.tar", "w") as archive:
        archive.add(stored, "files/md5/ab/cd")

    def run(tag: str, assets: str) -> subprocess.CompletedProcess:
        environment = os.environ | {"TAG": tag, "ASSETS": assets, "ARCHIVE": str(tmp_path / "remote.tar")}
        environment["PATH"] = f"{programs}:{environment['PATH']}"
        command = [ROOT / ".ci/site", pages, tmp_path / "site"]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    return run


def test_the_pages_hold_the_remote_of_the_newest_release(complete, tmp_path):
    result = complete("v1", "notes.txt\\nremote.tar\\n")
    assert result.returncode == 0, result.stderr
    stored = tmp_path / "site/remote/files/md5/ab/cd"
    assert stored.read_text() == "---\nkept as it is\n"
    assert stored.stat().st_mode & 0o044 == 0o044
    assert (tmp_path / "site/index.html").read_text() == "findings"


@pytest.mark.parametrize(("tag", "assets"), [("", ""), ("v1", ""), ("v1", "remote_tar\\nold-remote.tar\\n")])
def test_without_a_remote_in_the_newest_release_the_pages_are_published_with_a_notice(complete, tmp_path, tag, assets):
    result = complete(tag, assets)
    assert result.returncode == 0, result.stderr
    assert f"::notice::the newest release ({tag or 'none'}) has no remote.tar" in result.stdout
    assert [path.name for path in (tmp_path / "site").iterdir()] == ["index.html"]


def test_pages_are_not_published_where_releases_cannot_be_read(complete):
    assert complete("offline", "").returncode != 0
