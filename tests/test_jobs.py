"""Jobs run once, fail together, and run again after a change that may change the result."""

import ctypes
import errno
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import ClassVar
from unittest.mock import Mock

import numpy as np
import psutil
import pytest
from safetensors import SafetensorError

from stages.files import observations
from stages.files.paths import RESULTS
from stages.files.storage import acquire_lock, compute_source_digest, read_states, write_atomically
from stages.runner import bars, errors, fingerprints, gpus, jobs, pool, results, worker
from stages.runner.cluster import run_on_cluster
from stages.runner.job import Run
from stages.runner.jobs import Job
from tests.files import write_file
from tests.places import ROOT

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def square(settings: dict, folder: Path) -> dict:
    with (folder / "calls").open("a") as calls:
        calls.write("called\n")
    if settings["x"] < 0:
        raise ValueError(f"x is {settings['x']}")
    return {"square": settings["x"] ** 2}


def slow_square(settings: dict, folder: Path) -> dict:
    (folder / "worker").write_text(str(os.getpid()))
    time.sleep(0.5)
    return square(settings, folder)


def surroundings_of_gpu(settings: dict, folder: Path) -> dict:
    time.sleep(0.3)
    return {"process": os.getpid(), "gpu": os.environ["CUDA_VISIBLE_DEVICES"], "every": bars.EVERY}


def summed(settings: dict, folder: Path) -> dict:
    import torch

    if settings["x"] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    numbers = torch.randn(1 << 20, generator=torch.Generator().manual_seed(settings["x"]))
    # the order of the sum depends on the number of threads
    return {"sum": numbers.sum().item()}


def surroundings() -> dict:
    """Whether torch is imported in a worker, and the threads of the process from which the worker was forked."""
    names = [(task / "comm").read_text().strip() for task in Path(f"/proc/{os.getppid()}/task").iterdir()]
    return {"torch": "torch" in sys.modules, "threads": [name for name in names if "jemalloc" not in name]}


def leaving(settings: dict, folder: Path) -> dict:
    (folder / "model").mkdir(exist_ok=True)
    (folder / "model" / "weights").write_bytes(bytes(range(100)))
    return square(settings, folder)


def failing(settings: dict, folder: Path) -> dict | None:
    match settings["x"]:
        case "diverges":
            return {"log": [{"step": 1, "loss": 2.0}, {"step": 2, "loss": math.nan}]}
        case "needs too much memory":
            return {"mean": np.zeros(10**12).mean()}
        case "finds the disk full":
            raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")
        case "edits its input":
            Path("input").write_text("two")
            return square({"x": 1}, folder)
        case "loses its folder":
            shutil.rmtree(folder.parents[1])
            return square({"x": 1}, folder)
        case "loses its open file":
            with (folder / "tokens").open("w"):
                shutil.rmtree(folder.parents[1])
            return {}


def forever(settings: dict, folder: Path) -> dict:
    (folder / "worker").write_text(str(os.getpid()))
    time.sleep(600)
    return {}


def hold_the_interpreter(settings: dict, folder: Path) -> dict:
    """Runs native code in which no other thread of Python gets to run."""
    (folder / "worker").write_text(str(os.getpid()))
    ctypes.PyDLL(None).sleep(1800)
    return {}


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("input").write_text("one")


def make_jobs(*values, inputs=(Path("input"),)) -> list[Job]:
    return [Job(f"x = {x}", {"x": x}, inputs) for x in values]


def run_squares(*values: int, **options) -> list[tuple[Path, dict]]:
    return jobs.run(square, make_jobs(*values), "squares", **options)


def count_calls() -> int:
    return sum(path.read_text().count("called") for path in jobs.FOLDER.rglob("calls"))


def list_workers() -> list[int]:
    """The processes of workers that have begun a job of `slow_square` or `forever`."""
    texts = [path.read_text() for path in jobs.FOLDER.absolute().rglob("worker")]
    return [int(text) for text in texts if text]


