"""What the planner counts is what the stages do: hand arithmetic, published protocols, and a model on the disk."""

import re
from pathlib import Path

import pytest
import torch
import yaml
from dvc.utils.serialize import dump_yaml

from stages.common.attention.bert import OperatorBertForMaskedLM
from stages.common.attention.configuration import configuration
from stages.common.attention.counts import training_flops
from stages.common.attention.operators import OPERATORS
from stages.plumbing import done
from stages.plumbing.settings import Settings
from stages.plumbing.training_sections import Model
from stages.tools.planner import __main__ as plan
from stages.tools.planner import amounts, costs, pace, work
from stages.tools.planner.amounts import Amounts
from tests.toy import LENGTH, TOY, TRAINING, VOCABULARY

ROOT = Path(__file__).parents[1]
SCALES = sorted((ROOT / "stages" / "scales").glob("*.yaml"))
KINDS = ("training", "evaluation", "load")
SEQUENCES = {"train": 1000, "validation": 10}
ORIGINAL = {"operator": "original"}


def settings_of(edit=None, scale="laptop") -> Settings:
    params = yaml.safe_load((ROOT / "stages" / "scales" / f"{scale}.yaml").read_text())
    if edit:
        edit(params)
    return Settings.model_validate(params)


def known(settings: Settings) -> Amounts:
    """Every split has 10 examples of 20 tokens, every question one window of 3 + 8 + 21."""
    names = (*settings.tasks.names, "mnli")
    splits = ("train", "validation", "validation_matched", "validation_mismatched")
    sets = settings.tasks.questions.names
    return Amounts(
        vocabulary_size=2000,
        sequences=SEQUENCES,
        examples={(name, split): 10 for name in (*names, *sets) for split in splits},
        lengths=dict.fromkeys(names, (20.0,)),
        questions=dict.fromkeys(sets, ((8.0, 21.0),)),
        counted=frozenset(),
    )


def small(params: dict) -> None:
    params["operators"] = ["original", "shared"]
    params["pretraining"] |= {"seeds": [1, 2], "steps": 100, "batch_size": 4, "warmup_steps": 10}
    params["pretraining"] |= {"evaluation_interval": 30}
    params["finetuning"]["courtois2024"] |= {"seeds": [1, 2, 3], "epochs": 5}
    params["tasks"]["names"] = ["sst2", "mnli", "rte"]
    params["noise"] |= {"tasks": ["sst2", "mnli"], "levels": [0.0, 0.2, 0.4], "seeds": [1, 2], "text": ["typos"]}
    params["cross_domain"]["tasks"] = ["mnli", "rte"]
    params["cross_domain"]["positive_labels"]["rte"] = ["entailment"]
    params["timing"]["tasks"] = ["mnli"]
    params["convergence"] |= {"steps": [50, 100], "tasks": ["sst2", "rte"], "seeds": [1, 9]}
    params["question_answering"] |= {"tasks": ["squad1", "squad1_triviaqa"], "seeds": [1], "epochs": 2}


def counted(settings: Settings) -> dict[tuple[str, str], work.Work]:
    return {(each.stage, each.kind): each for each in work.planned(settings, known(settings))}


def test_counts_agree_with_hand_arithmetic():
    counts = counted(settings_of(small))
    expected = {  # runs and tokens of both operators
        ("pretraining", "pretraining"): (4, 2 * 2 * 100 * 4 * 32),
        ("pretraining", "evaluation"): (0, 2 * 2 * 4 * 10 * 32),  # after steps 30, 60, 90 and 100
        ("finetuning", "finetuning"): (2 * 3 * 2 * 3, 2 * 3 * 2 * 3 * 5 * 10 * 20),
        ("finetuning", "evaluation"): (0, 2 * 2 * 3 * 4 * 10 * 20),  # mnli has two splits
        ("noise", "evaluation"): (2 * 2 * 2 * 3, 2 * 2 * 3 * (1 + 2 * 2 + 2 * 2) * 3 * 10 * 20),
        ("cross_domain", "evaluation"): (2 * 2 * 2 * 3, 2 * 2 * 3 * 2 * 3 * 10 * 20),
        # two seeds from step 50; from step 100 only seed 9, for seed 1 is stage finetuning's
        ("convergence", "finetuning"): (2 * 2 * 2 * 3, 2 * 2 * 2 * 3 * 5 * 10 * 20),
        ("question_answering", "finetuning"): (2 * 2 * 3, 2 * 2 * 3 * 2 * 10 * 32),  # TriviaQA, and both tasks
        ("question_answering", "evaluation"): (0, 2 * 2 * 2 * 10 * 32),
    }
    assert {key: (counts[key].runs, round(counts[key].tokens)) for key in expected} == expected


