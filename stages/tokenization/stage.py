"""Stage `tokenization`: the filtered documents as sequences of token ids.

Reads data/filtered, and a vocabulary (trained here, from a file, or from the hub). Writes to data/tokens
tokenizer/tokenizer.json, {train,validation}/part_N.bin (uint16 [sequences, sequence_length]) and index.json: for each
split shards with checksums, documents, tokens, characters, and how many are unknown or dropped.
"""

import json
import os
from collections import Counter
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from stages.files.paths import FILTERED, LEDGER, TOKENIZER, TOKENS
from stages.files.storage import delete_path, write_atomically
from stages.records import reading
from stages.records.ledger import TOTAL, read_ledger
from stages.runner import jobs
from stages.schema.sections import Tokenization
from stages.schema.settings import Settings
from stages.sequences import packing
from stages.tokenization import vocabulary
from stages.tokenization.streams import SPLITS, tokenize_shard

# above this share, of all tokens or letters, most of the text would be lost
LARGEST_UNKNOWN_SHARE = 0.5


def main(settings: Settings) -> dict:
    """Writes data/tokens; returns `read`, the source of the vocabulary, for the record of the run."""
    root = Path(settings.data.root) if settings.data.root else None
    vocabulary_source = build_tokens(FILTERED, TOKENS, settings.tokenization, root, settings.workers)
    return {"read": [vocabulary_source]}


def build_tokens(
    filtered: Path, folder: Path, settings: Tokenization, root: Path | None, workers: jobs.Workers = None
) -> str:
    """Tokenizes documents and packs the tokens into sequences; returns the source of the vocabulary, in words.

    `filtered` has the shards and ledger.csv. `folder` gets the tokenizer, the sequences and the index; old content is
    deleted. A vocabulary file is looked for below `root`.

    Raises:
        ValueError: there are too few documents or tokens, a shard disagrees with the ledger, most tokens or letters are
            unknown, or ledger or vocabulary cannot be used.
        RuntimeError: a shard cannot be read.
    """
    ledger = read_ledger(filtered / LEDGER.name)
    # a shard without a kept document has no file, or an empty one
    by_shard = ledger[ledger["shard"] != TOTAL]
    kept = by_shard[(by_shard["fate"] == "kept") & (by_shard["documents"] > 0)]
    shards = [filtered / name for name in kept["shard"]]
    delete_path(folder)
    tokenizer_file = folder / TOKENIZER.relative_to(TOKENS)
    tokenizer, source = choose_tokenizer(settings, root, shards, workers)
    # `tokenizer.save` would not raise an OSError for a full disk
    write_atomically(tokenizer_file, tokenizer.to_str(pretty=True))

    tokenized = _tokenize_shards(shards, kept["documents"].tolist(), tokenizer_file, settings, workers)
    totals = {split: Counter() for split in SPLITS}
    for _, counts in tokenized:
        for split in SPLITS:
            totals[split].update(counts[split])
    _check_unknown(totals["train"] + totals["validation"], source)
    splits = {}
    for split in SPLITS:
        streams = [job_folder / f"{split}.bin" for job_folder, _ in tokenized]
        splits[split] = pack_split(streams, totals[split], folder / split, settings.sequence_length)
    index = {
        "sequence_length": settings.sequence_length,
        "vocabulary_size": tokenizer.get_vocab_size(),
        "special": {token: tokenizer.token_to_id(token) for token in vocabulary.SPECIAL},
        "splits": splits,
    }
    # the index comes last, so that a folder with an index is complete
    write_atomically(folder / packing.INDEX, json.dumps(index, indent=1, sort_keys=True) + "\n")
    return source


def _check_unknown(totals: Counter, source: str) -> None:
    """Prints the numbers of documents and tokens; ValueError if the share of unknown tokens or letters is too large."""
    # without [CLS] and [SEP]
    tokens = totals["tokens"] - 2 * totals["documents"]
    share = totals["unknown_tokens"] / max(tokens, 1)
    share_of_letters = totals["unknown_characters"] / max(totals["characters"], 1)
    print(
        f"tokenization: {totals['documents']} documents, {tokens} tokens, {share:.2%} of them unknown, with "
        f"{share_of_letters:.2%} of the letters",
        flush=True,
    )
    if max(share, share_of_letters) <= LARGEST_UNKNOWN_SHARE:
        return
    remedy = "name a vocabulary of the documents' language, or null to train one"
    # unknown words of more than 50 letters on average come from missing spaces, shorter words from rare characters
    if totals["unknown_characters"] > totals["unknown_tokens"] * vocabulary.LONGEST_WORD / 2:
        remedy = (
            f"BERT takes a run of more than {vocabulary.LONGEST_WORD} letters for one unknown word; put spaces between "
            "words (in Thai, by a segmenter), or remove documents without spaces"
        )
    raise ValueError(
        f"tokenization.vocabulary: {share:.0%} of the tokens are unknown to the vocabulary ({source}), with "
        f"{share_of_letters:.0%} of the letters; {remedy}"
    )