def test_results_come_in_the_order_of_the_jobs_and_their_seconds_are_kept():
    for computed in (True, False):
        left = jobs.run(slow_square, make_jobs(3, 1, 2), "squares", workers=2)
        assert [result["square"] for _, result in left] == [9, 1, 4]
        for folder, _ in left:
            # only jobs that this run computed count
            seconds = jobs.SECONDS.pop(folder, None)
            assert (seconds is not None) == computed
            assert seconds is None or 0.5 <= seconds < 5


def test_jobs_of_more_work_start_first():
    Path("large").write_text("large")
    work = [*make_jobs(1, 2), *make_jobs(3, inputs=(Path("large"),)), Job("x = 4", {"x": 4}, (), work=99.0)]
    left = jobs.run(square, work, "squares", workers=1)
    ended = [(folder / "result.json").stat().st_mtime_ns for folder, _ in left]
    assert sorted(range(4), key=lambda number: ended[number]) == [3, 2, 0, 1]


class Marking(Run):
    beside: ClassVar[dict] = {"required": True}
    required: tuple[str, ...]


def marking(run: Marking, folder: Path) -> dict:
    for name in run.required:
        (folder / name).touch()
    return square({"x": run.seed}, folder)


def test_a_job_that_must_leave_more_is_called_again_and_a_job_that_must_leave_less_is_not():
    calls = []
    for names in (("a",), ("a", "b"), ("b",), ("c",)):
        jobs.run(marking, [Job("x = 1", Marking(seed=1, required=names), (), required=names)], "squares")
        calls.append(count_calls())
    assert calls == [1, 2, 2, 3]


def test_a_file_that_no_result_lists_does_not_count_and_is_made_again():
    """A killed process may leave such a file, even an empty one."""
    plan = [Job("x = 1", Marking(seed=1, required=("a",)), (), required=("a",))]
    [(folder, _)] = jobs.run(marking, plan, "squares")
    (folder / "b").write_text("of a killed process")
    more = [Job("x = 1", Marking(seed=1, required=("b",)), (), required=("b",))]
    jobs.run(marking, more, "squares")
    assert (folder / "b").read_text() == "" and count_calls() == 2


def test_a_reader_leaves_a_damaged_job_to_the_process_that_works_on_it(capsys):
    [(folder, result)] = run_squares(3)
    whole = (folder / "calls").read_bytes()
    (folder / "calls").unlink()
    with acquire_lock(folder.with_suffix(".lock")):
        assert jobs._recover_finished(make_jobs(3), [folder], "squares") == [None]
        assert (folder / "result.json").exists()
        (folder / "calls").write_bytes(whole)
    assert run_squares(3) == [(folder, result)]
    assert "computed again" not in capsys.readouterr().out


HANDED_ON = {
    "whole": (lambda: None, 0),
    "a file is missing": (lambda: next(RESULTS.glob("squares/*/calls")).unlink(), 1),
    "a file in another output is damaged": (lambda: Path("output/weights").write_bytes(b"edited"), 1),
    "the result is damaged": (lambda: next(RESULTS.glob("squares/*/result.json")).write_text("{"), 1),
}


@pytest.mark.parametrize(("damage", "again"), HANDED_ON.values(), ids=list(HANDED_ON))
def test_results_that_a_stage_has_handed_on_are_finished_jobs_if_data_jobs_is_missing(damage, again, capsys):
    work = [Job("x = 1", {"x": 1}, (Path("input"),), ("model",), {"model": Path("output")})]
    [(folder, result)] = jobs.run(leaving, work, "squares")
    results.hand_on("squares", {folder: {"model"}})
    assert {path.name for path in RESULTS.glob("squares/*/*")} == {"calls", "job.json", "result.json"}
    shutil.copytree(folder / "model", "output")
    shutil.rmtree(jobs.FOLDER)
    Path("output/weights").chmod(0o644)
    damage()
    capsys.readouterr()
    assert jobs.run(leaving, work, "squares") == [(folder, result)]
    assert f"1 job, {1 - again} of them done before" in capsys.readouterr().out
    assert (folder / "model/weights").read_bytes() == bytes(range(100))


