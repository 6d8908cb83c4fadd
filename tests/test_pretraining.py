"""Pre-training: batches, resumption, divergence, micro-batches, several processes."""

import json
import signal
import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from stages.files.storage import compute_sha256
from stages.masked_lm import batches
from stages.masked_lm import steps as masked_lm
from stages.masked_lm.corpus import Corpus
from stages.masked_lm.run import count_steps
from stages.pretraining import loop
from stages.pretraining.probes import measure_scores
from stages.training import checkpoints, distributed
from tests.places import ROOT
from tests.processes import run
from tests.toy import VOCABULARY, make_run, remove_probes, save_pretrained


def test_every_operator_sees_the_same_batches_and_every_epoch_sees_every_sequence():
    order = np.concatenate([batches.draw_batch_indices(7, step, 4, 10) for step in range(5)])
    assert sorted(order[:10]) == sorted(order[10:]) == list(range(10))
    assert list(order[:10]) != list(order[10:])
    assert list(batches.draw_batch_indices(8, 0, 4, 10)) != list(order[:4])


def test_masks_and_dropout_are_drawn_anew_for_every_step_and_dropout_for_every_process(tokens, monkeypatch):
    masks, dropout = [], []
    draw, seed = batches.mask_tokens, masked_lm.seed_torch
    monkeypatch.setattr(batches, "mask_tokens", lambda *given: masks.append(given[-1].initial_seed()) or draw(*given))
    monkeypatch.setattr(masked_lm, "seed_torch", lambda *given: dropout.append(given) or seed(*given))
    monkeypatch.setattr(masked_lm, "count_processes", lambda: 2)
    for rank in (0, 1):
        monkeypatch.setattr(masked_lm, "find_rank", lambda rank=rank: rank)
        trainer = masked_lm.Trainer(make_run(), Corpus.open(tokens))
        for step in range(3):
            trainer.advance(step)
    assert masks[:3] == masks[3:] and len(set(masks)) == 3
    # the first call of a process draws the weights, which are the same in all
    assert dropout[0] == dropout[4] and len(set(dropout)) == 1 + 2 * 3


@pytest.mark.parametrize("operator", ["pairwise", "hadamard"])
def test_probes_are_logged_and_change_nothing(operator, tokens, tmp_path):
    plain, weights = save_pretrained(tokens, tmp_path / "a", operator)
    probed, same_weights = save_pretrained(tokens, tmp_path / "b", operator, probes=True)
    assert weights == same_weights
    assert [entry | {"probes": {}} for entry in probed] == plain
    first, last = probed[0]["probes"], probed[-1]["probes"]
    assert set(first) == {"score_spread", "self_weight"}
    assert last["score_spread"] > 0 and 0 < last["self_weight"] < 1


def test_the_curves_of_all_runs_stand_in_one_table_while_they_go_on(tmp_path):
    table = tmp_path / "live.csv"
    for seed, steps, last in ((1, (4,), False), (2, (4, 8), False), (1, (4, 8), True)):
        log = [{"step": step, "validation_loss": 1 / step, "probes": {"score_spread": seed}} for step in steps]
        run = make_run("shared").model_copy(update={"seed": seed, "curves": ("shared-toy-1.csv", "shared-toy-2.csv")})
        loop.show_curves(table, run, log, last)
        assert len(pd.read_csv(table)) == (4 if last else 1)  # joined at first, then not for a while, and at the end
    drawn = pd.read_csv(table)
    assert list(drawn.columns) == ["operator", "size", "seed", "step", "validation_loss", "score_spread"]
    assert drawn[["seed", "step", "validation_loss"]].values.tolist() == [
        [seed, step, 1 / step] for seed in (1, 2) for step in (4, 8)
    ]


@pytest.mark.parametrize("empty", ["notes.csv", "shared-toy-2.csv"])
def test_the_table_for_watching_reads_curves_of_the_plan_and_never_stops_a_run(empty, tmp_path, capsys):
    (tmp_path / "live").mkdir()
    (tmp_path / "live" / empty).touch()
    run = make_run("shared").model_copy(update={"curves": ("shared-toy-1.csv", "shared-toy-2.csv")})
    loop.show_curves(tmp_path / "live.csv", run, [{"step": 1, "probes": {}}], last=True)
    assert (tmp_path / "live.csv").exists() == (empty == "notes.csv")
    assert ("live.csv: not updated (No columns" in capsys.readouterr().out) == (empty != "notes.csv")


