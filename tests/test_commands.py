"""An error that a user can fix is one line on the command line; temporary files of a killed process are cleared."""

import errno
import fcntl
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from unittest.mock import Mock

import pytest

from stages.files import storage
from stages.files.storage import acquire_lock, compute_sha256, make_temporary_sibling, read_once, write_atomically
from stages.files.yaml_files import read_yaml
from stages.runner import pool, results
from stages.runner.errors import clear_errors
from stages.runner.provenance import describe_provenance
from tests.places import ROOT
from tests.processes import run_git

REFUSED = {
    "a key given twice": ("a: 1\nb:\n  c: 1\n  c: 2\n", "line 4: not YAML: key given twice, delete one: 'c'"),
    "an object": ("a: !!python/name:os.system\n", "line 1: not YAML: could not determine a constructor"),
    "a day that is none": ("a: !!timestamp 2001-99-99\n", "not YAML: month must be in"),
}


@pytest.mark.parametrize(("text", "said"), REFUSED.values(), ids=REFUSED)
def test_a_file_that_is_no_yaml_or_gives_a_key_twice_is_one_error_with_its_place(text, said, tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"params\.yaml.*{said}"):
        read_yaml(path)


def test_temporary_files_of_a_killed_process_are_cleared_by_the_next_writer_of_the_path_and_no_others(tmp_path):
    left, other = tmp_path / f".corpus.{'0' * 32}", tmp_path / f".tokens.{'0' * 32}"
    left.mkdir()
    (left / "part").write_text("half")
    other.write_text("half")
    with make_temporary_sibling(tmp_path / "corpus") as folder:
        folder.mkdir()
    write_atomically(tmp_path / "corpus2", "whole")
    assert {path.name for path in tmp_path.iterdir()} == {"corpus", "corpus2", other.name}


def test_an_output_that_must_not_be_written_is_named_whole_with_a_remedy_and_stays(tmp_path, monkeypatch):
    unlink = os.unlink

    def refused(path, **options):
        if Path(path).name == "part":
            raise PermissionError(errno.EACCES, "Permission denied", path)
        unlink(path, **options)

    output = tmp_path / "corpus"
    output.mkdir()
    (output / "part").write_text("whole")
    monkeypatch.setattr(os, "unlink", refused)
    with pytest.raises(SystemExit) as ended, clear_errors(), make_temporary_sibling(output) as folder:
        folder.mkdir()
    assert re.search(rf"^error: .*'{output}'; make the file and its folder writable", str(ended.value))
    assert [path.name for path in tmp_path.rglob("*")] == ["corpus", "part"]


def test_a_character_that_would_steer_a_terminal_is_escaped_in_every_error():
    with pytest.raises(SystemExit, match=r"^error: a\\x1b\[31m: unknown key\n\tund ähnliche\\u202e$"), clear_errors():
        raise ValueError("a\x1b[31m: unknown key\n\tund ähnliche\u202e")


def test_an_output_that_is_a_link_is_replaced_and_what_it_leads_to_stays(tmp_path):
    elsewhere, output = tmp_path / "elsewhere", tmp_path / "corpus"
    elsewhere.mkdir()
    (elsewhere / "part").write_text("whole")
    output.symlink_to(elsewhere)
    with make_temporary_sibling(output) as folder:
        folder.mkdir()
    assert not output.is_symlink() and not list(output.iterdir())
    assert (elsewhere / "part").read_text() == "whole"


WRITER = """
import sys
from pathlib import Path
from stages.files.storage import make_temporary_sibling

with make_temporary_sibling(Path("corpus")) as folder:
    sys.stdin.read()
    folder.mkdir()
    (folder / "part").write_text("second")
"""


def test_a_second_writer_of_a_path_waits_for_the_first_and_says_so(tmp_path):
    part = tmp_path / "corpus/part"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with make_temporary_sibling(tmp_path / "corpus") as folder:
        folder.mkdir()
        second = subprocess.Popen([sys.executable, "-c", WRITER], cwd=tmp_path, text=True, **pipes)
        assert second.stdout
        said = second.stdout.readline()
        assert said.startswith(".corpus.lock: another process holds this lock; waiting")
        (folder / "part").write_text("first")
    assert part.read_text() == "first"
    second.communicate("")
    assert part.read_text() == "second"
    assert [path.name for path in tmp_path.iterdir()] == ["corpus"]


