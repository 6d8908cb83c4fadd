"""Jobs run once, fail together, and are redone when what decides their result has changed."""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import ClassVar

import numpy as np
import psutil
import pytest
from safetensors import SafetensorError

from stages.files import observations
from stages.files.paths import RESULTS
from stages.runner import bars, errors, fingerprints, gpus, jobs, pool, results
from stages.runner.jobs import Job
from stages.runner.run import Run

ROOT = Path(__file__).parents[1]


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


def gpu(settings: dict, folder: Path) -> dict:
    time.sleep(0.3)
    return {"process": os.getpid(), "gpu": os.environ["CUDA_VISIBLE_DEVICES"], "every": bars.EVERY}


def summed(settings: dict, folder: Path) -> dict:
    import torch

    if settings["x"] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    numbers = torch.randn(1 << 20, generator=torch.Generator().manual_seed(settings["x"]))
    return {"sum": numbers.sum().item()}  # in the order that the threads divide it in


def surroundings() -> dict:
    """What a worker finds: whether torch is imported, and threads of the process that it was forked from."""
    tasks = Path(f"/proc/{os.getppid()}/task").iterdir()
    names = [(task / "comm").read_text().strip() for task in tasks]
    return {"torch": "torch" in sys.modules, "threads": [name for name in names if "jemalloc" not in name]}


def leaving(settings: dict, folder: Path) -> dict:
    (folder / "model").mkdir(exist_ok=True)
    (folder / "model" / "weights").write_bytes(bytes(range(100)))
    return square(settings, folder)


def failing(settings: dict, folder: Path) -> dict:
    match settings["x"]:
        case "diverges":
            return {"log": [{"step": 1, "loss": 2.0}, {"step": 2, "loss": math.nan}]}
        case "needs too much memory":
            return {"mean": np.zeros(10**12).mean()}
        case "may start no thread":
            raise RuntimeError("can't start new thread")  # Python's own words
        case "finds the disk full":
            raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")


def forever(settings: dict, folder: Path) -> dict:
    (folder / "worker").write_text(str(os.getpid()))
    time.sleep(600)
    return {}


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("input").write_text("one")


def squares(*values, inputs=(Path("input"),)):
    return [Job(f"x = {x}", {"x": x}, inputs) for x in values]


def calls():
    return sum(path.read_text().count("called") for path in jobs.FOLDER.rglob("calls"))


def test_results_come_in_the_order_of_the_jobs():
    results = jobs.run(square, squares(3, 1, 2), "squares", workers=2)
    assert [result["square"] for _, result in results] == [9, 1, 4]


class Marking(Run):
    beside: ClassVar[dict] = {"leaves": True}
    leaves: tuple[str, ...]


def marking(run: Marking, folder: Path) -> dict:
    for name in run.leaves:
        (folder / name).touch()
    return square({"x": run.seed}, folder)


def test_a_job_that_must_leave_more_is_called_again_and_one_that_must_leave_less_is_not():
    def left(*names: str) -> int:
        jobs.run(marking, [Job("x = 1", Marking(seed=1, leaves=names), (Path("input"),), names)], "squares")
        return calls()

    assert [left("a"), left("a", "b"), left("b"), left("c")] == [1, 2, 2, 3]


@pytest.mark.parametrize(
    ("damage", "again"),
    [
        (lambda: None, 0),
        (lambda: (RESULTS / "kept/other").unlink(), 0),
        (lambda: next(RESULTS.glob("squares/*/calls")).unlink(), 1),
        (lambda: Path("output/weights").write_bytes(b"edited"), 1),
        (lambda: next(RESULTS.glob("squares/*/result.json")).write_text("{"), 1),
    ],
    ids=["whole", "other results lack", "a file lacks", "a file in another output is damaged", "its result is damaged"],
)
def test_what_a_stage_has_handed_on_is_a_finished_job_where_data_jobs_is_not_there(damage, again, capsys):
    work = [Job("x = 1", {"x": 1}, (Path("input"),), ("model",), {"model": Path("output")})]
    [(folder, result)] = jobs.run(leaving, work, "squares")
    results.hand_on("squares", {folder: {"model"}})
    assert {path.name for path in RESULTS.glob("squares/*/*")} == {"calls", "job.json", "result.json"}
    shutil.copytree(folder / "model", "output")
    (RESULTS / "kept").mkdir()
    (RESULTS / "kept/other").touch()
    shutil.rmtree(jobs.FOLDER)
    for file in (file for place in (RESULTS, Path("output")) for file in place.rglob("*") if file.is_file()):
        file.chmod(0o644)
    damage()
    capsys.readouterr()
    assert jobs.run(leaving, work, "squares") == [(folder, result)]
    assert f"1 job, {1 - again} of them done before" in capsys.readouterr().out
    assert (folder / "model/weights").read_bytes() == bytes(range(100))