OUTSIDE = ["../../../../my_operators.py", "/tmp/my_operators.py", "./calls", "a" * 300, "\x1b[31m"]


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_result_that_names_a_file_outside_its_folder_is_damaged_and_that_file_stays(name, capsys, tmp_path):
    """The result has a valid checksum, as from someone who means harm."""
    precious = Path("my_operators.py")
    precious.write_text("precious")
    named = str(precious.absolute()) if name.startswith("/") else name
    [(folder, result)] = run_squares(3)
    record = {"files": {named: results.compute_sha256(precious)}, "result": {"square": 9}, "seconds": 1.0}
    record["sha256"] = results._digest_record(record)
    for place in (folder, RESULTS / "squares" / folder.name):
        write_atomically(place / "result.json", json.dumps(record))
        write_atomically(place / "job.json", "{}")
        with pytest.raises(
            ValueError, match=r"result\.json is damaged: .* is not the name of a file in the folder of the result"
        ):
            results.read(place)
    for missing in (False, True):
        if missing:
            shutil.rmtree(jobs.FOLDER)
        capsys.readouterr()
        assert run_squares(3) == [(folder, result)]
        assert "x = 3 is computed again" in capsys.readouterr().out
    assert precious.read_text() == "precious"


@pytest.fixture
def package(tmp_path, monkeypatch) -> dict[str, Path]:
    """A repository of six modules: `job` imports `near`, and `near` imports `beside` and, in a function, `far`."""
    texts = {
        "files/storage": "",
        "work/job": "from stages.work import near\nfrom stages.files import storage\n",
        "work/near": "from . import beside\ndef f():\n    import stages.lib.far\n",
        "work/beside": "",
        "lib/far": "",
        "lib/other": "",
    }
    modules = {}
    for name, text in texts.items():
        path = write_file(tmp_path / f"stages/{name}.py", text)
        modules[path.stem] = path
    monkeypatch.setattr(fingerprints, "ROOT", tmp_path)
    monkeypatch.setattr(fingerprints, "LEFT_OUT", (tmp_path / "stages" / "files",))
    monkeypatch.setattr(fingerprints, "STATES", read_states(tmp_path))
    return modules


@pytest.mark.parametrize(
    ("edited", "changes"),
    [("job", True), ("near", True), ("beside", True), ("far", True), ("other", False), ("storage", False)],
)
def test_an_edit_of_an_imported_module_changes_the_digest_of_code_and_no_other_edit_does(edited, changes, package):
    before = fingerprints.compute_code_digest(package["job"], as_loaded=True)
    package[edited].write_text(package[edited].read_text() + "x = 1\n")
    fingerprints.find_imported_files.cache_clear()
    assert (fingerprints.compute_code_digest(package["job"]) != before) == changes
    assert fingerprints.compute_code_digest(package["job"], as_loaded=True) == before


def test_a_yaml_file_with_the_name_of_an_imported_module_counts_in_the_digest_of_code(package):
    before = fingerprints.compute_code_digest(package["job"])
    package["near"].with_suffix(".yaml").write_text("x: 1")
    assert fingerprints.compute_code_digest(package["job"]) != before


def test_wording_does_not_count_in_the_digest_of_a_file_that_is_python(tmp_path):
    texts = ["x = 1\n", '"""Words."""\n\nx = 1  # more\n', "x = 2\n", "x = 1 (\n", "x = 1 (  \n"]
    digests = []
    for name in ("a.py", "a.yaml"):
        for text in texts:
            (tmp_path / name).write_text(text)
            digests.append(compute_source_digest(tmp_path / name))
    assert digests[0] == digests[1]
    # of files that do not parse and of other files, all bytes count; "x = 1 (" has the same bytes under both names
    assert len(set(digests)) == 7


def test_code_that_was_changed_and_changed_back_after_the_import_counts_as_other_code(package):
    before = fingerprints.compute_code_digest(package["job"])
    package["near"].write_text(package["near"].read_text())
    assert fingerprints.compute_code_digest(package["job"]) == before
    assert fingerprints.compute_code_digest(package["job"], as_loaded=True) != before


