"""Stage `sentence_pairs`: prepares the data of the translation protocols.

Reads the data source. Writes, below data/sentence_pairs:

- ledger.csv: number of pairs by protocol, split, fate (`in`, `kept`, `dropped` or `cut`) and reason.
- PROTOCOL/source.json and target.json: tokenizers.
- PROTOCOL/SPLIT.safetensors: token ids; for held-out splits also SPLIT.parquet: texts.

Training pairs with a side of more tokens than the protocol's `positions` are dropped, as in the TensorFlow tutorial on
translation; held-out sentences are cut to `positions` tokens. A training pair that is also held out is dropped. The
stage stops if the share of pairs that are not text exceeds filtering.malformed_share.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from stages.encoder_decoder.pairs import END, SIDES, Pairs
from stages.files import commits
from stages.files.paths import SENTENCE_PAIRS
from stages.files.storage import make_temporary_sibling, write_table
from stages.schema.settings import Settings
from stages.schema.translation_sections import TranslationProtocol
from stages.sentence_pairs import reading, vocabulary
from stages.sentence_pairs.reading import Texts

SPLITS = ("train", "validation", "test")
# Columns of ledger.csv. The fate of pairs is `in` (read), `kept`, `dropped`, or `cut` (some of the kept pairs).
COLUMNS = ["protocol", "split", "fate", "reason", "pairs"]


def read_texts(settings: Settings, protocol: TranslationProtocol) -> tuple[dict[str, tuple[Texts, Counter]], str]:
    """Reads the sound pairs of a protocol, a section of translation.protocols, from the data source.

    Returns:
        sound: by split the pairs, and the number of pairs by defect; training pairs without held-out pairs.
        data_name: for the record of the run.

    Raises:
        ValueError: a split cannot be read, has no sound pair, or has too many malformed pairs.
    """
    sides, data_name = _read_sides(settings, protocol)
    sound = {}
    for split in SPLITS:
        limit = protocol.train_pairs if split == "train" else protocol.held_out_pairs
        name = f"{split} of {data_name}"
        sound[split] = reading.keep_sound_pairs(sides[split], limit, settings.filtering.malformed_share, name)
    # Entry 0 has the pairs, entry 1 the counts.
    held_out = {*sound["validation"][0], *sound["test"][0]}
    training, defects = sound["train"]
    kept = [pair for pair in training if pair not in held_out]
    # A sum of Counters leaves out counts of 0.
    sound["train"] = kept, defects + Counter(also_held_out=len(training) - len(kept))
    for split, (texts, counts) in sound.items():
        if not texts:
            raise ValueError(
                f"translation.protocols: {split} of {data_name} has no sound pair ({dict(counts)}); name other data"
            )
    return sound, data_name


def _read_sides(
    settings: Settings,
    protocol: TranslationProtocol,
) -> tuple[Mapping[str, Iterable[reading.Sides]], str]:
    """Reads the unchecked pairs (source, target) of a protocol by split; also returns the name of the data."""
    languages = protocol.source, protocol.target
    if settings.data.source == "hub":
        # A branch may move during the stage, so all splits are read at the same commit.
        hub = protocol.hub.pin_revision("translation.protocols.*.hub")
        sides = {split: reading.read_hub(hub, split, languages) for split in SPLITS}
        return sides, commits.name_source(hub.repository, hub.revision)
    names = protocol.files.model_dump()
    sides = {split: reading.read_files(settings.data.folder, name, languages) for split, name in names.items()}
    return sides, ", ".join(names.values())


def _cut_sentence(ids: np.ndarray, positions: int) -> np.ndarray:
    if len(ids) <= positions:
        return ids
    # A cut sentence also ends with the end token.
    return np.append(ids[: positions - 1], END)


def _prepare_protocol(settings: Settings, name: str, folder: Path) -> tuple[list[tuple], str]:
    """Writes tokenizers, token ids and texts of protocol `name`; returns rows of ledger.csv, and the data's name."""
    protocol = settings.translation.protocols[name]
    positions = protocol.positions
    splits, data_name = read_texts(settings, protocol)
    training_texts, _ = splits["train"]
    shared = protocol.vocabulary == "shared"
    tokenizers = vocabulary.train(training_texts, protocol.vocabulary_size, shared, folder)
    rows = []
    for split, (texts, counts) in splits.items():
        frame = pd.DataFrame(texts, columns=list(SIDES))
        ids = [vocabulary.encode(tokenizers[side], frame[side]) for side in SIDES]
        pairs = list(zip(*ids, strict=True))
        fitting = [pair for pair in pairs if max(map(len, pair)) <= positions]
        # Long training pairs are dropped, but long held-out pairs are cut, because every held-out pair is scored.
        if split == "train":
            kept = fitting
            long_fate = "dropped"
        else:
            kept = [(_cut_sentence(source, positions), _cut_sentence(target, positions)) for source, target in pairs]
            long_fate = "cut"
            # Scores compare translations with the uncut texts.
            frame.to_parquet(folder / f"{split}.parquet", index=False)
        if not kept:
            raise ValueError(
                f"translation.protocols.{name}.positions: every training pair is longer than {positions} tokens; "
                "raise the number"
            )
        sources, targets = zip(*kept, strict=True)
        Pairs(sources, targets).save(folder / f"{split}.safetensors")
        # Protocol, split, fate, reason and number of pairs.
        rows += [
            (name, split, "in", "", counts.pop("in")),
            (name, split, "kept", "", len(kept)),
        ]
        for reason, number in sorted(counts.items()):
            rows.append((name, split, "dropped", reason, number))
        rows.append((name, split, long_fate, "over_long", len(pairs) - len(fitting)))
    return rows, data_name


def main(settings: Settings) -> dict:
    """Prepares the data of every protocol; returns the names of the data, for the record of the run."""
    ledger = []
    data_names = []
    with make_temporary_sibling(SENTENCE_PAIRS) as output:
        output.mkdir()
        for name in settings.translation.protocols:
            rows, data_name = _prepare_protocol(settings, name, output / name)
            ledger += rows
            data_names.append(data_name)
        table = pd.DataFrame(ledger, columns=COLUMNS)
        write_table(output / "ledger.csv", table)
    counts = table.groupby("fate")["pairs"].sum().reindex(["in", "kept", "dropped"], fill_value=0)
    print(f"sentence_pairs: {counts['in']} pairs, {counts['kept']} kept, {counts['dropped']} dropped", flush=True)
    return {"read": data_names}