def package(folder: Path) -> dict[str, Path]:
    """A repository of six modules: `job` imports `near`, that imports `beside` and, in a function, `far`."""
    texts = {
        "files/storage": "",
        "work/job": "from stages.work import near\nfrom stages.files import storage\n",
        "work/near": "from . import beside\ndef f():\n    import stages.lib.far\n",
        "work/beside": "",
        "lib/far": "",
        "lib/other": "",
    }
    for name, text in texts.items():
        path = folder / "stages" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return {name.split("/")[1]: folder / "stages" / f"{name}.py" for name in texts}


@pytest.mark.parametrize(
    ("edited", "changes"), [("job", True), ("near", True), ("beside", True), ("far", True), ("other", False)]
)
def test_an_edit_of_what_a_module_imports_changes_its_digest_and_no_other_edit_does(
    edited, changes, tmp_path, monkeypatch
):
    modules = package(tmp_path)
    monkeypatch.setattr(fingerprints, "ROOT", tmp_path)
    monkeypatch.setattr(fingerprints, "LEFT_OUT", (tmp_path / "stages" / "files",))
    before = fingerprints.code_digest(modules["job"])
    modules[edited].write_text(modules[edited].read_text() + "x = 1\n")
    fingerprints.imported.cache_clear()
    assert (fingerprints.code_digest(modules["job"]) != before) == changes


def test_a_digest_as_loaded_keeps_to_what_the_process_met_first(tmp_path, monkeypatch):
    modules = package(tmp_path)
    monkeypatch.setattr(fingerprints, "ROOT", tmp_path)
    before = fingerprints.code_digest(modules["job"], as_loaded=True)
    modules["far"].write_text("x = 1\n")
    assert (
        fingerprints.code_digest(modules["job"], as_loaded=True) == before != fingerprints.code_digest(modules["job"])
    )


def test_a_worker_that_has_loaded_other_code_refuses_the_job(tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "use_one_thread", lambda: None)  # this process is no worker
    job = squares(2)[0]
    assert jobs._one(square, job, tmp_path / "job", tmp_path, (), fingerprints.identity(square)) is None
    other = [*fingerprints.identity(square)[:1], "of other code", fingerprints.identity(square)[2]]
    assert "restart the worker" in jobs._one(square, job, tmp_path / "other", tmp_path, (), other)
    assert not (tmp_path / "other").exists()


def test_several_processes_are_refused_by_jobs_that_they_cannot_share(monkeypatch):
    monkeypatch.setattr(pool, "use_one_thread", lambda: None)  # this process computes, and is no worker
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="squares: several processes cannot share its jobs; run it without torchrun"):
        jobs.run(square, squares(1), "squares")
    assert jobs.run(square, squares(1), "squares", shared=True)[0][1] == {"square": 1}


@pytest.mark.parametrize(
    ("stage", "workers", "world", "devices", "begun"),
    [
        ("noise", None, "1", (), True),
        ("analysis", None, "1", (), False),
        ("timing", None, "1", (), False),
        ("noise", "tcp://a:8786", "1", (), False),
        ("noise", None, "2", (), False),
        ("noise", None, "1", ("0",), False),
    ],
)
def test_processes_load_what_jobs_import_while_the_stage_loads_where_the_cores_compute_them(
    stage, workers, world, devices, begun, monkeypatch
):
    begins = []
    monkeypatch.setenv("WORLD_SIZE", world)
    monkeypatch.setattr("stages.runner.gpus.visible", lambda: devices)
    monkeypatch.setattr(pool, "begin_server", begins.append)
    jobs.prepare(ROOT / "stages" / stage / "stage.py", workers)
    assert [f"stages.{stage}.stage" in modules for modules in begins] == [True] * begun


def test_failures_come_together_at_the_end_and_the_rest_is_done():
    with pytest.raises(RuntimeError, match=r"2 of 3 jobs failed; 1 are done and kept(.|\n)*x is -1(.|\n)*x is -2"):
        jobs.run(square, squares(-1, 5, -2), "squares", workers=1)
    (done,) = jobs.FOLDER.rglob("result.json")
    assert json.loads(done.read_text())["result"] == {"square": 25}