def test_a_worker_that_has_loaded_other_code_refuses_the_job(tmp_path, monkeypatch):
    # this process is no worker
    monkeypatch.setattr(pool, "use_one_thread", lambda: None)
    [job] = make_jobs(2)
    name, _, versions = identity = fingerprints.describe_identity(square)
    assert worker.do_job(square, job, tmp_path / "job", tmp_path, (), identity, {}) is None
    error = worker.do_job(square, job, tmp_path / "other", tmp_path, (), [name, "of other code", versions], {})
    assert error and "has loaded other code" in error
    assert not (tmp_path / "other").exists()


def share_jobs(monkeypatch, rank: str) -> None:
    """Sets the environment variables of torchrun for one of two processes."""
    # this process is no worker
    monkeypatch.setattr(pool, "use_one_thread", lambda: None)
    for name, value in (("WORLD_SIZE", "2"), ("RANK", rank), ("MASTER_ADDR", "127.0.0.1")):
        monkeypatch.setenv(name, value)


def test_several_processes_are_refused_by_jobs_that_cannot_be_shared(monkeypatch):
    share_jobs(monkeypatch, "0")
    with pytest.raises(ValueError, match=r"squares: 2 processes \(WORLD_SIZE\) cannot share the jobs; run the stage"):
        run_squares(1)
    assert run_squares(1, shared=True)[0][1] == {"square": 1}


def test_of_several_processes_all_but_the_first_leave_the_outputs_to_the_first_and_say_so(monkeypatch, capsys):
    run_squares(1)
    share_jobs(monkeypatch, "1")
    with pytest.raises(SystemExit) as ended:
        run_squares(1, shared=True)
    assert not ended.value.code
    assert "squares: process 1 of 2 (RANK, WORLD_SIZE) ends; process 0 writes" in capsys.readouterr().out


def test_a_rank_without_several_processes_does_not_count(monkeypatch):
    monkeypatch.setenv("RANK", "one")
    assert run_squares(3)[0][1] == {"square": 9}


NOT_OF_A_LAUNCHER = {
    "no place to meet": ({"WORLD_SIZE": "2", "RANK": "0"}, "WORLD_SIZE is 2, but MASTER_ADDR is not set"),
    "a rank too high": ({"WORLD_SIZE": "2", "RANK": "2", "MASTER_ADDR": "127.0.0.1"}, "RANK is '2'"),
}


@pytest.mark.parametrize(("variables", "said"), NOT_OF_A_LAUNCHER.values(), ids=list(NOT_OF_A_LAUNCHER))
def test_variables_that_no_launcher_has_set_are_named_with_a_remedy(variables, said, monkeypatch):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=rf"^{said}.*; use torchrun or .*`unset WORLD_SIZE RANK` first$"):
        run_squares(1, shared=True)


def test_failures_come_together_at_the_end_and_the_other_jobs_are_done():
    with pytest.raises(RuntimeError, match=r"2 of 3 jobs failed; 1 are done and kept(.|\n)*x is -1(.|\n)*x is -2"):
        run_squares(-1, 5, -2, workers=1)
    (done,) = jobs.FOLDER.rglob("result.json")
    assert json.loads(done.read_text())["result"] == {"square": 25}


def test_a_result_depends_neither_on_the_number_of_workers_nor_on_killed_workers():
    work = make_jobs(1, 2, 3)
    sums = [jobs.run(summed, work, "sums", workers=2)]
    shutil.rmtree(jobs.FOLDER)
    sums.append(jobs.run(summed, work, "sums", workers=1))
    shutil.rmtree(jobs.FOLDER)
    with pytest.raises(RuntimeError, match=r"1 of 4 jobs failed(.|\n)*x = killed\n.*killed; run the same command"):
        jobs.run(summed, [*make_jobs("killed"), *work], "sums", workers=2)
    assert len(list(jobs.FOLDER.rglob("result.json"))) == 3
    sums.append(jobs.run(summed, work, "sums", workers=2))
    assert sums[0] == sums[1] == sums[2]


