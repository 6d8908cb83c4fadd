"""Documents as streams of token ids: [CLS] text [SEP], whole, concatenated in the order of a shard.

Memory is bounded by a batch of about BATCH characters, or by the longest line, and by the remembered words
(encoding.py).
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from tokenizers import Tokenizer

from stages.records import reading
from stages.records.records import read_content
from stages.sequences.packing import ITEM
from stages.tokenization.encoding import WordMemory
from stages.tokenization.parts import Part, cut_parts

# characters that are read before they are encoded
BATCH = 1 << 20
# the batch size of `datasets.map`, a default that the code of Courtois et al. keeps
DROP_EVERY = 1000
SPLITS = ("train", "validation")
COUNTS = ("documents", "tokens", "unknown_tokens", "characters", "unknown_characters", "dropped_tokens")


def tokenize_shard(argument: dict, folder: Path) -> dict:
    """Job (runner/jobs.py): encodes the documents of a shard as train.bin and validation.bin (uint16, little endian).

    Args:
        argument: a dictionary:
            - `shard` and `tokenizer`: paths
            - `validation`: the numbers (from 0) of held-out documents
            - `drop_to_multiple`: None, or a number of tokens: every 1,000 documents of a split, and the rest, are
              shortened to a multiple of this number, as by the code of Courtois et al.
        folder: the folder of the job.

    Returns:
        By split, the numbers of documents, tokens (dropped tokens included), unknown tokens, characters without white
        space, characters in unknown words, and dropped tokens.
    """
    # the jobs are parallel already
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    tokenizer = Tokenizer.from_file(argument["tokenizer"])
    # [MASK] in a text is ordinary text, not the special token
    tokenizer.encode_special_tokens = True
    memory = WordMemory(tokenizer)
    unknown = tokenizer.token_to_id("[UNK]")
    drop_to_multiple = argument["drop_to_multiple"]
    validation = set(argument["validation"])
    counts = {split: Counter(dict.fromkeys(COUNTS, 0)) for split in SPLITS}
    with (
        (folder / "train.bin").open("wb") as train,
        (folder / "validation.bin").open("wb") as held_out,
    ):
        files = {"train": train, "validation": held_out}
        for split, batch in read_batches(Path(argument["shard"]), validation):
            file = files[split]
            count = counts[split]
            ids, characters, unknown_characters = memory.encode(batch)
            # `ids.tofile` would not report a full disk
            file.write(ids.data)
            ended = sum(part.ends for part in batch)
            count.update(
                documents=ended,
                tokens=len(ids),
                unknown_tokens=int((ids == unknown).sum()),
                characters=characters,
                unknown_characters=unknown_characters,
            )
            # a batch in which no document ends repeats the count of the batch before, and must not be shortened again
            drop_is_due = ended and count["documents"] % DROP_EVERY == 0
            if drop_to_multiple and drop_is_due:
                count["dropped_tokens"] += shorten_file(file, drop_to_multiple)
        if drop_to_multiple:
            for split, file in files.items():
                counts[split]["dropped_tokens"] += shorten_file(file, drop_to_multiple)
    return counts


def shorten_file(file: BinaryIO, tokens: int) -> int:
    """Shortens a file to a multiple of `tokens`; returns the number of removed tokens.

    A file of 1,000 ids with `tokens` = 128 keeps 896 ids, and 104 are removed.
    """
    # the file was just written, so the position is the end
    extra = file.tell() % (tokens * ITEM.itemsize)
    file.seek(-extra, os.SEEK_CUR)
    file.truncate()
    return extra // ITEM.itemsize


def read_batches(shard: Path, validation: set[int]) -> Iterator[tuple[str, list[Part]]]:
    """Yields batches (split, parts of documents of the split) in the order of the shard.

    A batch ends after about a million characters, and after every 1,000th document of a split. `validation` are the
    numbers (from 0) of held-out documents.
    """
    # parts of the next batch of each split, and their characters
    waiting: dict[str, list[Part]] = {split: [] for split in SPLITS}
    sizes = dict.fromkeys(SPLITS, 0)
    documents = dict.fromkeys(SPLITS, 0)
    for number, line in enumerate(reading.read_lines(shard)):
        split = "validation" if number in validation else "train"
        documents[split] += 1
        # after every 1,000th document, `tokenize_shard` may shorten the file, so a batch must end there
        drop_is_due = documents[split] % DROP_EVERY == 0
        for part in cut_parts(read_content(line)):
            waiting[split].append(part)
            sizes[split] += len(part.text)
            if sizes[split] >= BATCH or (drop_is_due and part.ends):
                yield split, waiting[split]
                waiting[split] = []
                sizes[split] = 0
    for split, batch in waiting.items():
        if batch:
            yield split, batch