def test_a_file_system_without_locks_is_named_with_the_path_and_a_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", Mock(side_effect=OSError(errno.ENOLCK, "No locks available")))
    with pytest.raises(OSError, match=rf"^{tmp_path}/.a.lock: the file system gives no lock \(No locks.*to a local"):
        write_atomically(tmp_path / "a", "whole")
    with pytest.raises(OSError, match=r"lock: the file system gives no lock"):
        acquire_lock(tmp_path / "lock", wait=False)


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS])
def test_a_file_system_that_cannot_protect_files_gets_a_warning_of_each_kind_and_the_files(
    number, tmp_path, monkeypatch, capsys
):
    refuse = Mock(side_effect=OSError(number, os.strerror(number)))
    monkeypatch.setattr(storage, "_warned", set())
    monkeypatch.setattr(os, "fsync", refuse)
    monkeypatch.setattr(Path, "chmod", refuse)
    for name in ("a", "b"):
        (tmp_path / name / "model").mkdir(parents=True)
        (tmp_path / name / "model/weights").write_text("whole")
        results.write(tmp_path / name, name, {}, {}, 1.0)
        assert (results.read(tmp_path / name) or {})["result"] == {}
    fsync, chmod = capsys.readouterr().err.splitlines()
    assert re.match(rf"warning: {tmp_path}/a/job.json: no fsync \({os.strerror(number)}\), so a crash", fsync)
    assert re.match(rf"warning: {tmp_path}/a/model/weights: cannot be made read-only", chmod)


REFUSED_WRITES = {
    "a full disk": (errno.ENOSPC, "; free some space"),
    "too large a file": (errno.EFBIG, "; raise the limit"),
    "a broken disk": (errno.EIO, ""),
}


@pytest.mark.parametrize(("number", "remedy"), REFUSED_WRITES.values(), ids=REFUSED_WRITES)
def test_a_refused_write_is_one_line_with_path_and_remedy(number, remedy, tmp_path):
    with pytest.raises(SystemExit) as ended, clear_errors(), make_temporary_sibling(tmp_path / "corpus"):
        raise OSError(number, os.strerror(number))
    said = f"error: [Errno {number}] {os.strerror(number)}: '{tmp_path}/corpus'{remedy}"
    assert str(ended.value).startswith(said)


def test_too_few_open_files_are_one_line_with_a_remedy():
    with pytest.raises(SystemExit, match=r"Too many open files.*; raise the limit \(`ulimit -n`\)"), clear_errors():
        raise OSError(errno.EMFILE, "Too many open files")


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOENT])
def test_a_system_without_semaphores_is_named_with_the_folder_and_a_remedy(number, monkeypatch):
    refuse = Mock(side_effect=OSError(number, os.strerror(number)))
    monkeypatch.setattr(multiprocessing.context.BaseContext, "Lock", refuse)
    said = rf"^/dev/shm: no semaphore .* \({os.strerror(number)}\); mount a writable tmpfs"
    with pytest.raises(RuntimeError, match=said), pool.open_new_process():
        pass
    with pytest.raises(RuntimeError, match=said):
        list(pool.run_in_processes(print, [("one", ())], 1, None))


def test_the_digest_of_a_folder_is_of_names_and_contents_at_any_depth_and_of_no_compiled_python(tmp_path):
    folder, compiled = tmp_path / "code/deep", tmp_path / "code/deep/__pycache__"
    compiled.mkdir(parents=True)
    digests = []
    for path, content in ((folder / "a", "1"), (compiled / "a.pyc", "2"), (folder / "a", "3"), (folder / "b", "3")):
        path.write_text(content)
        digests.append(compute_sha256(tmp_path / "code"))
    (folder / "a").rename(folder / "c")
    digests.append(compute_sha256(tmp_path / "code"))
    assert digests[0] == digests[1]
    assert len(set(digests)) == 4


def test_a_file_is_read_again_when_it_has_changed_and_under_the_same_name_in_another_folder(tmp_path, monkeypatch):
    calls = []

    @read_once(2)
    def read(path: Path, ending: str) -> str:
        calls.append(path)
        return path.read_text() + ending

    # after the first, each is told from the one before by one thing alone: time, length, the file, its folder
    for place, content, second in (("a", "1", 1), ("a", "2", 2), ("a", "34", 2), ("a", "56", 2), ("b", "56", 2)):
        (tmp_path / place).mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / place)
        if content == "56":
            Path("other").write_text(content)
            Path("other").replace("table")
        else:
            Path("table").write_text(content)
        os.utime("table", (second, second))
        assert [read(Path("table"), "."), read(Path("table"), ".")] == [f"{content}."] * 2
    assert len(calls) == 5


def run_python(*arguments: str, folder: Path = ROOT, **variables: str) -> str:
    """Runs a Python that must fail, in a folder and with further environment variables; returns what the errors say."""
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, env=os.environ | variables, capture_output=True, text=True)
    assert done.returncode == 1
    return done.stderr