def test_a_finished_job_is_not_done_again_by_any_stage_until_its_input_changes():
    jobs.run(square, make_jobs(1, 2), "one")
    jobs.run(square, make_jobs(2, 1, 3), "another")
    assert count_calls() == 3
    Path("input").write_text("two")
    jobs.run(square, make_jobs(1), "one")
    assert count_calls() == 4


def test_a_job_has_another_fingerprint_with_another_version_of_a_library(monkeypatch):
    before = fingerprints.compute_fingerprints(fingerprints.describe_identity(square), make_jobs(1))
    monkeypatch.setattr(fingerprints.metadata, "version", lambda library: "0.0")
    assert fingerprints.compute_fingerprints(fingerprints.describe_identity(square), make_jobs(1)) != before


def start_python(program: str, folder: Path = ROOT, **options) -> subprocess.Popen:
    """Starts an interpreter that imports this module, and that heeds Ctrl-C whatever the shell here does."""
    heeding = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    program = f"{heeding}\nfrom tests.test_jobs import *\nfrom stages.runner.errors import clear_errors\n{program}"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    arguments = [sys.executable, "-c", program]
    return subprocess.Popen(arguments, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, **options)


TRAINING = fingerprints.list_modules(ROOT / "stages/classification/training.py")


@on_linux
def test_workers_inherit_their_libraries_from_a_process_without_other_threads():
    program = f"print(json.dumps([*pool.run_in_processes(surroundings, [('one', ())], 1, {TRAINING})]))"
    [(_, found)] = json.loads(start_python(program).communicate()[0])
    assert found["torch"] and len(found["threads"]) == 1


def wait_for_the_end(processes: list[int]) -> None:
    while any(psutil.pid_exists(process) for process in processes):
        time.sleep(0.05)


@on_linux
@pytest.mark.parametrize("modules", [[], None], ids=["forked from the server", "started by the stage"])
def test_workers_whose_native_code_lets_no_thread_run_end_when_their_stage_is_killed(modules, tmp_path):
    jobs.FOLDER.mkdir(parents=True)
    call = f"pool.run_in_processes(hold_the_interpreter, [('one', ({{}}, jobs.FOLDER))], 1, {modules})"
    stage = start_python(f"list({call})", tmp_path)
    while not (workers := list_workers()):
        time.sleep(0.05)
    stage.kill()
    wait_for_the_end(workers)


def list_below(stage: subprocess.Popen, word: str) -> list[psutil.Process]:
    """Lists the processes that a stage has started, directly or indirectly, with a word in the command."""
    below = psutil.Process(stage.pid).children(recursive=True)
    return [process for process in below if word in " ".join(process.cmdline())]


IMPORTING = f"list(pool.run_in_processes(surroundings, [('one', ())], 1, {TRAINING}))"
MOMENTS = {
    "while the jobs work": ("jobs.run(forever, make_jobs(1, 2, inputs=()), 'jobs', 2)", "worker"),
    "while libraries are imported": (IMPORTING, "forkserver"),
}


@on_linux
@pytest.mark.parametrize(("work", "awaited"), MOMENTS.values(), ids=list(MOMENTS))
def test_an_interrupt_from_the_keyboard_is_one_line_at_any_moment(work, awaited, tmp_path):
    program = f"with clear_errors(): {work}"
    stage = start_python(program, tmp_path, stderr=subprocess.PIPE, start_new_session=True)

    while not (list_workers() if awaited == "worker" else list_below(stage, awaited)):
        time.sleep(0.01)
    time.sleep(0.1)
    # as a terminal does
    os.killpg(stage.pid, signal.SIGINT)
    _, said = stage.communicate()
    assert stage.returncode == 130
    assert said.splitlines()[-1] == "interrupted; run the same command again to resume"
    assert "Traceback" not in said


