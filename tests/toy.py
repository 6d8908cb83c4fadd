"""A model, a corpus and a recipe that train in a second, for the tests of training; and an operator of a user's."""

import ast
import json
from pathlib import Path
from textwrap import dedent

import numpy as np
import pandas as pd
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from stages.classification.runs import FinetuningRun
from stages.files.storage import compute_sha256, compute_source_digest
from stages.files.yaml_files import read_yaml
from stages.masked_lm.run import PretrainingRun
from stages.pretraining import loop as pretraining
from stages.schema.training_sections import Finetuning, Model, Pretraining
from stages.sequences.packing import INDEX, pack
from tests.places import ROOT

CLOCKED = ("tokens_per_second", "model_flop_utilisation")
MINE = ROOT / "my_operators.py"
OWN = dedent(str(ast.get_docstring(ast.parse(MINE.read_text()))).split("projected:\n\n")[1].split("\n\nAn edit")[0])
SPECIAL = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}
VOCABULARY, LENGTH = 60, 12
TOY = {"layers": 1, "hidden": 16, "heads": 2, "intermediate": 64, "positions": 16}
# A key that is not listed has its value in the scale.
LAPTOP = read_yaml(MINE.parent / "stages/scales/laptop.yaml")
TRAINING = LAPTOP["pretraining"] | {
    "seeds": [1],
    "steps": 9,
    "warmup_steps": 3,
    "batch_size": 4,
    "learning_rate": 1e-2,
    "betas": [0.9, 0.999],
    "initializer_range": 0.02,
    "hidden_dropout": 0.1,
    "attention_dropout": 0.1,
    "evaluation_interval": 2,
    "checkpoint_interval": 2,
    # A disturbance of a run meets both parts of the run.
    "sequence_length_warmup": {"share": 0.5, "length": 6},
}
FINETUNING = LAPTOP["finetuning"]["courtois2024"] | {
    "epochs": 8,
    "batch_size": 8,
    "learning_rates": [1e-2],
    "maximum_length": 16,
    "hidden_dropout": 0.1,
    "attention_dropout": 0.1,
}


def write_own_operator(path: Path, text: str = OWN) -> dict[str, str]:
    """The variant of a user's own operator, whose file is written."""
    path.write_text(text)
    return {"operator": "plain_queries", "operators_file": str(path), "operators_sha256": compute_source_digest(path)}


def pack_tokens(folder: Path) -> Path:
    """data/tokens of 10 training and 3 validation sequences."""
    stream = folder.with_name("stream.bin")
    splits = {}
    for split, sequences in (("train", 10), ("validation", 3)):
        ids = np.random.default_rng(sequences).integers(5, VOCABULARY, (sequences, LENGTH)).astype("<u2")
        ids[:, 0], ids[:, -1] = SPECIAL["[CLS]"], SPECIAL["[SEP]"]
        ids.tofile(stream)
        splits[split] = pack([stream], folder / split, LENGTH)
    index = {"sequence_length": LENGTH, "vocabulary_size": VOCABULARY, "special": SPECIAL, "splits": splits}
    (folder / INDEX).write_text(json.dumps(index))
    return folder


def write_word_tokenizer(path: Path) -> Path:
    """tokenizer.json of the words w5, w6, ..., whose ids are the numbers 5, 6, ...."""
    words = Tokenizer(models.WordLevel(SPECIAL | {f"w{number}": number for number in range(5, VOCABULARY)}, "[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    path.parent.mkdir(parents=True, exist_ok=True)
    words.save(str(path))
    return path


def write_tokens_and_task(data: Path, task: str) -> None:
    """data/tokens with a tokenizer, and data/tasks/TASK of 24 examples in either split."""
    data.mkdir(parents=True)
    pack_tokens(data / "tokens")
    write_word_tokenizer(data / "tokens/tokenizer/tokenizer.json")
    frame = pd.DataFrame({"text_a": ["w7 w8", "w9", "w5 w6 w7"] * 8, "text_b": None, "label": [0, 1, 1] * 8})
    (data / "tasks" / task).mkdir(parents=True)
    for split in ("train", "validation"):
        frame.to_parquet(data / "tasks" / task / f"{split}.parquet")


def make_run(operator="original", saved_steps=(0, 3, 6), **changes):
    training = Pretraining.model_validate(TRAINING | changes)
    names = {"operator": operator, "variant": {"operator": operator}, "size": "toy", "seed": 1}
    return PretrainingRun(**names, model=Model(**TOY), training=training, saved_steps=saved_steps)


def make_tuned_run(weights: Path, task="sst2", **changes):
    columns = {"operator": "original", "size": "toy"}
    names = {"task": task, "weights": str(weights), "pretraining_seed": 2, "seed": 1, "columns": columns}
    return FinetuningRun(**names, training=Finetuning.model_validate(FINETUNING | changes))


def save_pretrained(tokens, folder, operator="original", **changes):
    folder.mkdir(exist_ok=True)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as a job does: two threads add in another order
    try:
        result = pretraining.train(make_run(operator, **changes), tokens, folder, folder / "live.csv")
    finally:
        torch.set_num_threads(threads)
    log = []
    for entry in result["log"]:
        log.append({key: value for key, value in entry.items() if key not in CLOCKED})
    return log, compute_sha256(folder / "model/model.safetensors")


def remove_probes(entry: dict) -> dict:
    """An entry of the log of a run without probes, as numbers only."""
    assert entry["probes"] == {}
    return {name: value for name, value in entry.items() if name != "probes"}
