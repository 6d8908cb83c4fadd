"""What the planner counts is what the stages do: hand arithmetic, the stages' own plans, and jobs on the disk."""

import json
import math
import os
from pathlib import Path

import pytest
import torch
import yaml
from dvc.utils.serialize import dump_yaml

from stages.attention.counts import model_parameters, training_flops
from stages.plumbing import done, handover, jobs, scales
from stages.plumbing.settings import Settings
from stages.tools.planner import __main__ as plan
from stages.tools.planner import amounts, pace, work
from stages.tools.planner.amounts import Amounts

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
    return Amounts(2000, {"train": 1000, "validation": 10}, examples, lengths)


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


def counted(settings: Settings) -> dict[str, list[work.Work]]:
    runs = work.planned(settings, known(settings))
    return {stage: [run for run in runs if run.stage == stage] for stage in dict.fromkeys(run.stage for run in runs)}


def test_counts_agree_with_hand_arithmetic():
    counts = counted(settings_of(small))
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
    found = {name: (len(counts[name]), round(sum(job.tokens for job in counts[name]))) for name in expected}
    assert found == expected


def test_operations_are_tokens_times_those_of_a_token_at_the_length_of_their_sequences():
    settings = settings_of(small)
    model = settings.models["tiny"].model_dump()
    [run] = [job for job in counted(settings)["pretraining"] if job.run.operator == "shared" and job.run.seed == 1]
    short, whole = (training_flops("shared", model, 2000, length, 0.3) for length in (16, 32))
    assert run.flops == pytest.approx(50 * 4 * 32 * (short + whole) + 4 * 10 * 32 * whole / 3)


def test_a_run_from_weights_that_are_not_pretrained_takes_what_one_of_the_reference_does():
    runs = counted(settings_of(small))["finetuning"]
    bare, pretrained = ([run for run in runs if run.run.operator == name] for name in ("not_pretrained", "original"))
    assert [run.flops for run in bare] == [run.flops for run in pretrained]
    assert not any(run.bytes for run in bare) and all(run.bytes for run in pretrained)


def test_epochs_of_an_unknown_corpus_leave_the_work_unknown():
    settings = settings_of(lambda params: params["pretraining"].update(steps=None, epochs=2, batch_size=64))
    assert work.pretraining_passes(settings, known(settings))[1][0] == pytest.approx(0.6 * 32 * 64 * 32)  # 32 steps
    [run, *_] = work.planned(settings, amounts.of(settings))
    assert run.bytes and math.isnan(run.tokens) and math.isnan(run.flops)


def test_disk_counts_every_copy():
    settings = settings_of(small)
    counts, size = counted(settings), settings.models["tiny"].model_dump() | {"vocab_size": 2000}
    masked_lm = 4 * model_parameters("masked_lm_parameters", "original", size)
    [run, *_] = counts["pretraining"]
    assert run.bytes == (3 + 3 * (1 + 3)) * masked_lm  # the state; the last model and those of steps 0, 50 and 100
    [run, *_] = counts["finetuning"]
    assert run.bytes == 3 * 4 * model_parameters("classifier_parameters", "original", size)


def test_windows_are_those_of_question_answering():
    settings = settings_of(lambda params: params["question_answering"].update(maximum_length=31, stride=8))
    assert work.windows_of(known(settings), "squad1", settings.question_answering) == (2, 27.5)  # 20 + 13 tokens of 21


@pytest.fixture
def untimed(monkeypatch, tmp_path):
    """The planner in an empty checkout, where every operation takes as long."""
    monkeypatch.setattr(pace, "measured", lambda _, __, runs: {(run.size, run.recipe): 1e-9 for run in runs})
    monkeypatch.setattr("sys.argv", ["planner"])
    for name in ("dvc.yaml", "data/published", "data/original", "my_operators.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.setattr(done, "LOCK", tmp_path / "dvc.lock")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_jobs_go_in_rounds_of_as_many_as_work_at_once(untimed, monkeypatch):
    (untimed / "params.yaml").write_text(scales.read("laptop"))
    monkeypatch.setattr(plan, "workers", lambda settings, stage: 2)
    monkeypatch.setattr("time.process_time", lambda: 6.0)
    monkeypatch.setattr(work, "planned", lambda *_: [work.Work("noise", "tiny", "r", None, 1.0, 1.0, 12e9, 0)] * 5)
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


def lock_of(*commands: str, **stages: dict) -> None:
    dump_yaml(done.LOCK, {"schema": "2.0", "stages": {name: {} for name in commands} | stages})


def test_jobs_of_finished_inputs_are_done_until_the_model_that_they_start_from_is_newer(untimed):
    settings = settings_of(small)
    runs = work.planned(settings, amounts.of(settings))
    [tuned, *_] = [run for run in runs if run.stage == "finetuning"]
    folder, model = jobs.FOLDER / "finetune" / "0", Path(tuned.run.weights, "model.safetensors")
    for path in (model, folder / "result.json"):
        path.parent.mkdir(parents=True)
        path.touch()
    (folder / "job.json").write_text(json.dumps({"name": tuned.run.name, "settings": tuned.run.content}))

    def finished() -> list[work.Work]:
        return [run for run, done in zip(runs, plan.done_of(settings, runs), strict=True) if done]

    assert not finished()  # what it reads is still to be made
    names = list(handover.commands(settings))
    before = [name for name in names[: names.index("finetuning")] if name != "pretraining@shared-tiny"]
    lock_of(*before)
    assert {run.run.operator for run in finished()} == {"original"}
    lock_of(*before, "pretraining@shared-tiny")
    assert [run for run in finished() if run.stage == "finetuning"] == [tuned]
    os.utime(model, (2e9, 2e9))
    assert tuned not in finished()


def test_numbers_that_dvc_writes_in_its_way_and_settings_that_are_left_out_are_those_of_today(untimed):
    settings, params = settings_of(), yaml.safe_load((ROOT / "stages/scales/laptop.yaml").read_text())
    used = {key: params[key] for key in ("pretraining", "variants", "translation")}
    lock_of(parameters={"params": {"params.yaml": used}})
    assert "1e-12" in done.LOCK.read_text()  # in YAML 1.1 a text
    assert done.finished(settings, "parameters") == ["parameters"]


def test_what_has_read_something_that_was_written_anew_since_is_not_made(untimed):
    settings, tokens = settings_of(), untimed / "data/tokens"
    tokens.touch()
    written, read = {"path": str(tokens), "md5": "1"}, {"path": str(tokens), "md5": "1"}
    lock_of(tokenization={"outs": [written]}, timing={"deps": [read]})
    assert done.finished(settings, "tokenization", "timing") == ["tokenization", "timing"]
    lock_of(tokenization={"outs": [written | {"md5": "2"}]}, timing={"deps": [read]})
    assert done.finished(settings, "tokenization", "timing") == ["tokenization"]


def test_what_was_made_of_other_settings_is_not_counted(untimed):
    settings = settings_of()
    lock_of(tasks={"params": {"params.yaml": {"tasks": settings.tasks.model_dump(mode="json")}}})
    assert done.finished(settings, "corpus", "tasks") == ["tasks"]
    assert not done.finished(settings_of(lambda params: params["tasks"].update(seed=7)), "tasks")


@pytest.mark.parametrize("recipe", ["pretraining", "courtois2024", "question_answering"])
def test_timing_gives_seconds_an_operation(recipe, monkeypatch):
    monkeypatch.setattr(pace, "SECONDS", 0.1)
    threads = torch.get_num_threads()
    assert 0 < pace.timed(settings_of(), 100, "tiny", recipe, 12) < 1e-6
    torch.set_num_threads(threads)