@on_linux
def test_the_end_of_the_process_that_starts_workers_is_one_line(tmp_path):
    stage = start_python(f"with clear_errors(): {IMPORTING}", tmp_path, stderr=subprocess.PIPE)
    # a server that ends before the stage asks for a worker is replaced
    while stage.poll() is None:
        with suppress(psutil.NoSuchProcess):
            for server in list_below(stage, "forkserver"):
                server.kill()
        time.sleep(0.01)
    said = stage.communicate()[1]
    assert said == f"error: {pool.SERVER_KILLED}\n"
    assert stage.returncode == 1


@on_linux
def test_a_folder_for_temporary_files_with_a_long_name_is_named_with_a_remedy(tmp_path, monkeypatch):
    folder = tmp_path / ("a" * 100)
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    stage = start_python(f"with clear_errors(): {IMPORTING}", tmp_path, stderr=subprocess.PIPE)
    said = stage.communicate()[1]
    assert said.startswith(
        f"error: {folder}: no socket for workers can be made there (AF_UNIX path too long); set TMPDIR"
    )


FAILURES = {
    "diverges": "its result, log, 1, loss is nan",
    "finds the disk full": r"Error while serializing: .*No space left.*; free some space",
    "loses its folder": r".*data/jobs/failing/\w+: deleted while the job ran; run the same command again",
    "loses its open file": r".*data/jobs/failing/\w+: deleted while the job ran; run the same command again",
    "needs too much memory": r"out of memory \(Unable to allocate .*; lower a batch size",
}


@pytest.mark.parametrize(("x", "line"), FAILURES.items())
def test_a_failure_that_a_user_can_fix_is_one_line_with_one_remedy(x, line):
    with pytest.raises(RuntimeError, match=rf"x = {x}\n  {line}.*$") as raised:
        jobs.run(failing, make_jobs(x), "failing")
    assert not list(jobs.FOLDER.rglob("result.json"))
    assert errors.describe_error(raised.value).count("free some space") == ("disk" in x)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_an_observation_or_a_result_that_is_not_finite_is_an_error_with_its_place(value, tmp_path):
    row = observations.Observation(stage="s", metric="accuracy", value=value, operator="original", size="tiny")
    with pytest.raises(ValueError, match=r"rows\.csv: .*metric='accuracy'.*operator='original'.*not finite"):
        observations.write(tmp_path / "rows.csv", [row])
    with pytest.raises(ValueError, match=f"its result, losses, 1 is {value}, not a finite number"):
        results.write(tmp_path, "job", {}, {"losses": [1.0, value]}, seconds=0.0)


def flip_byte(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-2] + b"x" + path.read_bytes()[-1:])


def remove_result(path: Path) -> None:
    """Leaves a record with a valid checksum."""
    record = json.loads(path.read_text())
    del record["result"], record["sha256"]
    path.write_text(json.dumps(record | {"sha256": results._digest_record(record)}))


DAMAGE = {
    "a flipped byte of a file": lambda folder: flip_byte(folder / "model" / "weights"),
    "a missing file": lambda folder: (folder / "model" / "weights").unlink(),
    "a flipped byte of the result": lambda folder: flip_byte(folder / "result.json"),
    "a result of another form": lambda folder: (folder / "result.json").write_text("[1]"),
    "no value in the result": lambda folder: remove_result(folder / "result.json"),
}


def test_a_finished_job_that_the_disk_does_not_give_stops_the_stage_and_stays(monkeypatch):
    [(folder, _)] = run_squares(1)

    monkeypatch.setattr(Path, "read_bytes", Mock(side_effect=OSError(errno.EIO, "Input/output error")))
    with pytest.raises(OSError, match="Input/output error"):
        run_squares(1)
    assert (folder / "result.json").exists()


