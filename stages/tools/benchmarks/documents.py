"""Speed of `filtering` and `tokenization` against the usual way of doing the same: one core, in turns.

Prints tables for generated documents with full metadata: amounts per second of CPU time in the best round, and the
median over the rounds of the ratio to the usual way (above 1: faster). Both must have the same output.
"""

import argparse
import io
import json
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np

from stages.files.compression import zstd
from stages.filtering import shards
from stages.records import reading, records
from stages.sequences import packing
from stages.tokenization import streams, vocabulary
from stages.training.machine import interleaved, median_ratio

# The rules of Courtois et al., with fewer categories: what OSCAR's metadata say of a document, and `harmful_pp`, the
# perplexity of its text by a model of harmful texts, strictly between two bounds.
EXCLUDED = ("agressif", "adult", "phishing", "warez")
BOUNDS = {"above": 5.0, "below": 100_000.0}
RULES = {
    "excluded_categories": EXCLUDED,
    "harmful_pp": BOUNDS,
    "missing_harmful_pp": "drop",
    "quality_warnings": "drop",
}
KEPT_SHARE = 1 / 8  # of the generated documents, on average, what passes the filter
SEQUENCE_LENGTH = 512
SYLLABLES = ("ba", "con", "de", "er", "fi", "gen", "ing", "la", "men", "no", "or", "per", "re", "st", "ti", "un")


def main() -> None:
    """Prints a table for each of the two stages."""
    parser = argparse.ArgumentParser(prog="python -m stages.tools.benchmarks.documents", description=__doc__)
    parser.add_argument("--documents", type=int, default=100_000, help="to filter; 5 %% of them are tokenized")
    parser.add_argument("--rounds", type=int, default=5, help="of each way, in turns")
    arguments = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # one core
    with TemporaryDirectory() as name:
        folder = Path(name)
        size = write_documents(folder / "shard.jsonl.zst", arguments.documents)
        print(f"{arguments.documents} documents of {size / arguments.documents:.0f} bytes, metadata included\n")
        report(filtering_ways(folder), arguments.rounds, "documents", arguments.documents)
        few = arguments.documents // 20
        write_documents(folder / "few.jsonl.zst", few)
        ways, total = tokenization_ways(folder)
        report(ways, arguments.rounds, "tokens", total)


def report(ways: dict[str, Callable[[], object]], rounds: int, unit: str, amount: int) -> None:
    """Times all ways in turn, and prints their speeds.

    Args:
        ways, rounds: functions by name, the first for the others to be compared with; how often each is timed.
        unit, amount: what is counted, in the plural, such as `documents`, and how many of them one call processes.
    """
    seconds = interleaved({name: partial(cpu_seconds, way) for name, way in ways.items()}, rounds)
    first = next(iter(ways))
    print(f"{'way':<42}{unit + ' a second':>20}{'ratio':>8}")
    for name, times in seconds.items():
        print(f"{name:<42}{amount / min(times):>20,.0f}{median_ratio(seconds[first], times):>8.2f}")
    print()


def cpu_seconds(call: Callable[[], object]) -> float:
    """Measures the seconds of CPU time that one call takes."""
    started = time.process_time()
    call()
    return time.process_time() - started


def filtering_ways(folder: Path) -> dict[str, Callable[[], object]]:
    """Returns the ways of filtering folder/shard.jsonl.zst, by name. ValueError unless they keep the same documents."""
    shard, plain = folder / "shard.jsonl.zst", folder / "plain.jsonl.zst"
    annotation = {"blocklists_folder": None, "kenlm_model": None, "quality_rules": False}  # none is made
    settings = {"shard": str(shard), "rules": RULES, "annotation": annotation}
    filter_plainly(shard, plain)
    shards.filter_shard(settings, folder)
    theirs, ours = ([*map(json.loads, reading.lines(path))] for path in (plain, folder / shards.KEPT))
    if theirs != ours:
        raise ValueError("both ways of filtering must keep the same documents")
    return {
        "json, what is kept written anew": lambda: filter_plainly(shard, plain),
        "stage filtering": lambda: shards.filter_shard(settings, folder),
        "decompressing alone": lambda: sum(map(len, reading.blocks(shard))),
    }


def filter_plainly(shard: Path, target: Path) -> None:
    """Filters by parsing every record and writing those that are kept anew, with the json module."""
    with (
        io.BufferedReader(zstd.open(shard), 1 << 20) as lines,
        zstd.open(target, "wt", options={zstd.CompressionParameter.checksum_flag: 1}, encoding="utf-8") as kept,
    ):
        for line in lines:
            record = json.loads(line)
            metadata = record["metadata"]
            score = metadata["harmful_pp"] or BOUNDS["below"]  # a missing one, null or 0, is to be dropped
            listed = any(category in EXCLUDED for category in metadata["categories"] or ())
            if not listed and BOUNDS["above"] < score < BOUNDS["below"] and not metadata["quality_warnings"]:
                kept.write(json.dumps(record, ensure_ascii=False) + "\n")


