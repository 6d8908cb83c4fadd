"""What is said at the start of a command: what is still to come, and how long it takes by what has been seen."""

import json
import time
from pathlib import Path

import pytest
import yaml

from stages.files.paths import RUNS
from stages.runner import bars, handover, progress
from stages.runner.handover import Command, pipeline
from stages.schema.settings import Settings

ROOT = Path(__file__).parents[1]
OPERATORS = ("original", "shared")
TRAINED = [f"pretraining@{operator}-tiny" for operator in OPERATORS]
TUNED = ("finetuning", "noise", "cross_domain", "convergence", "question_answering")


@pytest.fixture
def settings() -> Settings:
    params = yaml.safe_load((ROOT / "stages/scales/laptop.yaml").read_text())
    return Settings.model_validate(params | {"operators": OPERATORS})


@pytest.fixture
def known(settings, monkeypatch, tmp_path) -> dict[str, Command]:
    """Every command, in a folder where nothing has been made."""
    monkeypatch.chdir(tmp_path)
    Path("params.yaml").touch()
    monkeypatch.setattr(progress, "finished", lambda *_: [])
    return handover.commands(settings)


def usual(names) -> float:
    return sum(progress.USUAL[name.partition("@")[0]] for name in names)


def took(name: str, seconds: float) -> None:
    RUNS.mkdir(parents=True, exist_ok=True)
    (RUNS / f"{name.replace('@', '-')}.json").write_text(json.dumps({"seconds": seconds}))


def test_usual_times_are_those_of_stages():
    assert progress.USUAL.keys() <= pipeline().keys()


def test_no_command_reads_what_a_later_one_writes(known):
    names = list(known)
    for place, name in enumerate(names):
        later = {path for other in names[place + 1 :] for path in known[other].writes}
        assert not any(progress.touch(path, later) for path in known[name].reads), name


def test_in_a_fresh_clone_all_is_to_come_and_takes_its_usual_time(settings, known, capsys):
    progress.report(settings, "settings")
    to_go = progress.duration(usual(known))
    assert capsys.readouterr().out == (f"settings is 1 of {len(known)}: 0% of the work is done, about {to_go} to go\n")
    progress.report(settings, "a stage of somebody else's")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("running", "missing", "others"),
    [
        ("report", (), ()),
        ("settings", (), ()),  # whose output never changes
        ("noise", (), ("analysis", "report")),
        ("analysis", ("report",), ("report",)),
        (TRAINED[0], TRAINED, (TRAINED[1], *TUNED, "analysis", "report")),
    ],
)
def test_what_reads_something_that_changes_is_to_come_and_nothing_else(
    running, missing, others, settings, known, monkeypatch
):
    monkeypatch.setattr(progress, "finished", lambda _, *asked: [name for name in asked if name not in missing])
    assert progress.still_to_come(settings, known, running) == [name for name in known if name in {running, *others}]


def test_commands_that_have_ended_correct_those_of_their_stage_and_together_all_others(known):
    left = [name for name in known if name not in (TRAINED[0], "tasks")]
    took(TRAINED[0], 3 * usual([TRAINED[0]]))
    took("tasks", usual(["tasks"]))
    took("report", 1e6)  # of an earlier run, and to be made anew
    seconds = progress.expected(known, left)
    factor = (60 + 3 * usual([TRAINED[0]]) + usual(["tasks"])) / (60 + usual([TRAINED[0], "tasks"]))
    assert seconds[TRAINED[1]] == pytest.approx(3 * usual([TRAINED[1]]))
    assert seconds["tasks"] == usual(["tasks"])
    assert seconds["report"] == pytest.approx(usual(["report"]) * factor)


def test_the_planner_is_believed_until_params_yaml_is_edited(known):
    progress.write_plan({"report": 5000.0})
    assert progress.expected(known, list(known))["report"] == 5000.0
    assert progress.expected(known, list(known))["audit"] == usual(["audit"])
    Path("params.yaml").write_text("edited")
    assert progress.expected(known, list(known))["report"] == usual(["report"])


def test_a_stage_that_was_not_planned_corrects_none_that_was(known):
    progress.write_plan(dict.fromkeys(TRAINED, 5000.0))
    took("corpus", 7200)
    seconds = progress.expected(known, [name for name in known if name != "corpus"])
    assert seconds[TRAINED[0]] == 5000.0 and seconds["filtering"] > 100 * usual(["filtering"])


def test_a_damaged_plan_is_named(known):
    progress.PLAN.parent.mkdir()
    progress.PLAN.write_text("{")
    with pytest.raises(ValueError, match=r"data/plan\.json: damaged; delete it"):
        progress.expected(known, list(known))


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (59.4, "59 s"), (90, "1.5 min"), (1000, "17 min"), (5400, "1.5 h")],
)
def test_a_duration_is_said_in_the_largest_unit_that_it_fills(seconds, said):
    assert progress.duration(seconds) == said


def test_without_a_terminal_work_says_again_and_again_where_it_is_and_draws_nothing(monkeypatch, capsys):
    monkeypatch.setattr(bars, "EVERY", 0.01)
    with bars.Bar(total=24, desc="finetuning") as bar:
        bar.update(5)
        while "finetuning: 5 of 24, 00:0" not in (said := capsys.readouterr()).out:
            assert said.err == ""
    for _ in bars.Bar(range(3), "steps"):
        pass
    assert capsys.readouterr().err == ""


def test_what_is_silent_says_nothing(monkeypatch, capsys):
    monkeypatch.setattr(bars, "EVERY", 0.001)
    for _ in bars.Bar(range(3), "steps", silent=True):
        time.sleep(0.01)
    assert capsys.readouterr() == ("", "")