def test_a_name_that_would_steer_a_terminal_is_escaped_in_progress_and_in_messages(capsys):
    work = [Job("\x1b[31m", {"x": 1}, ())]
    [(folder, _)] = jobs.run(square, work, "squares")
    (folder / "result.json").write_text("{")
    jobs.run(square, work, "squares")
    said = capsys.readouterr()
    assert r"damaged; \x1b[31m is computed again" in said.out
    assert "\x1b[31m" not in said.out + said.err


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=list(DAMAGE))
def test_only_the_damaged_job_is_named_and_computed_again(damage, capsys):
    work = make_jobs(1, 3)
    whole = jobs.run(leaving, work, "left", workers=1)
    folder, _ = whole[1]
    damage(folder)
    capsys.readouterr()
    assert jobs.run(leaving, work, "left", workers=1) == whole
    [line] = [line for line in capsys.readouterr().out.splitlines() if "damaged" in line]
    assert "x = 3 is computed again" in line and folder.name in line
    assert (folder / "model" / "weights").read_bytes() == bytes(range(100))
    assert count_calls() == 2
    # finished, and so read-only
    assert not (folder / "model" / "weights").stat().st_mode & 0o222


def test_a_job_that_another_stage_computes_is_waited_for_and_not_done_twice(tmp_path):
    program = "jobs.run(slow_square, make_jobs(1, inputs=()), 'jobs', 1)"
    stages = [start_python(program, tmp_path) for _ in range(2)]
    assert [stage.wait() for stage in stages] == [0, 0]
    assert count_calls() == 1


def test_a_job_whose_input_changes_before_or_while_it_runs_leaves_no_result():
    """The result would be found under the fingerprint of the input before."""
    # the first job edits the input of both
    work = make_jobs("edits its input", "diverges")
    changed = r"\n  input changed after the stage began; run the same command again"
    with pytest.raises(RuntimeError, match=rf"2 of 2 jobs failed.*\n.*edits its input, .*diverges{changed}$"):
        jobs.run(failing, work, "jobs", workers=1)
    assert not list(jobs.FOLDER.rglob("result.json"))


def test_a_missing_input_is_named():
    with pytest.raises(FileNotFoundError, match="nowhere"):
        jobs.run(square, make_jobs(1, inputs=(Path("nowhere"),)), "squares")


def wait_for_work() -> list[int]:
    while not (workers := list_workers()):
        time.sleep(0.01)
    return workers


def kill_the_first_that_works(killed: list[int]) -> None:
    workers = wait_for_work()
    killed.append(workers[0])
    os.kill(workers[0], signal.SIGKILL)


def start_cluster(workers: int = 1, threads: int = 1, processes: bool = True):
    """Starts a Dask cluster on this machine. processes: a worker is a process, which a test may kill."""
    distributed = pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    options = {"threads_per_worker": threads, "processes": processes, "dashboard_address": None}
    return distributed.LocalCluster(n_workers=workers, **options)


def test_a_cluster_gives_the_same_results_although_a_worker_dies():
    killed: list[int] = []
    work = make_jobs(-1, *range(5))
    with start_cluster(workers=2) as cluster:
        killer = threading.Thread(target=kill_the_first_that_works, args=[killed])
        killer.start()
        with pytest.raises(RuntimeError, match=r"1 of 6 jobs failed(.|\n)*x is -1"):
            jobs.run(slow_square, work, "squares", workers=cluster.scheduler_address)
        killer.join()
        left = jobs.run(slow_square, work[1:], "squares", workers=cluster.scheduler_address)
    assert [result["square"] for _, result in left] == [x**2 for x in range(5)]
    assert count_calls() == 6
    assert set(list_workers()) != set(killed)


def test_a_scheduler_that_dies_amid_jobs_is_one_line_with_the_way_on():
    with start_cluster() as cluster:
        killer = threading.Thread(target=lambda: (wait_for_work(), cluster.close()))
        killer.start()
        with pytest.raises(RuntimeError, match=r"the Dask scheduler at tcp://\S+ is gone; start `dask scheduler`"):
            jobs.run(slow_square, make_jobs(*range(20)), "squares", workers=cluster.scheduler_address)
        killer.join()


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch):
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    monkeypatch.setattr("stages.runner.cluster.CONNECTION_SECONDS", 1)
    with pytest.raises(ValueError, match=r"no Dask scheduler answers at tcp://127.0.0.1:9 .*set workers to null"):
        run_squares(1, workers="tcp://127.0.0.1:9")