def tokenization_ways(folder: Path) -> tuple[dict[str, Callable[[], object]], int]:
    """Returns the ways of tokenizing folder/few.jsonl.zst, by name, and the number of tokens in the sequences of each.

    The usual way is datasets.map as in Hugging Face's run_mlm.py. ValueError unless they make the same sequences.
    """
    from datasets import disable_progress_bars, load_dataset  # here, as filtering is timed without these libraries
    from transformers import PreTrainedTokenizerFast

    disable_progress_bars()
    shard, path = folder / "few.jsonl.zst", folder / "tokenizer.json"
    tokenizer = vocabulary.trained([shard], 8000)  # word pieces, at most
    tokenizer.save(str(path))
    usual = PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=1 << 30)  # no limit
    # no document is held out; `cut` drops what is incomplete of every 1,000 documents, as datasets.map does
    settings = {"shard": str(shard), "tokenizer": str(path), "validation": [], "cut": SEQUENCE_LENGTH}

    def with_datasets() -> np.ndarray:
        texts = load_dataset("json", data_files=str(shard), split="train", cache_dir=folder / "cache")
        tokenized = texts.map(
            lambda batch: usual(batch["content"], return_special_tokens_mask=True),
            batched=True,
            remove_columns=texts.column_names,
            load_from_cache_file=False,
        )
        return tokenized.map(group_texts, batched=True, load_from_cache_file=False)["input_ids"]

    def with_stage() -> np.ndarray:
        streams.tokenize_shard(settings, folder)
        packing.pack([folder / "train.bin"], folder / "train", SEQUENCE_LENGTH)
        return np.memmap(folder / "train" / "part_1.bin", dtype=packing.ITEM).reshape(-1, SEQUENCE_LENGTH)

    theirs, ours = np.array(with_datasets()), with_stage()
    if theirs.shape != ours.shape or (theirs != ours).any():
        raise ValueError("both ways of tokenizing must give the same sequences")
    return {"datasets.map and group_texts": with_datasets, "stage tokenization": with_stage}, ours.size


def group_texts(batch: dict[str, list[list[int]]]) -> dict[str, list[list[int]]]:
    """Concatenates each column of a batch and cuts it into sequences; the last, if incomplete, is dropped."""
    streams = {name: [item for items in column for item in items] for name, column in batch.items()}
    starts = range(0, len(streams["input_ids"]) - SEQUENCE_LENGTH + 1, SEQUENCE_LENGTH)
    return {name: [stream[start : start + SEQUENCE_LENGTH] for start in starts] for name, stream in streams.items()}


def write_documents(path: Path, count: int) -> int:
    """Writes `count` documents, the same at every call; returns their size in bytes, without line feeds."""
    size = 0
    with reading.zstd_writer(path) as file:
        for line in documents(count):
            file.write(line + b"\n")
            size += len(line)
    return size


def documents(count: int) -> Iterator[bytes]:
    """Draws OSCAR records of 2 to 3 kB: words of a long-tailed vocabulary, some quotes and accents, all metadata."""
    random = Random(1)
    words = sorted({"".join(random.choices(SYLLABLES, k=random.randint(1, 4))) for _ in range(9000)}, key=len)
    weights = [*accumulate(1 / rank for rank in range(1, len(words) + 1))]  # the shortest is the most frequent
    for number in range(count):
        lines = []
        for _ in range(random.randint(8, 14)):
            line = " ".join(random.choices(words, cum_weights=weights, k=random.randint(8, 40))) + "."
            lines.append(line if random.random() < 0.9 else f'“{line}” – "café", it’s')
        yield _oscar_record(random, number, lines)


def _oscar_record(random: Random, number: int, lines: list[str]) -> bytes:
    """Builds an OSCAR record whose text has the given lines; with probability KEPT_SHARE it passes the filter."""
    kept = random.random() < KEPT_SHARE
    text = "\n".join(lines)
    headers = {
        "warc-identified-content-language": "eng",
        "warc-target-uri": f"https://www.site{number % 997}.example.org/page/{number}",
        "warc-record-id": f"<urn:uuid:{random.getrandbits(128):032x}>",
        "warc-type": "conversion",
        "content-length": str(len(text)),
        "warc-refers-to": f"<urn:uuid:{random.getrandbits(128):032x}>",
        "warc-block-digest": f"sha1:{random.getrandbits(160):040X}",
        "warc-date": "2022-11-26T09:45:47Z",
        "content-type": "text/plain",
    }
    metadata = {
        "identification": {"label": "en", "prob": round(random.uniform(0.7, 1), 7)},
        "harmful_pp": round(random.uniform(5.1, 5000) if kept else random.choice([2.5, 800.25]), 4),
        "tlsh": f"tlsh:T1{random.getrandbits(280):070X}",
        "quality_warnings": None if kept else random.choice([["short_sentences"], ["tiny", "header"], ["footer"]]),
        "categories": None if random.random() < 0.9 else ["blog"],
        "sentence_identifications": [{"label": "en", "prob": round(random.uniform(0.8, 1), 7)} for _ in lines],
    }
    return records.oscar_record(text, headers, metadata)


if __name__ == "__main__":
    main()