def test_a_python_without_the_packages_or_too_old_is_one_line_that_names_it(tmp_path):
    too_old = "import runpy, sys; sys.version_info = (3, 8, 1); runpy.run_module('stages', run_name='__main__')"
    for arguments, said in (
        (["-S", "-m", "stages", "settings"], "No module named '.*'"),
        (["-c", too_old], "Python 3.*, expected 3.11 or later"),
    ):
        error = run_python(*arguments)
        assert re.fullmatch(rf"error: {said}.*; activate the environment of this repository.*\n", error)
        assert sys.executable in error


UNUSABLE = {
    "a package that is missing": ModuleNotFoundError("No module named 'joblib'", name="joblib"),
    "a package without a version": metadata.PackageNotFoundError("datasets"),
}


@pytest.mark.parametrize("error", UNUSABLE.values(), ids=UNUSABLE)
def test_a_package_that_cannot_be_used_is_one_line_with_a_remedy(error):
    with pytest.raises(SystemExit, match=r"^error: .*; activate the environment of this repository"), clear_errors():
        raise error


def test_a_locale_whose_names_of_files_lose_letters_is_one_line():
    error = run_python("-m", "stages", "settings", LC_ALL="C", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0")
    assert error.startswith("error: this locale is not of UTF-8; run `export LC_ALL=C.UTF-8`")


def test_an_import_of_ours_that_fails_is_an_error_of_ours_with_its_traceback():
    with pytest.raises(ImportError), clear_errors():
        raise ImportError("cannot import name 'scalez' from 'stages.schema'", name="stages.schema")


COMMANDS = {
    "a protocol that is not listed": (("finetuning", "original", "tiny", "courtois2042"), "mean `courtois2024`?"),
    "an operator that translation does not list": (("translation", "symmetric"), "is not in translation.operators of"),
    "a stage before its inputs": (("filtering",), "data/corpus: not made yet; run `dvc repro filtering`"),
    "a part of a stage before its inputs": (
        ("question_answering", "shared", "tiny"),
        "data/pretraining: not made yet; run `dvc repro question_answering`",
    ),
}


@pytest.mark.parametrize(("words", "message"), COMMANDS.values(), ids=COMMANDS)
def test_a_wrong_command_is_one_line(words, message, tmp_path):
    shutil.copyfile(ROOT / "params.yaml", tmp_path / "params.yaml")
    error = run_python("-m", "stages", *words, folder=tmp_path)
    assert message in error
    assert re.fullmatch("error: .*\n", error)


@pytest.fixture
def repository(tmp_path, monkeypatch) -> Path:
    """A repository with a commit, and the working directory."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "dvc.yaml").touch()
    for words in (["init"], ["add", "dvc.yaml"], ["commit", "-m", "first"]):
        run_git(folder, *words)
    monkeypatch.chdir(folder)
    return folder


def leave_git(folder: Path, monkeypatch) -> None:
    shutil.rmtree(folder / ".git")


def put_into_another_repository(folder: Path, monkeypatch) -> None:
    shutil.rmtree(folder / ".git")
    (folder.parent / ".gitignore").write_text("*")
    for words in (["init"], ["add", "--force", ".gitignore"], ["commit", "-m", "other"]):
        run_git(folder.parent, *words)


NO_COMMIT = {
    "files of another owner": (
        lambda folder, monkeypatch: monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1"),
        r"dubious ownership .*git config --global --add safe\.directory /.*/checkout",
    ),
    "an archive": (leave_git, "not a git repository"),
    "an archive in another repository": (put_into_another_repository, r"'dvc\.yaml' did not match"),
    "no Git": (lambda folder, monkeypatch: monkeypatch.setenv("PATH", ""), "No such file or directory: 'git'"),
}


def test_a_record_names_the_commit_of_the_code(repository, capfd):
    commit = run_git(repository, "rev-parse", "HEAD").strip()
    (repository / "stages").mkdir(exist_ok=True)
    (repository / "stages/._left_by_a_mac.py").touch()
    assert describe_provenance()["commit"] == commit
    for path in (repository / "stages" / "a.yaml", repository / "dvc.yaml"):
        path.write_text("stages:")
        assert describe_provenance()["commit"] == f"{commit}-modified"
        run_git(repository, "stash", "--include-untracked")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("change", "reason"), NO_COMMIT.values(), ids=NO_COMMIT)
def test_a_record_without_a_commit_is_one_line_with_the_reason(change, reason, repository, monkeypatch, capfd):
    change(repository, monkeypatch)
    assert describe_provenance()["commit"] == "unknown"
    assert re.fullmatch(rf"the record of this run names no commit: .*{reason}.*\n", capfd.readouterr().err)
