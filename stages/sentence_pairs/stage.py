"""Prepares the sentence pairs of every protocol of `translation`: cleans them and cuts them into sub-words.

Reads the data source. Writes, below data/sentence_pairs: ledger.csv (what became of every pair, and why), and in
PROTOCOL/ source.json and target.json (tokenizers), SPLIT.safetensors (token ids) and, of held-out splits, SPLIT.parquet
(texts). Training pairs with a side of more tokens than the protocol's `positions` are dropped, as in the TensorFlow
tutorial on translation; held-out sentences are cut to that many. A training pair that is also held out is dropped.
Stops when the share of pairs that are not text exceeds filtering.malformed_share.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
from tokenizers import Tokenizer

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
    """Reads the pairs of a protocol from the data source and cleans them.

    Args:
        settings: the whole of params.yaml.
        protocol: a section of translation.protocols.

    Returns:
        sound: by split the pairs and fates that `reading.cleaned` returns; training pairs without held-out pairs.
        read: the name of the data, for the record of the run.

    Raises:
        ValueError: a split cannot be read, has no sound pair, or has too many malformed pairs.
    """
    limits = {
        "train": protocol.train_pairs,
        "validation": protocol.held_out_pairs,
        "test": protocol.held_out_pairs,
    }
    sides, read = _read_sides(settings, protocol, limits)
    sound = {}
    for split in SPLITS:
        where = f"{split} of {read}"
        sound[split] = reading.cleaned(sides[split], limits[split], settings.filtering.malformed_share, where)
    held_out = sound["validation"][0] + sound["test"][0]
    sound["train"] = reading.apart(sound["train"], held_out)
    for split, (texts, fates) in sound.items():
        if not texts:
            raise ValueError(
                f"translation.protocols: {split} of {read} has no sound pair ({dict(fates)}); name other data"
            )
    return sound, read


def _read_sides(
    settings: Settings, protocol: TranslationProtocol, limits: dict[str, int]
) -> tuple[dict[str, Iterable[reading.Sides]], str]:
    """Returns the pairs of each split as the data source has them, and the name of the data."""
    languages = protocol.source, protocol.target
    match settings.data.source:
        case "embedded":
            return generate_pairs(limits, settings.translation.seed), "embedded"
        case "files":
            root = Path(settings.data.root)
            names = {split: getattr(protocol.files, split) for split in SPLITS}
            sides = {split: reading.from_files(root, name, languages) for split, name in names.items()}
            return sides, ", ".join(names.values())
        case _:
            # a branch may move while it is read; all splits are read at one commit
            hub = protocol.hub
            commit = commits.commit(hub.repository, hub.revision, "translation.protocols.*.hub")
            pinned = hub.model_copy(update={"revision": commit})
            sides = {split: reading.from_hub(pinned, split, languages) for split in SPLITS}
            return sides, commits.named(hub.repository, commit)


def generate_pairs(limits: dict[str, int], seed: int) -> dict[str, Texts]:
    """Draws different pairs of the generated language, as many for each split as `limits` says."""
    drawn = iter(language.pairs(sum(limits.values()), seed))
    return {split: list(islice(drawn, number)) for split, number in limits.items()}


def _encode_pairs(texts: Texts, words: dict[str, Tokenizer]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Encodes pairs by the tokenizers of both sides; returns (source ids, target ids) of each pair."""
    sources = vocabulary.encode(words["source"], [source for source, _ in texts])
    targets = vocabulary.encode(words["target"], [target for _, target in texts])
    return list(zip(sources, targets, strict=True))


def _cut(ids: np.ndarray, positions: int) -> np.ndarray:
    """Cuts a sentence to at most `positions` tokens; the last token of a cut sentence is END."""
    return ids if len(ids) <= positions else np.append(ids[: positions - 1], END)


def _prepare(settings: Settings, name: str, folder: Path) -> tuple[list[tuple], str]:
    """Prepares the protocol of a name in `folder`; returns the rows of the ledger (COLUMNS) and the name of the data.

    Raises:
        ValueError: no training pair fits into `positions`, or as in `texts_of`.
    """
    protocol = settings.translation.protocols[name]
    positions = protocol.positions
    splits, read = texts_of(settings, protocol)
    training_texts, _ = splits["train"]
    words = vocabulary.train(training_texts, protocol.vocabulary_size, protocol.vocabulary == "shared", folder)
    rows = []
    for split, (texts, fates) in splits.items():
        pairs = _encode_pairs(texts, words)
        fitting = [pair for pair in pairs if max(map(len, pair)) <= positions]
        # over-long training pairs are dropped, over-long held-out pairs are cut
        if split == "train":
            kept, fate = fitting, "dropped"
        else:
            kept = [(_cut(source, positions), _cut(target, positions)) for source, target in pairs]
            fate = "cut"
            pd.DataFrame(texts, columns=list(SIDES)).to_parquet(folder / f"{split}.parquet", index=False)
        if not kept:
            raise ValueError(f"translation.protocols.{name}.positions: {positions}: every training pair is longer")
        sources, targets = zip(*kept, strict=True)
        Pairs(sources, targets).save(folder / f"{split}.safetensors")
        rows.append((name, split, "in", "", fates.pop("in")))
        rows.append((name, split, "kept", "", len(kept)))
        rows += [(name, split, "dropped", reason, number) for reason, number in sorted(fates.items())]
        rows.append((name, split, fate, "over_long", len(pairs) - len(fitting)))
    return rows, read


def main(settings: Settings) -> dict:
    """Prepares every protocol; returns what was read, for the record of the run."""
    with temporary_sibling(SENTENCE_PAIRS) as output:
        output.mkdir()
        ledger, sources = [], []
        for name in settings.translation.protocols:
            rows, read = _prepare(settings, name, output / name)
            ledger += rows
            sources.append(read)
        write_table(output / "ledger.csv", pd.DataFrame(ledger, columns=list(COLUMNS)))
    return {"read": sources}