def pack_split(streams: list[Path], totals: Counter, folder: Path, sequence_length: int) -> dict:
    """Packs the tokens of all shards of a split into sequences; returns the entry of the split in the index.

    ValueError if all documents together are shorter than a sequence.
    """
    entry = packing.pack(streams, folder, sequence_length)
    if not entry["sequences"]:
        raise ValueError(
            f"the {totals['documents']} documents for {folder.name} have {totals['tokens']} tokens, less than one "
            f"sequence of tokenization.sequence_length: {sequence_length}; shorten the sequences or add documents"
        )
    # the jobs may have dropped tokens per batch of documents; `pack` drops the incomplete last sequence
    entry["dropped_tokens"] += totals.pop("dropped_tokens")
    return {**totals, **entry}


def choose_tokenizer(
    settings: Tokenization, root: Path | None, shards: list[Path], workers: jobs.Workers
) -> tuple[Tokenizer, str]:
    """Trains or loads the tokenizer that tokenization.vocabulary names.

    Returns the tokenizer, and the source of the vocabulary: "trained on data/filtered", the file below `root`, or a
    repository with the commit. ValueError if the tokenizer cannot be loaded, or has more word pieces than 16 bits can
    number.
    """
    name = settings.vocabulary
    if name is None:
        argument = {"shards": [str(shard) for shard in shards], "size": settings.vocabulary_size}
        job = jobs.Job("vocabulary", argument, tuple(shards))
        [(folder, trained)] = jobs.run(vocabulary.train_vocabulary, [job], stage="tokenization", workers=workers)
        if trained["size"] < settings.vocabulary_size:
            print(
                f"tokenization: the documents have {trained['size']} word pieces, fewer than "
                f"tokenization.vocabulary_size ({settings.vocabulary_size})",
                flush=True,
            )
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        source = "trained on data/filtered"
    # Path.is_file raises an error for a name that the file system finds too long
    elif root and os.path.isfile(root / name):  # noqa: PTH113
        tokenizer = vocabulary.read_tokenizer(root / name)
        source = name
    else:
        tokenizer, source = vocabulary.load_tokenizer(name, settings.vocabulary_revision)
    size = tokenizer.get_vocab_size()
    if size > vocabulary.LARGEST:
        raise ValueError(
            f"tokenization.vocabulary: {name} has {size} pieces; ids are stored in 16 bits, so at most "
            f"{vocabulary.LARGEST} are allowed"
        )
    return tokenizer, source


def _tokenize_shards(
    shards: list[Path], documents: list[int], tokenizer_file: Path, settings: Tokenization, workers: jobs.Workers
) -> jobs.Results:
    """Tokenizes every shard in a job; returns for each the folder and {split: {name of a count: number}}.

    `documents` are the numbers of documents in the shards, by the ledger.
    """
    # incomplete sequences are dropped per batch, as by the authors' code, or only at the end of a split (None)
    drop_to_multiple = settings.sequence_length if settings.partial_blocks == "drop_per_batch" else None
    held_out = hold_out(documents, settings.validation_documents, settings.seed)
    work = []
    for shard, validation in zip(shards, held_out, strict=True):
        argument = {
            "shard": str(shard),
            "tokenizer": str(tokenizer_file),
            "validation": validation,
            "drop_to_multiple": drop_to_multiple,
        }
        work.append(jobs.Job(shard.name, argument, inputs=(shard, tokenizer_file)))
    tokenized = jobs.run(tokenize_shard, work, stage="tokenization", workers=workers)
    # documents must not get lost between the stages
    for shard, expected, (_, counts) in zip(shards, documents, tokenized, strict=True):
        counted = counts["train"]["documents"] + counts["validation"]["documents"]
        if counted != expected:
            raise ValueError(
                f"{shard}: {counted} documents, but the ledger counts {expected}; run `dvc repro -f filtering`"
            )
    return tokenized


def hold_out(documents: list[int], count: int, seed: int) -> list[list[int]]:
    """Draws `count` documents of the validation set, without replacement, from shards of so many `documents`.

    Returns for each shard the sorted numbers of the drawn documents, counted from 0 within the shard: 3 of 5 and 3
    documents with seed 0 are [[4], [0, 2]]. ValueError if no document would be left for training.
    """
    total = sum(documents)
    if count >= total:
        raise ValueError(
            f"tokenization.validation_documents: {count} of {total} filtered documents leave no document for training; "
            "lower the number, or add documents (in text files, a blank line ends a document)"
        )
    chosen = np.random.default_rng(seed).choice(total, size=count, replace=False)
    chosen.sort()
    return list(reading.split_by_shard(chosen, documents))