def test_operations_of_pretraining_are_tokens_times_those_of_a_token():
    settings = settings_of(scale="courtois")
    for size in settings.sizes:
        [trained, _] = work.pretraining(settings, amounts.of(settings), size)
        model, tokens = settings.models[size].model_dump(), 200_000 * 256 * 512
        expected = sum(training_flops(operator, model, 30_522, 512, 0.15) for operator in settings.operators)
        assert trained.flops == pytest.approx(tokens * expected)
        assert trained.tokens == tokens * len(settings.operators)


def test_testing_takes_a_third_of_the_operations_of_training():
    counts = counted(settings_of(small))
    trained, tested = counts["finetuning", "finetuning"], counts["finetuning", "evaluation"]
    assert tested.flops / tested.tokens == pytest.approx(trained.flops / trained.tokens / 3)


def test_half_the_steps_halve_pretraining_alone():
    def half(params: dict) -> None:
        small(params)
        params["convergence"]["steps"] = [50]
        params["pretraining"]["evaluation_interval"] = 10

    def whole(params: dict) -> None:
        half(params)
        params["pretraining"]["steps"] = 200

    one, other = counted(settings_of(half)), counted(settings_of(whole))
    for key, each in one.items():
        if key[0] == "translation":
            continue  # its operations are not counted
        assert other[key].flops == pytest.approx(each.flops * (1 if key[0] != "pretraining" else 2)), key


def test_epochs_are_as_many_steps_as_the_corpus_has_batches():
    settings = settings_of(lambda params: params["pretraining"].update(steps=None, epochs=2, batch_size=64))
    assert work.steps_of(settings, known(settings)) == 32  # 2 x 1,000 / 64, rounded up


def test_an_open_number_of_embedded_documents_is_an_error():
    with pytest.raises(ValueError, match="corpus.documents"):
        amounts.of(settings_of(lambda params: params["corpus"].update(documents=None)))


def test_epochs_of_an_unknown_corpus_leave_the_work_unknown():
    settings = settings_of(lambda params: params["pretraining"].update(steps=None, epochs=2), scale="files")
    [trained] = work.pretraining(settings, amounts.of(settings), "mini")
    assert trained.runs and trained.tokens is None and trained.flops is None


def test_parameters_are_the_bytes_of_a_saved_model(tmp_path):
    size = Model(layers=2, hidden=128, heads=2, intermediate=512, positions=64)
    for operator in ("original", "pairwise", "shared"):
        model = OperatorBertForMaskedLM(configuration(operator, **size.model_dump(), vocab_size=2000))
        model.save_pretrained(tmp_path / operator)
        saved = sum(path.stat().st_size for path in (tmp_path / operator).iterdir())
        counted_here = work.parameters("masked_lm", {"operator": operator}, size, 2000)
        assert counted_here * 4 == pytest.approx(saved, rel=0.01)


@pytest.mark.parametrize("head", work.HEADS)
def test_parameters_are_those_of_a_built_model_with_any_operator(head):
    size = Model(layers=2, hidden=32, heads=2, intermediate=128, positions=16)
    for operator in OPERATORS:
        with torch.device("meta"):
            built = work.HEADS[head](configuration(operator, **size.model_dump(), vocab_size=100))
        counted_here = work.parameters(head, {"operator": operator}, size, 100)
        assert counted_here == sum(parameter.numel() for parameter in built.parameters()), operator