def test_a_step_of_short_blocks_has_fewer_operations(tokens, tmp_path):
    trainer = masked_lm.Trainer(make_run(), Corpus.open(tokens))
    made = loop.Loop(trainer, tmp_path / "checkpoint", {}, tmp_path / "live.csv")
    assert made._count_operations(0) < made._count_operations(trainer.steps - 1)


def test_the_spread_of_scores_leaves_a_token_s_score_on_itself_out():
    A = torch.tensor([[[[9.0, 1.0, 3.0], [5.0, 9.0, 5.0], [0.0, 4.0, 9.0]]]])
    spreads = [2**0.5, 0.0, 8**0.5]
    assert measure_scores(A)["score_spread"] == pytest.approx(sum(spreads) / 3)


MOMENTS = {  # the function that never ends when called the n-th time, having done half of its work
    "while it writes a checkpoint": ("checkpoints.save_file", 3, "Path(arguments[1]).write_bytes(b'half')"),
    "while it writes a kept model": ("masked_lm.OperatorBertForMaskedLM.save_pretrained", 2, "arguments[1].mkdir()"),
}
PROGRAM = """
import sys, time, torch
from pathlib import Path
from stages.masked_lm import steps as masked_lm
from stages.training import checkpoints
from stages.pretraining import loop as pretraining
from tests.toy import make_run

torch.set_num_threads(1)
original, calls = {function}, []

def interrupted(*arguments):
    calls.append(arguments)
    if len(calls) < {call}:
        return original(*arguments)
    {half}
    print("now", flush=True)
    time.sleep(600)

{function} = interrupted
pretraining.train(make_run(), *map(Path, sys.argv[1:]))
"""


def test_the_training_loss_is_the_mean_since_the_last_evaluation(tokens, tmp_path):
    by_step, by_three = [save_pretrained(tokens, tmp_path / f"{n}", evaluation_interval=n)[0] for n in (1, 3)]
    losses = [entry["training_loss"] for entry in by_step]
    for number, entry in enumerate(by_three):
        interval = losses[3 * number : 3 * number + 3]
        assert min(interval) < entry["training_loss"] < max(interval)


