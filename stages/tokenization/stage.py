"""Stage `tokenization`: the filtered documents as sequences of token ids.

Reads data/filtered, and a vocabulary (trained here, a file, or the hub's). Writes to data/tokens
tokenizer/tokenizer.json, {train,validation}/part_N.bin (uint16 [sequences, sequence_length]) and index.json: of each
split its shards with checksums, documents, tokens, unknown and dropped tokens.
"""

import json
from collections import Counter
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from stages.files.paths import FILTERED, LEDGER, TOKENIZER, TOKENS
from stages.files.storage import delete, write_atomically
from stages.records import reading
from stages.records.ledger import TOTAL, read_ledger
from stages.runner import jobs
from stages.schema.sections import Tokenization
from stages.schema.settings import Settings
from stages.sequences import packing
from stages.tokenization import vocabulary
from stages.tokenization.streams import SPLITS, tokenize_shard


def main(settings: Settings) -> dict:
    """Writes data/tokens. Returns for the run's record `read`, a list that says where the vocabulary is from."""
    root = Path(settings.data.root) if settings.data.root else None
    read = build(FILTERED, TOKENS, settings.tokenization, root, settings.workers)
    return {"read": [read]}


def build(
    filtered: Path, folder: Path, settings: Tokenization, root: Path | None, workers: int | str | None = None
) -> str:
    """Tokenizes and packs documents anew; the index is written last, so that all is there when it is.

    Args:
        filtered: the folder of filtered shards and their ledger.
        folder: gets the tokenizer, the sequences and the index; its old content is deleted.
        settings: the section `tokenization` of params.yaml.
        root: the folder below which a vocabulary file is looked for, or None.
        workers: the number of processes, None for one per core, or the address of a Dask scheduler.

    Returns:
        Where the vocabulary is from, as `choose_tokenizer` says it.

    Raises:
        ValueError: there are too few documents or tokens, a shard has another number of documents than the ledger says,
            or ledger or vocabulary cannot be used.
        RuntimeError: a shard cannot be read.
    """
    ledger = read_ledger(filtered / LEDGER.name)
    kept = ledger[(ledger["fate"] == "kept") & (ledger["shard"] != TOTAL) & (ledger["documents"] > 0)]
    shards = [filtered / name for name in kept["shard"]]
    delete(folder)
    path = folder / TOKENIZER.relative_to(TOKENS)
    path.parent.mkdir(parents=True)
    tokenizer, read = choose_tokenizer(settings, root, shards, workers)
    tokenizer.save(str(path))

    tokenized = _tokenize(shards, kept["documents"].tolist(), path, settings, workers)
    splits = {split: pack_split(tokenized, split, folder, settings.sequence_length) for split in SPLITS}
    index = {
        "sequence_length": settings.sequence_length,
        "vocabulary_size": tokenizer.get_vocab_size(),
        "special": vocabulary.special_ids(tokenizer),
        "splits": splits,
    }
    write_atomically(folder / packing.INDEX, json.dumps(index, indent=1, sort_keys=True) + "\n")
    return read


def pack_split(tokenized: list[tuple[Path, dict]], split: str, folder: Path, sequence_length: int) -> dict:
    """Packs the streams of all shards of one split; returns the entry of the split in the index.

    Args:
        tokenized: by shard the folder of its job, and the counts of the job by split.
        split: `train` or `validation`.
        folder: the folder of the index; the sequences go into `folder`/SPLIT.
        sequence_length: tokens of a sequence.

    Raises:
        ValueError: all documents together are shorter than one sequence.
    """
    totals = Counter()
    for _, counts in tokenized:
        totals.update(counts[split])
    streams = [job / f"{split}.bin" for job, _ in tokenized]
    entry = packing.pack(streams, folder / split, sequence_length)
    if not entry["sequences"]:
        raise ValueError(
            f"the {totals['documents']} documents for {split} have {totals['tokens']} tokens, less than one sequence "
            f"of tokenization.sequence_length: {sequence_length}; shorten it or add documents"
        )
    # the jobs may have dropped tokens per batch of documents; `pack` drops the incomplete last sequence
    dropped = totals["dropped_tokens"] + entry["dropped_tokens"]
    return {**totals, **entry, "dropped_tokens": dropped}