def test_disk_counts_every_copy():
    def alone(params: dict) -> None:
        small(params)
        params["operators"] = ["original"]

    settings = settings_of(alone)
    counts, size = counted(settings), settings.models["tiny"]
    model = 4 * work.parameters("masked_lm", ORIGINAL, size, 2000)
    classifier = 4 * work.parameters("classifier", ORIGINAL, size, 2000)
    # of a seed: the state (3), the checkpoint after step 50 (3), that after step 100 and the final model (6, equal)
    assert counts["pretraining", "pretraining"].bytes == 2 * (3 + 3 + 6 - 1) * model
    assert counts["finetuning", "finetuning"].bytes == 3 * 2 * 3 * 3 * classifier  # sst2, mnli and rte are tested
    assert counts["convergence", "finetuning"].bytes == 2 * 2 * classifier  # seed 9 from step 100, in data/jobs


def test_windows_are_those_of_question_answering():
    settings = settings_of(lambda params: params["question_answering"].update(maximum_length=31, stride=8))
    data = known(settings)
    assert work.windows_of(data, "squad1", settings.question_answering) == (2.0, 27.5)  # 20 + 13 tokens of 21


@pytest.fixture
def untimed(monkeypatch, tmp_path):
    """The planner in an empty checkout, where every operation takes a second."""

    class Everything(dict):
        def __missing__(self, key):
            return 1.0

    monkeypatch.setattr(plan, "measure", lambda *_: plan.Measured(Everything(), 0.0, 0.0, 0.5))
    monkeypatch.setattr(pace, "sampled", lambda *_: ([1.0, 1.0, 1.0], [100, 50]))
    monkeypatch.setattr("sys.argv", ["planner"])
    for name in ("dvc.yaml", "data/published", "data/original"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.setattr(done, "LOCK", tmp_path / "dvc.lock")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("scale", SCALES, ids=lambda path: path.stem)
def test_every_scale_is_planned_without_data_and_every_stage_is_named(scale, untimed, capsys):
    (untimed / "params.yaml").write_text(scale.read_text())
    plan.main()
    said = capsys.readouterr().out
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
    rows = {line.split()[0] for line in said.splitlines() if line}
    for stage, entry in stages.items():
        assert stage in said
        trains = "matrix" in entry
        assert not trains or stage in rows
    assert "One H100" in said and "free here" in said and "took 50% of the cores" in said


def test_the_papers_costs_are_computed_from_what_they_state():
    protocol = yaml.safe_load((ROOT / amounts.PROTOCOL).read_text())
    said = "\n".join([*costs.courtois(protocol), *costs.kowsher(protocol)])
    assert "200,000 steps x 256 x 512 = 2.6e10 tokens" in said
    assert "236,742 steps" in said and "946,970 steps" in said and "6.4e10 tokens" in said
    base = 200_000 * 256 * 512 * training_flops(
        "original", {"layers": 12, "hidden": 768, "heads": 12, "intermediate": 3072}, 30_522, 512, 0.15
    )  # fmt: skip
    assert costs.quantity(base) in said


def test_too_little_disk_is_a_warning(untimed, capsys, monkeypatch):
    (untimed / "params.yaml").write_text((ROOT / "stages/scales/laptop.yaml").read_text())
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000}))
    plan.main()
    assert "WARNING" in capsys.readouterr().out


def test_runs_go_in_rounds():
    shared = {"stage": "s", "size": "t", "kind": "pretraining", "recipe": "r", "tokens": 1.0, "length": 1.0, "bytes": 0}
    one = work.Work(commands=2, runs=6, flops=60.0, **shared)
    measured = plan.Measured({("t", "r", "training"): 1.0, ("t", "r", "load"): 2.0}, 5.0, 1.0, 1.0)
    assert plan.seconds_of([one], measured, 2) == 2 * (2 * 12 + 6)  # three runs of 12 seconds, two at once: two rounds


def lock_of(**stages: dict) -> None:
    dump_yaml(done.LOCK, {"schema": "2.0", "stages": stages})


