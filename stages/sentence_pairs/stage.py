"""Prepares the sentence pairs of every protocol of `translation`: cleans them and cuts them into sub-words.

Reads the data source. Writes, below data/sentence_pairs: ledger.csv (what became of every pair, and why), and in
PROTOCOL/ source.json and target.json (tokenizers), SPLIT.safetensors (token ids) and, of held-out splits, SPLIT.parquet
(texts). Training pairs with a side of more tokens than the protocol's `positions` are dropped, as in the TensorFlow
tutorial on translation; held-out sentences are cut to that many. A training pair that is also held out is dropped.
Stops when the share of pairs that are not text exceeds filtering.malformed_share.
"""

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from stages.encoder_decoder.pairs import END, SIDES, Pairs
from stages.files import commits
from stages.files.paths import SENTENCE_PAIRS
from stages.files.storage import temporary_sibling, write_table
from stages.schema.settings import Settings
from stages.schema.translation_sections import TranslationProtocol
from stages.sentence_pairs import language, reading, vocabulary
from stages.sentence_pairs.reading import Texts

SPLITS = ("train", "validation", "test")
COLUMNS = ("protocol", "split", "fate", "reason", "pairs")  # fate: in (read), kept, dropped or cut (among the kept)


def texts_of(settings: Settings, protocol: TranslationProtocol) -> tuple[dict[str, tuple[Texts, Counter]], str]:
    """Reads the pairs of `protocol`, one of translation.protocols, from the data source of `settings`, and cleans them.

    Returns:
        By split, what `reading.cleaned` returns, then `reading.apart` for training; and what was read, for the record.

    Raises:
        ValueError: a split cannot be read, or has no sound pair or too many malformed ones.
    """
    limits = dict(zip(SPLITS, (protocol.train_pairs, *[protocol.held_out_pairs] * 2), strict=True))
    languages = protocol.source, protocol.target
    match settings.data.source:
        case "embedded":
            sides, read = generated(limits, settings.translation.seed), "embedded"
        case "files":
            root, names = Path(settings.data.root), protocol.files
            sides = {split: reading.from_files(root, getattr(names, split), languages) for split in SPLITS}
            read = ", ".join(getattr(names, split) for split in SPLITS)
        case "hub":
            hub = protocol.hub  # a branch of it may move meanwhile, and all splits are to be of one commit
            commit = commits.commit(hub.repository, hub.revision, "translation.protocols.*.hub")
            pinned = hub.model_copy(update={"revision": commit})
            sides = {split: reading.from_hub(pinned, split, languages) for split in SPLITS}
            read = commits.named(hub.repository, commit)
    sound = {
        split: reading.cleaned(sides[split], limits[split], settings.filtering.malformed_share, f"{split} of {read}")
        for split in SPLITS
    }
    sound["train"] = reading.apart(sound["train"], sound["validation"][0] + sound["test"][0])
    for split, (texts, fates) in sound.items():
        if not texts:
            raise ValueError(
                f"translation.protocols: {split} of {read} has no sound pair ({dict(fates)}); name other data"
            )
    return sound, read


def generated(limits: dict[str, int], seed: int) -> dict[str, Texts]:
    """Draws as many pairs of the generated language for each split as `limits` says, none twice."""
    drawn = iter(language.pairs(sum(limits.values()), seed))
    return {split: [next(drawn) for _ in range(number)] for split, number in limits.items()}


def _cut(ids: np.ndarray, positions: int) -> np.ndarray:
    """Cuts a sentence of more than `positions` tokens to that many, the last of them END; leaves others as they are."""
    return ids if len(ids) <= positions else np.append(ids[: positions - 1], END)


def _prepare(settings: Settings, name: str, folder: Path) -> tuple[list[tuple], str]:
    """Prepares the protocol of a name; returns the lines of the ledger, tuples of COLUMNS, and what was read.

    folder: gets the files. ValueError when no training pair fits into `positions`, or as in `texts_of`.
    """
    protocol = settings.translation.protocols[name]
    splits, read = texts_of(settings, protocol)
    words = vocabulary.train(splits["train"][0], protocol.vocabulary_size, protocol.vocabulary == "shared", folder)
    lines = []
    for split, (texts, fates) in splits.items():
        training = split == "train"
        sides = [vocabulary.encode(words[side], [pair[place] for pair in texts]) for place, side in enumerate(SIDES)]
        pairs = [*zip(*sides, strict=True)]
        kept = [pair for pair in pairs if max(map(len, pair)) <= protocol.positions]
        long = len(pairs) - len(kept)
        if not training:
            kept = [tuple(_cut(ids, protocol.positions) for ids in pair) for pair in pairs]
        if not kept:  # as only training pairs are dropped
            raise ValueError(
                f"translation.protocols.{name}.positions: {protocol.positions}: every training pair is longer"
            )
        Pairs(*zip(*kept, strict=True)).save(folder / f"{split}.safetensors")
        if not training:
            pd.DataFrame(texts, columns=list(SIDES)).to_parquet(folder / f"{split}.parquet", index=False)
        lines.append((name, split, "in", "", fates.pop("in")))
        lines.append((name, split, "kept", "", len(kept)))
        lines += [(name, split, "dropped", reason, number) for reason, number in sorted(fates.items())]
        lines.append((name, split, "dropped" if training else "cut", "over_long", long))
    return lines, read


def main(settings: Settings) -> dict:
    """Prepares every protocol; returns what was read, for the record of the run."""
    with temporary_sibling(SENTENCE_PAIRS) as output:
        output.mkdir()
        prepared = [_prepare(settings, name, output / name) for name in settings.translation.protocols]
        lines = [line for ledger, _ in prepared for line in ledger]
        write_table(output / "ledger.csv", pd.DataFrame(lines, columns=list(COLUMNS)))
    return {"read": [read for _, read in prepared]}
