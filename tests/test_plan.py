"""What the planner counts is what the stages do: hand arithmetic, the stages' own plans, and jobs on the disk."""

import json
import math
import os
from pathlib import Path

import pandas as pd
import pytest
import torch
import yaml
from dvc.utils.serialize import dump_yaml

from stages.attention.counts import model_parameters, training_flops
from stages.runner import handover, jobs, progress
from stages.schema import scales
from stages.schema.settings import Settings
from stages.tools.planner import __main__ as plan
from stages.tools.planner import work
from stages.tools.planner.work import Amounts

ROOT = Path(__file__).parents[1]


def settings_of(edit=None, scale="laptop") -> Settings:
    params = yaml.safe_load(scales.read(scale))
    if edit:
        edit(params)
    return Settings.model_validate(params)


def known(settings: Settings) -> Amounts:
    """Every split has 10 examples of 20 tokens, every question one window of 3 + 8 + 21."""
    names = (*settings.tasks.names, *settings.tasks.questions.names)
    splits = ("train", "validation", "validation_matched", "validation_mismatched")
    lengths = dict.fromkeys(settings.tasks.names, 20.0) | {"question": 8.0, "context": 21.0, "triviaqa": 21.0}
    examples = {(name, split): 10 for name in names for split in splits}
    return Amounts(2000, {"train": 1000, "validation": 10}, examples, lengths, tasks=True)


def small(params: dict) -> None:
    params["operators"] = ["original", "shared"]
    params["pretraining"] |= {"seeds": [1, 2], "steps": 100, "batch_size": 4, "warmup_steps": 10}
    params["pretraining"] |= {"evaluation_interval": 30, "sequence_length_warmup": {"share": 0.5, "length": 16}}
    params["finetuning"]["courtois2024"] |= {"seeds": [1, 2, 3], "epochs": 5}
    params["tasks"]["names"] = ["sst2", "mnli", "rte"]
    params["noise"] |= {"tasks": ["sst2", "mnli"], "levels": [0.0, 0.2, 0.4], "seeds": [1, 2], "text": ["typos"]}
    params["cross_domain"]["tasks"] = ["mnli", "rte"]
    params["cross_domain"]["positive_labels"]["rte"] = ["entailment"]
    params["timing"]["tasks"] = ["mnli"]
    params["convergence"] |= {"steps": [50, 100], "tasks": ["sst2", "rte"], "seeds": [1, 9]}
    params["question_answering"] |= {"tasks": ["squad1", "squad1_triviaqa"], "seeds": [1], "epochs": 2}


def counted(settings: Settings, stage: str, operator: str | None = None) -> pd.DataFrame:
    """The jobs of a stage, or those of one operator among them."""
    jobs = work.planned(settings, known(settings)).query(f"stage == '{stage}'")
    return jobs[[operator in (None, run.operator) for run in jobs["run"]]]


def test_counts_agree_with_hand_arithmetic():
    settings = settings_of(small)
    expected = {  # runs and tokens of both operators
        "pretraining": (4, 2 * 2 * (100 * 4 + 4 * 10) * 32),  # validated after steps 30, 60, 90 and 100
        # two operators and the one that is not pre-trained; mnli has two validation splits
        "finetuning": (3 * 2 * 3 * 3, 3 * 2 * 3 * (3 * 5 + 4) * 10 * 20),
        "noise": (2 * 2 * 2 * 3, 2 * 2 * 3 * (1 + 2 * 2 + 2 * 2) * 3 * 10 * 20),
        "cross_domain": (2 * 2 * 2 * 3, 2 * 2 * 3 * 2 * 3 * 10 * 20),
        # two seeds from step 50; from step 100 only seed 9, for seed 1 is stage finetuning's
        "convergence": (2 * 2 * 2 * 3, 2 * 2 * 2 * 3 * (5 + 1) * 10 * 20),
        "question_answering": (2 * 2 * 3, 2 * 2 * (3 * 2 + 2) * 10 * 32),  # TriviaQA, and both tasks
    }
    jobs = work.planned(settings, known(settings)).groupby("stage")["tokens"]
    assert {name: (len(jobs.get_group(name)), round(jobs.get_group(name).sum())) for name in expected} == expected