def choose_tokenizer(
    settings: Tokenization, root: Path | None, shards: list[Path], workers: int | str | None
) -> tuple[Tokenizer, str]:
    """Trains or loads the tokenizer that tokenization.vocabulary names.

    Args:
        settings, root, workers: as in `build`.
        shards: those with the documents to train on.

    Returns:
        The tokenizer, and in words where its vocabulary is from: data/filtered, the file, or REPOSITORY@COMMIT.

    Raises:
        ValueError: the tokenizer cannot be loaded, or has more pieces than 16 bits can number.
    """
    if settings.vocabulary is None:
        work = {"shards": [str(shard) for shard in shards], "size": settings.vocabulary_size}
        job = jobs.Job("vocabulary", work, tuple(shards))
        [(folder, _)] = jobs.run(vocabulary.train, [job], stage="tokenization", workers=workers)
        tokenizer, read = Tokenizer.from_file(str(folder / "tokenizer.json")), "trained on data/filtered"
    elif root and (root / settings.vocabulary).is_file():
        tokenizer, read = vocabulary.from_file(root / settings.vocabulary), settings.vocabulary
    else:
        tokenizer, read = vocabulary.from_hub(settings.vocabulary, settings.vocabulary_revision)
    if tokenizer.get_vocab_size() > vocabulary.LARGEST:
        raise ValueError(
            f"tokenization.vocabulary: {settings.vocabulary} has {tokenizer.get_vocab_size()} pieces; ids "
            f"are stored in 16 bits, so at most {vocabulary.LARGEST} are allowed"
        )
    return tokenizer, read


def _tokenize(
    shards: list[Path], documents: list[int], tokenizer: Path, settings: Tokenization, workers: int | str | None
) -> list[tuple[Path, dict]]:
    """Encodes every shard in a job; returns, in order, the folder of each job and the counts of `tokenize_shard`.

    Args:
        shards: the filtered shards.
        documents: the number of documents of each shard by the ledger.
        tokenizer: the tokenizer.json.
        settings, workers: as in `build`.

    Raises:
        ValueError: a shard has another number of documents than the ledger says.
    """
    cut = settings.sequence_length if settings.partial_blocks == "drop_per_batch" else None
    held_out = hold_out(documents, settings.validation_documents, settings.seed)
    work = []
    for shard, validation in zip(shards, held_out, strict=True):
        job = {"shard": str(shard), "tokenizer": str(tokenizer), "validation": validation, "cut": cut}
        work.append(jobs.Job(shard.name, job, inputs=(shard, tokenizer)))
    tokenized = jobs.run(tokenize_shard, work, stage="tokenization", workers=workers)
    for shard, expected, (_, counts) in zip(shards, documents, tokenized, strict=True):
        counted = counts["train"]["documents"] + counts["validation"]["documents"]
        if counted != expected:
            raise ValueError(f"{shard}: {counted} documents, its ledger says {expected}; run `dvc repro -f filtering`")
    return tokenized


def hold_out(documents: list[int], count: int, seed: int) -> list[list[int]]:
    """Draws documents without replacement.

    Args:
        documents: the number of each shard's documents.
        count, seed: how many are drawn, from all shards together, and the seed of the draw.

    Returns:
        For each shard the sorted numbers of its drawn documents, counted from 0 within the shard.

    Raises:
        ValueError: none would be left.
    """
    total = sum(documents)
    if count >= total:
        raise ValueError(
            f"tokenization.validation_documents: {count} of {total} filtered documents leave none to train on; lower it"
        )
    chosen = np.sort(np.random.default_rng(seed).choice(total, size=count, replace=False))
    return list(reading.by_shard(chosen, documents))
