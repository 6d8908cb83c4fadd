"""Compares the speed of stages `filtering` and `tokenization` with common implementations, on one core.

The documents are from a finished run of `filtering`. ValueError if the outputs of stage and peer differ.
"""

import io
import json
import os
from collections.abc import Callable
from functools import partial
from itertools import chain, cycle, islice
from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerFast

from stages.files.compression import zstd
from stages.files.paths import FILTERED, TOKENIZER
from stages.filtering import shards
from stages.records import reading, records
from stages.sequences.packing import ITEM
from stages.tokenization.streams import tokenize_shard

# the stage's work and the peer's work
WorkPair = tuple[Callable[[], object], Callable[[], object]]
# documents that are filtered
DOCUMENTS = 100_000


def prepare_filtering(folder: Path) -> WorkPair:
    """Prepares two calls that filter the same documents: by stage `filtering`, and by the json module."""
    shard = folder / "shard.jsonl.zst"
    write_documents(shard)
    ours = partial(filter_with_stage, shard, folder)
    theirs = partial(filter_with_json, shard, folder / "plain.jsonl.zst")
    # equal results, so that the times are comparable
    if list(reading.read_lines(ours())) != list(reading.read_lines(theirs())):
        raise ValueError("stage and peer must keep the same documents")
    return ours, theirs


def prepare_tokenization(folder: Path) -> WorkPair:
    """Prepares two calls that tokenize the first filtered shard: by stage `tokenization`, and by datasets.map."""
    # a single core for stage and peer
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    # a real shard, because `write_documents` repeats documents: the stage would remember all words
    shard = reading.list_shards(FILTERED)[0]
    argument = {"shard": str(shard), "tokenizer": str(TOKENIZER), "validation": [], "drop_to_multiple": None}
    ours = partial(tokenize_shard, argument, folder)
    theirs = partial(tokenize_with_datasets, shard)
    # writes train.bin
    ours()
    ids = np.concatenate(theirs().with_format("numpy")[:]["input_ids"])
    if not np.array_equal(np.fromfile(folder / "train.bin", dtype=ITEM), ids):
        raise ValueError("stage and peer must give the same tokens")
    return ours, theirs


def write_documents(path: Path) -> None:
    """Writes DOCUMENTS documents of data/filtered, repeated, with new metadata as in OSCAR 23.01.

    Seven of eight get a quality warning, because real corpora lose most documents.
    """
    lines = cycle(chain.from_iterable(map(reading.read_lines, reading.list_shards(FILTERED))))
    language = {"label": "en", "prob": 0.9}
    with reading.open_zstd_writer(path) as file:
        for number, line in enumerate(islice(lines, DOCUMENTS)):
            record = json.loads(line)
            record["metadata"] = {
                "identification": language,
                "harmful_pp": None,
                "quality_warnings": ["short_sentences"] if number % 8 else None,
                "categories": None,
                "sentence_identifications": [language] * len(record["content"].split("\n")),
            }
            file.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")


def filter_with_json(shard: Path, kept: Path) -> Path:
    """Parses every record, and writes the records without a quality warning to `kept`; returns `kept`."""
    with (
        io.BufferedReader(zstd.open(shard), 1_000_000) as lines,
        zstd.open(kept, "wt", level=shards.LEVEL, encoding="utf-8") as file,
    ):
        for line in lines:
            record = json.loads(line)
            if not record["metadata"]["quality_warnings"]:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return kept


def filter_with_stage(shard: Path, folder: Path) -> Path:
    """Keeps records without a quality warning as stage `filtering` does; returns the file of these records."""
    rules = {"excluded_categories": (), "missing_harmful_pp": "keep", "quality_warnings": "drop"}
    annotation = {"blocklists": None, "kenlm_model": None, "quality_rules": False}
    shards.filter_shard({"shard": str(shard), "rules": rules, "annotation": annotation}, folder)
    return folder / shards.PASSED


def tokenize_with_datasets(shard: Path):
    """Tokenizes as Hugging Face's run_mlm.py does, without cutting sequences; returns a Dataset."""
    # loading takes some seconds
    from datasets import Dataset, disable_progress_bars

    disable_progress_bars()
    # `split_special_tokens`: [MASK] in a text is ordinary text, not the special token
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(TOKENIZER), model_max_length=1 << 30, split_special_tokens=True
    )
    texts = Dataset.from_dict({"content": list(map(records.read_content, reading.read_lines(shard)))})
    return texts.map(tokenizer, batched=True, input_columns="content", remove_columns="content")