def test_a_worker_of_several_threads_is_refused_with_the_command_that_starts_others():
    refused = pytest.raises(ValueError, match="--nthreads 1 --nworkers N")
    with start_cluster(threads=2, processes=False) as cluster, refused:
        run_squares(1, workers=cluster.scheduler_address)


def test_a_worker_that_was_started_for_shared_jobs_is_refused_with_the_command_that_starts_others(monkeypatch):
    with start_cluster(processes=False) as cluster:
        share_jobs(monkeypatch, "0")
        with pytest.raises(ValueError, match="WORLD_SIZE is set for some workers of .* before `dask worker"):
            list(run_on_cluster(square, [], cluster.scheduler_address))


@pytest.mark.parametrize(
    ("variable", "names"),
    [("", ()), ("-1", ()), ("NoDevFiles", ()), ("1,-1,0", ("1",)), ("GPU-a, 3", ("GPU-a", "3"))],
)
def test_gpus_are_those_that_the_variable_names_and_none_without_cuda(variable, names, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", variable)
    for without, expected in ((False, names), (True, ())):
        monkeypatch.setattr(gpus, "is_built_without_cuda", lambda without=without: without)
        assert gpus.list_visible_gpus() == expected


@pytest.fixture
def locks(tmp_path, monkeypatch) -> Path:
    """The folder of the locks of GPUs, which is not there yet."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    # `gpus.bind_to_gpu` sets the variable, which is restored after the test
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
    return tmp_path / f"fewer-attention-weights-{os.getuid()}"


TRAPS = {
    "a link": "to this user only",
    "open to others": "to this user only",
    "a link in the place of the lock": "symbolic link",
}


@pytest.mark.parametrize(("trap", "message"), TRAPS.items())
def test_the_lock_of_a_gpu_does_not_follow_a_link_of_another_user(trap, message, locks):
    victim = locks.with_name("victim")
    victim.write_text("precious")
    if trap == "a link":
        locks.with_name("elsewhere").mkdir()
        locks.symlink_to(locks.with_name("elsewhere"))
    else:
        locks.mkdir(mode=0o700)
        (locks / "gpu-0-0.lock").symlink_to(victim)
    if trap == "open to others":
        locks.chmod(0o755)
    with pytest.raises((ValueError, OSError), match=message):
        gpus.bind_to_gpu.__wrapped__(("0",))
    assert victim.read_text() == "precious"


def test_every_gpu_is_taken_once_before_any_gpu_is_taken_twice(locks):
    taken, held = [], []
    for devices in (("0", "1"), ("2", "3"), ("0", "1"), ("2", "3"), ("0", "1")):
        held.append(gpus.bind_to_gpu.__wrapped__(devices))
        taken.append(os.environ["CUDA_VISIBLE_DEVICES"])
    for lock in held:
        lock.lock.release()
    assert locks.is_dir() and taken == ["0", "2", "1", "3", "0"]


def test_every_worker_that_trains_has_a_separate_gpu(monkeypatch):
    monkeypatch.setattr(gpus, "is_built_without_cuda", lambda: False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    left = jobs.run(surroundings_of_gpu, make_jobs(1, 2, 3, 4, 5, 6), "gpus", on_gpu=True)
    found = [result for _, result in left]
    assert {result["gpu"] for result in found} == {"5", "7"}
    assert len({(result["process"], result["gpu"]) for result in found}) == 2
    # lines of progress of two workers come as often as lines of a single worker
    assert {result["every"] for result in found} == {2 * bars.EVERY}


def test_a_new_process_is_killed_when_nobody_waits_for_its_call():
    with pytest.raises(KeyboardInterrupt), pool.open_new_process() as process:
        assert process.submit(os.getpid).result()
        process.submit(time.sleep, 600)
        raise KeyboardInterrupt


def test_a_new_process_that_was_killed_is_one_clear_error():
    killed = pytest.raises(RuntimeError, match="^the worker process was killed; run the same command again")
    with killed, pool.open_new_process() as process:
        process.submit(os._exit, 9).result()