def test_numbers_that_dvc_writes_in_its_way_and_settings_that_are_left_out_are_those_of_today(untimed):
    settings = settings_of()
    params = yaml.safe_load((ROOT / "stages/scales/laptop.yaml").read_text())
    used = {key: params[key] for key in ("pretraining", "variants", "translation")}
    lock_of(parameters={"params": {"params.yaml": used}})
    assert "1e-12" in done.LOCK.read_text()  # in YAML 1.1 a text
    assert done.made(settings, "parameters") == ["parameters"]


def test_what_has_read_something_that_was_written_anew_since_is_not_made(untimed):
    settings, tokens = settings_of(), untimed / "data/tokens"
    tokens.touch()
    written, read = {"path": str(tokens), "md5": "1"}, {"path": str(tokens), "md5": "1"}
    lock_of(tokenization={"outs": [written]}, timing={"deps": [read]})
    assert done.made(settings, "tokenization", "timing") == ["tokenization", "timing"]
    lock_of(tokenization={"outs": [written | {"md5": "2"}]}, timing={"deps": [read]})
    assert done.made(settings, "tokenization", "timing") == ["tokenization"]


def test_what_was_made_of_other_settings_is_not_counted(untimed):
    settings = settings_of()
    used = {"tasks": settings.tasks.model_dump(mode="json")}
    lock_of(tasks={"params": {"params.yaml": used}})
    assert done.made(settings, "corpus", "tasks") == ["tasks"]
    assert not done.made(settings_of(lambda params: params["tasks"].update(seed=7)), "tasks")


def test_commands_are_those_of_dvc_yaml_and_only_what_is_left_of_them_takes_time(untimed):
    settings = settings_of(lambda params: params.update(operators=["original", "shared"]))
    names = done.commands(settings, "finetuning", "tiny")
    expected = ["finetuning@courtois2024-original-tiny", "finetuning@courtois2024-shared-tiny"]
    assert list(names) == list(done.commands(settings, "finetuning")) == expected
    assert names[expected[1]] == {"protocol": "courtois2024", "operator": "shared", "size": "tiny"}
    assert done.commands(settings, "corpus", "tiny") == {"corpus": {}}
    known = amounts.of(settings)
    planned = [each for each in work.planned(settings, known) if each.stage == "finetuning"]
    measured = plan.Measured({(each.size, each.recipe, kind): 1.0 for each in planned for kind in KINDS}, 1.0, 1.0, 1.0)
    [before] = plan.training_rows(settings, planned, measured, 2)
    lock_of(**{expected[0]: {}})
    [after] = plan.training_rows(settings, planned, measured, 2)
    assert (before.done, after.done) == ("0/2", "1/2")
    assert after.seconds == before.seconds / 2


@pytest.mark.parametrize("text", ["about 3.2 billion", "4 x H100", "132 (wording: each)", "about 200,000 (Figure 2)"])
def test_numbers_are_read_from_what_a_paper_says(text):
    digits = float(re.search(r"[\d.,]+", text)[0].replace(",", ""))
    assert amounts.number(text) == digits * (1e9 if "billion" in text else 1)


def test_timing_gives_seconds_an_operation(tmp_path):
    threads = torch.get_num_threads()
    finetuning = settings_of().finetuning["courtois2024"].model_dump(mode="json")
    shared = {"size": TOY, "vocabulary_size": VOCABULARY, "length": LENGTH, "copy": 0}
    for masked, training in ((0.15, TRAINING), (0.0, finetuning)):
        timed = pace.timed(shared | {"masked": masked, "training": training}, tmp_path)
        assert set(timed) == {"training", "evaluation", "load", "share"} and min(timed.values()) > 0
    torch.set_num_threads(threads)


def test_lengths_are_counted_in_original_files(shared_data):
    def whole(params: dict) -> None:
        params["data"]["root"] = str(shared_data)
        params["tasks"]["questions"]["train_examples"] = None

    settings = settings_of(whole, scale="files")
    found = amounts.of(settings)
    assert found.counted == {*settings.tasks.names, *settings.tasks.questions.names}
    assert found.examples["squad1", "train"] == found.examples["squad2", "train"] == 3997
    for task, lengths in found.lengths.items():
        mean = sum(lengths) / len(lengths)
        assert mean == pytest.approx(amounts.LENGTHS["original"][task], rel=0.15), task
