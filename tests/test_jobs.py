"""Jobs run once, fail together, and are redone when what decides their result has changed."""

import json
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