def test_operations_are_tokens_times_those_of_a_token_at_the_length_of_their_sequences():
    settings = settings_of(small)
    model = settings.models["tiny"].model_dump()
    first, _ = counted(settings, "pretraining", "shared")["flops"]
    short, whole = (training_flops("shared", model, 2000, length, 0.3) for length in (16, 32))
    assert first == pytest.approx(50 * 4 * 32 * (short + whole) + 4 * 10 * 32 * whole / 3)


def test_a_run_from_weights_that_are_not_pretrained_takes_what_one_of_the_reference_does():
    bare, pretrained = (counted(settings_of(small), "finetuning", name) for name in ("not_pretrained", "original"))
    assert bare["flops"].tolist() == pretrained["flops"].tolist()
    assert not bare["bytes"].any() and pretrained["bytes"].all()


def test_epochs_of_an_unknown_corpus_leave_the_work_unknown(untimed):
    settings = settings_of(lambda params: params["pretraining"].update(steps=None, epochs=20, batch_size=64))
    trained = 313 * 64 * 32  # tokens of as many steps, and the validation at every evaluation
    tested = math.ceil(313 / settings.pretraining.evaluation_interval) * 10 * 32
    assert counted(settings, "pretraining")["tokens"].iloc[0] == pytest.approx(trained + tested)
    run = work.planned(settings, work.amounts(settings)).iloc[0]
    assert run["bytes"] and math.isnan(run["tokens"]) and math.isnan(run["flops"])


def test_disk_counts_every_copy():
    settings = settings_of(small)
    size = settings.models["tiny"].model_dump() | {"vocab_size": 2000}
    masked_lm, classifier = (
        4 * model_parameters(f"{kind}_parameters", "original", size) for kind in ("masked_lm", "classifier")
    )
    pretrained, tuned = (counted(settings, stage)["bytes"].iloc[0] for stage in ("pretraining", "finetuning"))
    assert pretrained == (3 + 3 * (1 + 3)) * masked_lm  # the state; the last model and those of steps 0, 50 and 100
    assert tuned == 3 * classifier


def test_windows_are_those_of_question_answering():
    settings = settings_of(lambda params: params["question_answering"].update(maximum_length=31, stride=8))
    answered = counted(settings, "question_answering").iloc[-1]
    assert answered["length"] == 27.5  # two windows of 20 and 13 tokens of 21, each after 11 of the question
    assert answered["tokens"] == 2 * 27.5 * 10 * (settings.question_answering.epochs + 1)


@pytest.fixture
def untimed(monkeypatch, tmp_path):
    """The planner in an empty checkout, where every operation takes as long."""
    monkeypatch.setattr(plan, "pace", lambda *_: 1e-9)
    monkeypatch.setattr("sys.argv", ["planner"])
    for name in ("dvc.yaml", "data/published", "data/original", "my_operators.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.setattr(progress, "LOCK", tmp_path / "dvc.lock")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_jobs_go_in_rounds_of_as_many_as_work_at_once(untimed, monkeypatch):
    (untimed / "params.yaml").write_text(scales.read("laptop"))
    monkeypatch.setattr(plan, "workers", lambda settings, stage: 2)
    monkeypatch.setattr("time.process_time", lambda: 6.0)
    job = ("noise", "noise", "tiny", "r", None, 1.0, 1.0, 12e9, 0)
    monkeypatch.setattr(work, "planned", lambda *_: pd.DataFrame([job] * 5, columns=work.COLUMNS))
    plan.main()
    assert json.loads(Path("data/plan.json").read_text())["seconds"] == {"noise": 6 + 3 * 12}


@pytest.mark.parametrize("scale", scales.names())
def test_every_scale_is_planned_without_data_and_every_stage_is_named(scale, untimed, capsys):
    (untimed / "params.yaml").write_text(scales.read(scale))
    plan.main()
    said = capsys.readouterr().out
    assert all(stage in said for stage in handover.pipeline())
    assert json.loads(Path("data/plan.json").read_text())["seconds"]["finetuning"] > 0


def test_too_little_disk_is_a_warning(untimed, capsys, monkeypatch):
    (untimed / "params.yaml").write_text(scales.read("laptop"))
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000}))
    plan.main()
    assert "WARNING" in capsys.readouterr().out