def test_a_run_that_ends_between_evaluations_logs_the_losses_of_all_its_steps(tokens, tmp_path, monkeypatch):
    apart = {"evaluation_interval": 4, "checkpoint_interval": 3}
    undisturbed = save_pretrained(tokens, tmp_path / "a", **apart)
    apply, calls = masked_lm.apply_gradients, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return apply(*arguments)

    monkeypatch.setattr(masked_lm, "apply_gradients", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_pretrained(tokens, tmp_path / "b", **apart)
    assert save_pretrained(tokens, tmp_path / "b", **apart) == undisturbed
    # the second process began after the checkpoint at step 3
    assert len(calls) == 4 + 9 - 3


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_process_killed_at_any_moment_continues_bit_for_bit(moment, tokens, tmp_path):
    undisturbed = save_pretrained(tokens, tmp_path / "a")
    function, call, half = MOMENTS[moment]
    folder = tmp_path / "b"
    folder.mkdir()
    program = PROGRAM.format(function=function, call=call, half=half)
    paths = (str(path) for path in (tokens, folder, folder / "live.csv"))
    command = [sys.executable, "-c", program, *paths]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stdout.readline() == "now\n"
        process.send_signal(signal.SIGKILL)
    assert not (folder / "model").exists()  # it was killed on the way
    assert save_pretrained(tokens, folder) == undisturbed
    assert compute_sha256(folder / "intermediate_models") == compute_sha256(tmp_path / "a/intermediate_models")
    assert not list(folder.glob(".checkpoint*")) and not list((folder / "intermediate_models").glob(".*"))


def test_the_models_of_the_listed_steps_are_kept_and_that_of_step_0_is_what_the_run_starts_from(tokens, tmp_path):
    save_pretrained(tokens, tmp_path / "a")
    kept = {path.name for path in (tmp_path / "a/intermediate_models").iterdir()}
    assert kept == {"step-0", "step-3", "step-6"}
    states = [load_file(tmp_path / "a/intermediate_models" / name / "model.safetensors") for name in sorted(kept)]
    first, *later = (state["bert.encoder.layer.0.attention.self.query.weight"] for state in states)
    assert not torch.equal(*later)
    built = dict(masked_lm.build_model(make_run(), VOCABULARY).named_parameters())
    assert torch.equal(first, built["bert.encoder.layer.0.attention.self.query.weight"])


def test_a_step_that_is_wanted_later_is_gone_to_again_and_changes_nothing_else(tokens, tmp_path):
    whole, folder = tmp_path / "a", tmp_path / "b"
    trained = save_pretrained(tokens, whole)
    save_pretrained(tokens, folder, saved_steps=(6,))
    assert save_pretrained(tokens, folder) == trained
    assert compute_sha256(folder / "intermediate_models") == compute_sha256(whole / "intermediate_models")


ERRORS = {
    "a step that diverges": (
        {"learning_rate": 1e30, "steps": 30, "gradient_clipping": 1e30, "evaluation_interval": 30},
        r"seed 1, step 3 \(training sequences \d+.*checkpoint: step 2 in .*lower the",
    ),
    "a last step that diverges": (
        {"learning_rate": 1e38, "steps": 1, "warmup_steps": 0, "saved_steps": ()},
        r"step 1: validation_loss is nan: the run has diverged",
    ),
    "no masked token": ({"mask_probability": 1e-9}, r"step 1: no token is masked; raise pretraining.mask_probability"),
    "a model after the last step": ({"saved_steps": (10,)}, r"convergence.steps: 10 is after the last of the 9 steps"),
}


@pytest.mark.parametrize(("changes", "message"), ERRORS.values(), ids=ERRORS)
def test_a_run_that_cannot_go_on_says_why(changes, message, tokens, tmp_path):
    with pytest.raises(ValueError, match=message):
        save_pretrained(tokens, tmp_path / "a", **changes)


def flipped(content: bytes) -> bytes:
    return content[:-9] + bytes([content[-9] ^ 1]) + content[-8:]


DAMAGE = {
    "a truncated file": lambda content: content[:1000],
    "a bit of a tensor": flipped,
    "the name of a moment": lambda content: content.replace(b"exp_avg_sq", b"exp_avg_sr", 1),
    "the step in its state": lambda content: content.replace(rb"\"step\": 9", rb"\"step\": 7", 1),
}


def test_a_run_whose_checkpoint_is_damaged_says_so_and_begins_anew(tokens, tmp_path, capsys):
    whole = save_pretrained(tokens, tmp_path / "a")
    path = tmp_path / "a/checkpoint.safetensors"
    for name, damage in DAMAGE.items():
        content = path.read_bytes()
        path.write_bytes(damage(content))
        assert path.read_bytes() != content, name
        assert save_pretrained(tokens, tmp_path / "a") == whole, name
        assert "checkpoint.safetensors: damaged, not a checkpoint of this run" in capsys.readouterr().out, name


def test_a_checkpoint_that_lacks_a_parameter_changes_nothing(tmp_path):
    one, more = torch.nn.Sequential(torch.nn.Linear(2, 2)), torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in "ab"))
    before = torch.nn.utils.parameters_to_vector(more.parameters())
    checkpoints.save(tmp_path / "c", one, torch.optim.AdamW(one.parameters()), {}, {})
    assert checkpoints.load(tmp_path / "c", more, torch.optim.AdamW(more.parameters()), {}) is None
    assert torch.equal(torch.nn.utils.parameters_to_vector(more.parameters()), before)


def test_a_full_disk_at_a_checkpoint_is_one_error_with_its_name(tokens, tmp_path, monkeypatch):
    def full(*_):
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(checkpoints, "save_file", full)
    with pytest.raises(OSError, match=r"checkpoint\.safetensors: .*No space left"):
        save_pretrained(tokens, tmp_path / "a")
    assert not list((tmp_path / "a").glob(".*"))


def test_the_checkpoint_of_other_settings_is_refused_with_both(tokens, tmp_path):
    save_pretrained(tokens, tmp_path / "a")
    with pytest.raises(ValueError, match=r"other settings(.|\n)*training\.\w+: 0\.01 there, 0\.02 here"):
        save_pretrained(tokens, tmp_path / "a", learning_rate=0.02)


def test_epochs_are_counted_in_steps_and_must_outlast_the_warm_up():
    assert count_steps(make_run(steps=None, epochs=3).training, sequences=10) == 8  # of 4 sequences
    with pytest.raises(ValueError, match=r"warmup_steps: 3 leaves nothing of the 3 steps"):
        count_steps(make_run(steps=None, epochs=1).training, sequences=10)


