"""What a stage has left is checked by the stage that reads it: damage stops with the file's name and the remedy."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from stages.files.paths import RUNS
from stages.runner import handover
from stages.schema.settings import load_settings

ROOT = Path(__file__).parents[1]
MODEL = {"operator": "original", "size": "tiny"}
HANDED = {  # maker, its arguments, a file of its, reader, its arguments
    "a shard of the corpus": ("corpus", {}, "data/corpus/part_1.jsonl.zst", "filtering", {}),
    "a kept shard": ("filtering", {}, "data/filtered/part_1.jsonl.zst", "tokenization", {}),
    "packed sequences": ("tokenization", {}, "data/tokens/train/part_1.bin", "pretraining", MODEL),
    "a task": ("tasks", {}, "data/tasks/rte/train.parquet", "baselines", {}),
    "pre-trained weights": (
        "pretraining", MODEL, "data/pretraining/original-tiny/seed-1/model.safetensors", "question_answering", {},
    ),
    "fine-tuned weights": (
        "finetuning", {}, "data/finetuning/courtois2024-original-tiny/m/model.safetensors", "noise", {},
    ),
    "observations": ("noise", {}, "data/observations/noise.csv", "analysis", {}),
}  # fmt: skip
SETTINGS = load_settings(ROOT / "stages/scales/laptop.yaml").model_copy(update={"operators": ("original",)})
DAMAGE = {
    "a flipped byte": lambda path: path.write_bytes(b"whale"),
    "a missing file": lambda path: path.unlink(),
}


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def handed(maker: str, arguments: dict, name: str, reader: str, its_arguments: dict) -> Path:
    """An input of the reader with one file, beside its other inputs; and the record of the maker."""
    for dep in yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"][reader]["deps"]:
        for argument, value in its_arguments.items():
            dep = dep.replace(f"${{item.{argument}}}", value)
        if dep.startswith("data/"):
            Path(dep).mkdir(parents=True, exist_ok=True)
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"whole")
    RUNS.mkdir(parents=True, exist_ok=True)
    record = {"stage": maker, "files": handover.output_digests(maker, arguments)}
    (RUNS / f"{'-'.join([maker, *arguments.values()])}.json").write_text(json.dumps(record))
    return path


@pytest.mark.parametrize("names", HANDED.values(), ids=list(HANDED))
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=list(DAMAGE))
def test_a_damaged_input_stops_its_reader_with_the_file_and_the_stage_that_makes_it_again(names, damage):
    maker, arguments, _, reader, its_arguments = names
    path = handed(*names)
    handover.require_inputs(SETTINGS, reader, its_arguments)
    damage(path)
    if reader == "analysis" and not path.exists():
        return handover.require_inputs(SETTINGS, reader, its_arguments)  # a pipeline may leave such a stage out
    target = "@".join(filter(None, (maker, "-".join(arguments.values()))))
    with pytest.raises(
        ValueError, match=rf"^{path}: (damaged, .*; delete it, and|missing, .*;) `dvc repro {target}` makes it again$"
    ):
        handover.require_inputs(SETTINGS, reader, its_arguments)


def test_damage_of_what_a_stage_does_not_read_is_left_to_those_that_do():
    path = handed(*HANDED["a task"])
    path.write_bytes(b"whale")
    Path("data/corpus").mkdir(parents=True, exist_ok=True)
    handover.require_inputs(SETTINGS, "filtering", {})


STRANGE = {
    "a copied seed": ("pre-trained weights", lambda path: shutil.copytree(path.parent, path.parents[1] / "seed-9")),
    "a linked seed": (
        "pre-trained weights",
        lambda path: (path.parents[1] / "seed-9").symlink_to(path.parent.absolute()),
    ),
    "a further task": ("a task", lambda path: shutil.copytree(path.parent, path.parents[1] / "rte2")),
    "a further shard": ("a kept shard", lambda path: shutil.copyfile(path, path.with_name("part_2.jsonl.zst"))),
    "observations by hand": ("observations", lambda path: shutil.copyfile(path, path.with_name("noise-mine.csv"))),
}


@pytest.mark.parametrize(("name", "add"), STRANGE.values(), ids=list(STRANGE))
def test_what_no_stage_has_left_stops_the_stage_that_would_count_it(name, add):
    path = handed(*HANDED[name])
    reader = (SETTINGS, *HANDED[name][3:])
    path.with_name(f".{path.name}.{'0' * 32}").write_bytes(b"half")  # a stage that was killed, or is at work
    handover.require_inputs(*reader)
    add(path)
    with pytest.raises(ValueError, match=r"^data/.*(seed-9|rte2|part_2|mine).*: no stage has left it .*delete it"):
        handover.require_inputs(*reader)


def test_a_record_that_is_damaged_itself_is_named():
    handed(*HANDED["a task"])
    (RUNS / "tasks.json").write_text('{"files": ')
    with pytest.raises(ValueError, match=r"data/runs/tasks\.json: damaged.*delete it, and `dvc repro tasks`"):
        handover.require_inputs(SETTINGS, "baselines", {})


def stage(name: str, folder: Path) -> subprocess.CompletedProcess:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "stages", name]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_a_byte_that_flips_between_two_stages_stops_the_second_with_one_line(tmp_path):
    params = yaml.safe_load((ROOT / "params.yaml").read_text())
    params["corpus"] |= {"documents": 60, "shards": 2}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(params))
    assert stage("corpus", tmp_path).returncode == 0
    shard = tmp_path / "data/corpus/part_2.jsonl.zst"
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    done = stage("filtering", tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        "error: data/corpus/part_2.jsonl.zst: damaged, not as its stage left it (data/runs/corpus.json has its "
        "SHA-256); delete it, and `dvc repro corpus` makes it again\n"
    )
    assert not (tmp_path / "data/jobs").exists()