@pytest.mark.parametrize(("sequences", "tasks"), [({}, True), ({"train": 1}, False)])
def test_of_data_that_are_not_there_alone_it_is_said_what_is_taken(sequences, tasks, untimed):
    rows = pd.DataFrame({"stage": ["noise"], "size": ["tiny"], "bytes": [0]}).set_index(["stage", "size"])
    said = "".join(plan.remarks(settings_of(), Amounts(2000, sequences, {}, {}, tasks), rows))
    assert ("Until data/tokens" in said, "Until data/tasks" in said) == (not sequences, not tasks)


def lock_of(*commands: str, **stages: dict) -> None:
    dump_yaml(progress.LOCK, {"schema": "2.0", "stages": {name: {} for name in commands} | stages})


def test_jobs_of_finished_inputs_are_done_until_the_model_that_they_start_from_is_newer(untimed):
    settings = settings_of(small)
    runs = work.planned(settings, work.amounts(settings))
    tuned = runs.loc[runs["stage"] == "finetuning", "run"].iloc[0]
    folder, model = jobs.FOLDER / "finetune" / "0", Path(tuned.weights, "model.safetensors")
    for path in (model, folder / "result.json"):
        path.parent.mkdir(parents=True)
        path.touch()
    (folder / "job.json").write_text(json.dumps({"name": tuned.name, "settings": tuned.content}))

    def finished() -> pd.DataFrame:
        return runs[plan.done(settings, runs)]

    assert finished().empty  # what it reads is still to be made
    names = list(handover.commands(settings))
    before = [name for name in names[: names.index("finetuning")] if name != "pretraining@shared-tiny"]
    lock_of(*before)
    assert {run.operator for run in finished()["run"]} == {"original"}
    lock_of(*before, "pretraining@shared-tiny")
    assert finished().query("stage == 'finetuning'")["run"].tolist() == [tuned]
    os.utime(model, (2e9, 2e9))
    assert finished().query("stage == 'finetuning'").empty


def test_numbers_that_dvc_writes_in_its_way_and_settings_that_are_left_out_are_those_of_today(untimed):
    settings, params = settings_of(), yaml.safe_load((ROOT / "stages/scales/laptop.yaml").read_text())
    used = {key: params[key] for key in ("pretraining", "variants", "translation")}
    lock_of(parameters={"params": {"params.yaml": used}})
    assert "1e-12" in progress.LOCK.read_text()  # in YAML 1.1 a text
    assert progress.finished(settings, "parameters") == ["parameters"]


def test_what_has_read_something_that_was_written_anew_since_is_not_made(untimed):
    settings, tokens = settings_of(), untimed / "data/tokens"
    tokens.touch()
    written, read = {"path": str(tokens), "md5": "1"}, {"path": str(tokens), "md5": "1"}
    lock_of(tokenization={"outs": [written]}, timing={"deps": [read]})
    assert progress.finished(settings, "tokenization", "timing") == ["tokenization", "timing"]
    lock_of(tokenization={"outs": [written | {"md5": "2"}]}, timing={"deps": [read]})
    assert progress.finished(settings, "tokenization", "timing") == ["tokenization"]


def test_what_was_made_of_other_settings_is_not_counted(untimed):
    settings = settings_of()
    lock_of(tasks={"params": {"params.yaml": {"tasks": settings.tasks.model_dump(mode="json")}}})
    assert progress.finished(settings, "corpus", "tasks") == ["tasks"]
    assert not progress.finished(settings_of(lambda params: params["tasks"].update(seed=7)), "tasks")


@pytest.mark.parametrize("recipe", ["pretraining", "courtois2024", "question_answering"])
def test_timing_gives_seconds_an_operation(recipe, monkeypatch):
    monkeypatch.setattr(plan, "SECONDS", 0.1)
    threads = torch.get_num_threads()
    assert 0 < plan.pace(settings_of(), 100, "tiny", recipe, 12) < 1e-6
    torch.set_num_threads(threads)