def test_short_blocks_come_first_for_their_share_of_the_steps():
    recipe = make_run().training
    assert [batches.choose_length(recipe, step, 9, 12) for step in range(9)] == [6] * 4 + [12] * 5


def test_micro_batches_give_the_losses_of_the_whole_batch(tokens, tmp_path):
    calm = {"hidden_dropout": 0.0, "attention_dropout": 0.0}
    whole, _ = save_pretrained(tokens, tmp_path / "a", **calm)
    log, _ = save_pretrained(tokens, tmp_path / "b", micro_batch_size=3, **calm)
    for one, other in zip(whole, log, strict=True):
        assert remove_probes(one) == pytest.approx(remove_probes(other), rel=1e-4)


TOGETHER = """
import json, os, sys, torch
from pathlib import Path
from stages.masked_lm import steps as masked_lm
from stages.runner import jobs
from stages.pretraining import loop as pretraining
from tests.toy import make_run

torch.set_num_threads(1)
TOKENS = Path(sys.argv[2])
whole, steps = masked_lm.apply_gradients, []

def dying(*arguments):
    steps.append(whole(*arguments))
    if len(steps) == int(sys.argv[3]):
        os._exit(9)
    return steps[-1]

masked_lm.apply_gradients = dying

def train(run, folder):
    return pretraining.train(run, TOKENS, folder, folder / "live.csv")

run = make_run("symmetric", **json.loads(sys.argv[1]))
[(folder, _)] = jobs.run(train, [jobs.Job("toy", run, (TOKENS,))], "pretraining", shared=True)
(Path.cwd() / "folder").write_text(str(folder))
"""


def test_two_processes_that_died_once_give_the_losses_and_weights_of_one(tokens, tmp_path):
    """With micro-batches of a single sequence; both processes resume from a checkpoint before the step of the kill."""
    calm = {"hidden_dropout": 0.0, "attention_dropout": 0.0, "micro_batch_size": 1}
    calm |= {"evaluation_interval": 4, "checkpoint_interval": 3}
    alone, _ = save_pretrained(tokens, tmp_path / "a", "symmetric", **calm)
    (tmp_path / "together.py").write_text(TOGETHER)
    launcher = ["python", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "together.py"]
    train = partial(run, tmp_path, *launcher, json.dumps(calm), str(tokens), OMP_NUM_THREADS="1")
    with pytest.raises(AssertionError, match="exitcode  : 9"):
        train("4")
    train("0")
    folder = tmp_path / (tmp_path / "folder").read_text()
    log = json.loads((folder / "result.json").read_text())["result"]["log"]
    for one, other in zip(alone, log, strict=True):
        shared = {key: other[key] for key in one}
        assert remove_probes(one) == pytest.approx(remove_probes(shared), rel=1e-4)
    weights = [load_file(path / "model/model.safetensors") for path in (tmp_path / "a", folder)]
    for name, value in weights[0].items():
        torch.testing.assert_close(weights[1][name], value, rtol=1e-3, atol=1e-4)


@pytest.fixture
def second_of_two(monkeypatch):
    """The environment that a launcher gives to the second of two processes."""
    for name, value in (("WORLD_SIZE", "2"), ("RANK", "1"), ("LOCAL_RANK", "1"), ("MASTER_ADDR", "127.0.0.1")):
        monkeypatch.setenv(name, value)


def test_a_process_says_that_it_waits_for_the_others_and_that_they_have_not_come(second_of_two, monkeypatch, capsys):
    def wait_in_vain(backend: str) -> None:
        assert "process 1 of 2 (RANK, WORLD_SIZE) waits" in capsys.readouterr().out
        raise torch.distributed.DistStoreError("Timed out waiting for clients")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.distributed, "init_process_group", wait_in_vain)
    with pytest.raises(ValueError, match=r"the 2 processes \(WORLD_SIZE\) cannot meet: Timed out .*`unset"):
        distributed.join()


def test_more_processes_than_gpus_and_a_local_rank_that_is_no_number_are_named(second_of_two, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ValueError, match="LOCAL_RANK is 1, but there are 1 GPUs; run `torchrun --nproc-per-node 1`"):
        distributed.join()
    monkeypatch.setenv("LOCAL_RANK", "")
    with pytest.raises(ValueError, match="LOCAL_RANK is '', expected a number below WORLD_SIZE, 2"):
        distributed.join()