def test_a_result_does_not_depend_on_how_many_jobs_were_missing_or_on_how_many_worked():
    import torch

    assert torch.get_num_threads() == 2
    work = squares(1, 2, 3)

    def sums(workers: int) -> str:
        return json.dumps([result for _, result in jobs.run(summed, work, "sums", workers=workers)])

    found = [sums(2)]
    shutil.rmtree(jobs.FOLDER)
    found.append(sums(1))
    shutil.rmtree(jobs.FOLDER)
    jobs.run(summed, work[:2], "sums", workers=2)
    found.append(sums(2))
    shutil.rmtree(jobs.FOLDER)
    with pytest.raises(RuntimeError):
        jobs.run(summed, [Job("x = killed", {"x": "killed"}, ()), *work], "sums", workers=2)
    found.append(sums(2))
    assert len(set(found)) == 1


def test_a_finished_job_is_not_done_again_by_any_stage_and_a_new_one_is():
    jobs.run(square, squares(1, 2), "one")
    jobs.run(square, squares(2, 1, 3), "another")
    assert calls() == 3


CHANGES = {
    "an input": lambda patch: Path("input").write_text("two"),
    "the code": lambda patch: patch.setattr(
        fingerprints, "code_digest", lambda source, as_loaded: f"edited {source.name}"
    ),
    "a library that computes": lambda patch: patch.setattr(fingerprints.metadata, "version", lambda library: "0.0"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_a_job_runs_again_when_what_decides_its_result_has_changed(change, monkeypatch):
    jobs.run(square, squares(1), "squares")
    change(monkeypatch)
    jobs.run(square, squares(1), "squares")
    assert calls() == 2


def test_a_killed_worker_fails_its_job_by_name_and_the_others_are_done():
    with pytest.raises(
        RuntimeError, match=r"1 of 4 jobs failed(.|\n)*x = killed\n.*killed; run the same command again"
    ):
        jobs.run(summed, [Job("x = killed", {"x": "killed"}, ()), *squares(1, 2, 3)], "sums", workers=2)
    assert len(list(jobs.FOLDER.rglob("result.json"))) == 3


def python(program: str, folder: Path = ROOT, **options) -> subprocess.Popen:
    """Starts another interpreter, with this repository on its path, which heeds Ctrl-C whatever the shell here does."""
    program = f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n{program}"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    arguments = [sys.executable, "-c", program]
    return subprocess.Popen(arguments, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, **options)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_workers_inherit_their_libraries_from_a_process_that_has_no_other_thread():
    modules = fingerprints.modules(ROOT / "stages/classification/training.py")
    said, _ = python(
        "from stages.runner import pool; from tests.test_jobs import surroundings; import json;"
        f"print(json.dumps([*pool.in_processes(surroundings, [('one', ())], 1, {modules})]))"
    ).communicate()
    [(_, found)] = json.loads(said)
    assert found["torch"] and len(found["threads"]) == 1


def test_workers_end_when_their_stage_is_killed(tmp_path):
    stage = python("from tests.test_jobs import *; jobs.run(forever, squares(1, 2, inputs=()), 'jobs', 2)", tmp_path)
    while len(begun := [path for path in jobs.FOLDER.rglob("worker") if path.read_text()]) < 2:
        time.sleep(0.05)
    stage.kill()
    workers = [int(path.read_text()) for path in begun]
    while any(is_running(worker) for worker in workers):
        time.sleep(0.05)


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


MOMENTS = {
    "while the jobs work": ("jobs.run(forever, squares(1, 2, inputs=()), 'jobs', 2)", "worker"),
    "while libraries are imported": (
        "list(pool.in_processes(surroundings, [('one', ())], 1, "
        f"fingerprints.modules(Path({str(ROOT / 'stages/classification/training.py')!r}))))",
        "forkserver",
    ),
    "while a process imports for itself": (
        "list(pool.in_processes(surroundings, [('one', ())], 1, None))",
        "spawn",
    ),
}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(("work", "awaited"), MOMENTS.values(), ids=list(MOMENTS))
def test_an_interrupt_from_the_keyboard_is_one_line_at_any_moment(work, awaited, tmp_path):
    imported = "from tests.test_jobs import *; from stages.runner.errors import clear_errors"
    program = f"{imported}\nwith clear_errors(): {work}"
    stage = python(program, tmp_path, stderr=subprocess.PIPE, start_new_session=True)

    def has_begun() -> bool:
        if awaited == "worker":
            return any(path.read_text() for path in jobs.FOLDER.rglob("worker"))
        below = psutil.Process(stage.pid).children(recursive=True)
        return any(awaited in " ".join(process.cmdline()) for process in below)

    while not has_begun():
        time.sleep(0.01)
    time.sleep(0.1)
    os.killpg(stage.pid, signal.SIGINT)  # as a terminal does
    _, said = stage.communicate()
    assert stage.returncode == 130
    assert said.splitlines()[-1] == "interrupted; the same command goes on where it was"
    assert "Traceback" not in said


FAILURES = {
    "diverges": "its result, log, 1, loss is nan",
    "finds the disk full": r"Error while serializing: .*No space left.*; free some space",
    "may start no thread": r"out of memory \(can't start new thread\); lower a batch size",
    "needs too much memory": r"out of memory \(Unable to allocate .*; lower a batch size",
}


@pytest.mark.parametrize(("x", "line"), FAILURES.items())
def test_a_job_that_fails_for_a_reason_that_a_user_can_mend_is_one_line_with_the_remedy_said_once(x, line):
    with pytest.raises(RuntimeError, match=rf"x = {x}\n  {line}.*$") as raised:
        jobs.run(failing, squares(x), "failing")
    assert not list(jobs.FOLDER.rglob("result.json"))
    assert errors.message(raised.value).count("free some space") == ("disk" in x)


def test_an_observation_that_is_not_finite_is_an_error_with_its_row(tmp_path):
    row = observations.Observation(stage="s", metric="accuracy", value=math.nan, operator="original", size="tiny")
    with pytest.raises(ValueError, match=r"rows\.csv: .*metric='accuracy'.*operator='original'.*not finite"):
        observations.write(tmp_path / "rows.csv", [row])


def flipped(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-2] + b"x" + path.read_bytes()[-1:])


DAMAGE = {
    "a flipped byte of a file": lambda folder: flipped(folder / "model" / "weights"),
    "a missing file": lambda folder: (folder / "model" / "weights").unlink(),
    "a flipped digit of the result": lambda folder: (folder / "result.json").write_text(
        (folder / "result.json").read_text().replace('"square": 9', '"square": 8')
    ),
    "a result that is no record": lambda folder: (folder / "result.json").write_text("[1"),
    "a result of another form": lambda folder: (folder / "result.json").write_text("[1]"),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=list(DAMAGE))
def test_a_damaged_job_is_named_and_computed_again_alone(damage, capsys):
    work = squares(1, 3)
    whole = jobs.run(leaving, work, "left", workers=1)
    before = (whole[1][0] / "model" / "weights").read_bytes()
    damage(whole[1][0])
    capsys.readouterr()
    assert jobs.run(leaving, work, "left", workers=1) == whole
    named = [line for line in capsys.readouterr().out.splitlines() if "damaged" in line]
    assert len(named) == 1 and "x = 3 is computed again" in named[0] and whole[1][0].name in named[0]
    assert (whole[1][0] / "model" / "weights").read_bytes() == before
    assert calls() == 2
    assert not (whole[1][0] / "model" / "weights").stat().st_mode & 0o222  # finished, so read-only


def test_what_a_worker_was_writing_when_it_was_killed_is_no_part_of_the_result():
    [(folder, result)] = jobs.run(leaving, squares(3), "left", workers=1)
    (folder / "result.json").unlink()
    for name in (f".result.json.{'0' * 32}", ".result.json.lock"):
        (folder / name).write_bytes(b"half")
    (folder / f".model.{'0' * 32}").mkdir()
    (folder / f".model.{'0' * 32}" / "half").write_bytes(b"half")
    assert jobs.run(leaving, squares(3), "left", workers=1) == [(folder, result)]
    assert "half" not in (folder / "result.json").read_text()
    left = {path.name for path in folder.iterdir()} - {f".model.{'0' * 32}"}  # which the job itself would clear
    assert left == {"calls", "model", "job.json", "result.json"}


def test_a_job_that_another_stage_is_at_is_waited_for_and_not_done_twice(tmp_path):
    program = "from tests.test_jobs import *; jobs.run(slow_square, squares(1, inputs=()), 'jobs', 1)"
    stages = [python(program, tmp_path) for _ in range(2)]
    assert [stage.wait() for stage in stages] == [0, 0]
    assert calls() == 1


def test_a_missing_input_is_named():
    with pytest.raises(FileNotFoundError, match="nowhere"):
        jobs.run(square, squares(1, inputs=(Path("nowhere"),)), "squares")


def kill_the_first_that_works(killed: list[int]) -> None:
    while not (begun := list(jobs.FOLDER.absolute().rglob("worker"))) or not begun[0].read_text():
        time.sleep(0.01)
    killed.append(int(begun[0].read_text()))
    os.kill(killed[0], signal.SIGKILL)


def test_a_cluster_gives_the_same_results_although_one_of_two_workers_dies(cluster):
    killed: list[int] = []
    killer = threading.Thread(target=kill_the_first_that_works, args=[killed])
    killer.start()
    work = squares(-1, *range(9))
    with pytest.raises(RuntimeError, match=r"1 of 10 jobs failed(.|\n)*x is -1"):
        jobs.run(slow_square, work, "squares", workers=cluster.address)
    killer.join()
    assert killed
    results = jobs.run(slow_square, work[1:], "squares", workers=cluster.address)
    assert [result["square"] for _, result in results] == [x**2 for x in range(9)]
    assert calls() == 10
    assert {path.read_text() for path in jobs.FOLDER.rglob("worker")} != {str(killed[0])}


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch):
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    monkeypatch.setattr(pool, "CONNECTION_SECONDS", 1)
    with pytest.raises(ValueError, match=r"no Dask scheduler answers at tcp://127.0.0.1:9 .*say null"):
        jobs.run(square, squares(1), "squares", workers="tcp://127.0.0.1:9")


