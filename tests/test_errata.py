"""ERRATA.md: every quotation and every date follow from the history of the repository."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FIRST_COMMIT = "97a795f2888d6ae12b6f7ace0303967e4fcb3052"
COMMIT = r"`([0-9a-f]{7,})`, (\d{4}-\d\d-\d\d)"


def run_git(*words: str) -> str:
    command = ["git", "--no-optional-locks", *words]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, encoding="utf-8").stdout


def join_lines(text: str) -> str:
    return " ".join(text.split())


def read_entries() -> list[str]:
    listed, _, _ = (ROOT / "ERRATA.md").read_text(encoding="utf-8").partition("\n\nTo report a mistake")
    return [join_lines(entry) for entry in listed.split("\n- ")[1:]]


def parse_entry(entry: str) -> tuple[str, str, str, str]:
    """Returns the quotation, the file, the commit with the error, and the commit with the correction."""
    published = re.match(rf"\*\*“(.+?)”\*\* .*?`([^`]+\.\w+)`, {COMMIT}", entry)
    corrected = re.search(f"Corrected: {COMMIT}", entry)
    assert published and corrected, entry
    return published[1], published[2], published[3], corrected[1]


def read_at(commit: str, path: str) -> str:
    """Returns the text of a file at a commit on a single line; empty if the commit lacks the file."""
    exists = run_git("ls-tree", "--name-only", commit, "--", path)
    return join_lines(run_git("show", f"{commit}:{path}")) if exists else ""


@pytest.fixture(scope="module")
def history():
    # a shallow clone, and an archive in a repository of another history, have other first commits
    command = ["git", "rev-list", "--max-parents=0", "HEAD"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if FIRST_COMMIT not in found.stdout:
        pytest.skip("the history is not here; in a shallow clone, `git fetch --unshallow` brings it")


def test_every_commit_has_the_date_that_the_page_gives(history):
    text = " ".join(read_entries())
    named = re.findall(COMMIT, text)
    assert len(named) == len(re.findall("`[0-9a-f]{7,}`", text))
    dates = {commit: run_git("log", "-1", "--format=%ad", "--date=short", commit).strip() for commit, _ in named}
    assert named == [(commit, dates[commit]) for commit, _ in named]


@pytest.mark.parametrize("entry", read_entries(), ids=lambda entry: entry[3:40])
def test_a_quotation_stood_in_its_file_when_published_and_is_gone_since_the_correction(entry, history):
    quotation, path, published, corrected = parse_entry(entry)
    assert quotation in read_at(published, path)
    assert quotation not in read_at(f"{published}^", path)
    for commit in (corrected, "HEAD"):
        assert quotation not in read_at(commit, path)


def test_the_newest_correction_comes_first(history):
    newest_first = run_git("rev-list", "HEAD").split()
    places = []
    for entry in read_entries():
        commit = run_git("rev-parse", parse_entry(entry)[3]).strip()
        places.append(newest_first.index(commit))
    assert places == sorted(places)
