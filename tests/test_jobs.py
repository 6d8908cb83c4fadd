"""Jobs run once, fail together, and are redone when what decides their result has changed."""

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from stages import jobs
from stages.jobs import Job


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
    return {"process": os.getpid(), "gpu": os.environ["CUDA_VISIBLE_DEVICES"]}


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


def test_a_finished_job_is_not_run_again_and_a_new_one_is():
    jobs.run(square, squares(1, 2), "squares")
    jobs.run(square, squares(2, 1, 3), "squares")
    assert calls() == 3


def test_changed_settings_and_changed_inputs_run_again():
    jobs.run(square, squares(1), "squares")
    Path("input").write_text("two")
    jobs.run(square, squares(1), "squares")
    assert calls() == 2


def test_failures_come_together_at_the_end_and_the_rest_is_done():
    with pytest.raises(RuntimeError, match=r"2 of 3 jobs failed(.|\n)*x is -1(.|\n)*x is -2"):
        jobs.run(square, squares(-1, 5, -2), "squares", workers=1)
    (done,) = jobs.FOLDER.rglob("result.json")
    assert json.loads(done.read_text()) == {"square": 25}


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
    monkeypatch.setattr(jobs, "CONNECTION_SECONDS", 1)
    with pytest.raises(ValueError, match=r"no Dask scheduler answers at tcp://127.0.0.1:9 .*say null"):
        jobs.run(square, squares(1), "squares", workers="tcp://127.0.0.1:9")


def test_every_worker_that_trains_has_a_gpu_of_its_own(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    results = [result for _, result in jobs.run(gpu, squares(1, 2, 3, 4, 5, 6), "gpus", on_gpu=True)]
    assert {result["gpu"] for result in results} == {"5", "7"}
    assert len({(result["process"], result["gpu"]) for result in results}) == 2