def test_a_worker_of_several_threads_is_refused_with_the_command_that_starts_others():
    distributed = pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    options = {"n_workers": 1, "threads_per_worker": 2, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, pytest.raises(ValueError, match="--nthreads 1 --nworkers N"):
        jobs.run(square, squares(1), "squares", workers=cluster.scheduler_address)


def test_gpus_are_found_by_the_driver_and_named_so_that_their_order_does_not_matter(monkeypatch):
    monkeypatch.setattr("stages.runner.gpus.built_without_cuda", lambda: False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    for name, value in {"Init": None, "DeviceGetCount": 2}.items():
        monkeypatch.setattr(gpus.pynvml, f"nvml{name}", lambda value=value: value)
    monkeypatch.setattr(gpus.pynvml, "nvmlDeviceGetHandleByIndex", lambda number: number)
    monkeypatch.setattr(gpus.pynvml, "nvmlDeviceGetUUID", lambda handle: f"GPU-{handle}")
    assert gpus.visible() == ("GPU-0", "GPU-1")
    for visible, names in {"": (), "-1": (), "NoDevFiles": (), "1,-1,0": ("1",), "GPU-a, 3": ("GPU-a", "3")}.items():
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert gpus.visible() == names
    monkeypatch.setattr("stages.runner.gpus.built_without_cuda", lambda: True)
    assert gpus.visible() == ()


@pytest.mark.parametrize("trap", ["a link", "open to others", "a link in the place of the lock"])
def test_the_lock_of_a_gpu_is_not_followed_to_where_another_has_put_a_link(trap, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")  # which `gpus.take` sets; restored after the test
    victim, folder = tmp_path / "victim", tmp_path / f"fewer-attention-weights-{os.getuid()}"
    victim.write_text("precious")
    if trap == "a link":
        (tmp_path / "elsewhere").mkdir()
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.mkdir(mode=0o700)
        (folder / "gpu-0-0.lock").symlink_to(victim)
    if trap == "open to others":
        folder.chmod(0o777)
    with pytest.raises((ValueError, OSError), match="this user's alone|symbolic link"):
        gpus.take.__wrapped__(("0",))
    assert victim.read_text() == "precious"


def test_runs_on_different_gpus_of_a_machine_take_each_of_theirs_before_any_twice(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")  # which `gpus.take` sets; restored after the test
    taken, locks = [], []
    for devices in (("0", "1"), ("2", "3"), ("0", "1"), ("2", "3"), ("0", "1")):
        locks.append(gpus.take.__wrapped__(devices))
        taken.append(os.environ["CUDA_VISIBLE_DEVICES"])
    for lock in locks:
        lock.release()
    assert taken == ["0", "2", "1", "3", "0"]


def test_every_worker_that_trains_has_a_gpu_of_its_own(monkeypatch):
    monkeypatch.setattr("stages.runner.gpus.built_without_cuda", lambda: False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    results = [result for _, result in jobs.run(gpu, squares(1, 2, 3, 4, 5, 6), "gpus", on_gpu=True)]
    assert {result["gpu"] for result in results} == {"5", "7"}
    assert len({(result["process"], result["gpu"]) for result in results}) == 2
    assert {result["every"] for result in results} == {2 * bars.EVERY}  # lines of two jobs come as often as of one
