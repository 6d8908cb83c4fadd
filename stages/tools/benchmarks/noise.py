"""What noise costs: the evaluation of one fine-tuned model under noise, as a multiple of as many plain passes.

For every place and kind of noise on embeddings and every kind of noise in the text, a round times a plain pass over the
examples of a task table and then what stage `noise` does with two levels and one seed, all that belongs to it included:
the embeddings' norm and the draws, the perturbed text and its tokens. A plain pass predicts; beside noise in the text,
where every pass has a table of its own, it reads and encodes one too. Printed are medians over the rounds, and how many
tokens the text has under noise, as a multiple of its own: misspelt words fall into more pieces. Weights change nothing.
"""

import argparse
import statistics
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import pandas as pd

from stages.common.attention.bert import OperatorBertForSequenceClassification
from stages.common.classification.kept_models import load
from stages.common.classification.training import Encoded, encode, predict
from stages.common.training.machine import clocked
from stages.common.training.rounds import interleaved, median_ratio
from stages.noise.embeddings import predictions_under_noise, predictions_under_text_noise, spared_ids
from stages.noise.text import KINDS, perturbed
from stages.plumbing.command import clear_errors
from stages.plumbing.files import TOKENIZER

LEVELS = [0.0, 0.2, 0.4]
PLACES = ("word_embeddings", "embedding_output")
READINGS = ("expected_norm", "exact_norm", "unit")
PRECISION = "float32"


@dataclass(frozen=True)
class Data:
    """A model and the table that it is evaluated on."""

    model: OperatorBertForSequenceClassification
    table: Path
    tokenizer: Path
    maximum_length: int

    def examples(self) -> Encoded:
        return encode(self.table, self.tokenizer, self.maximum_length)


def costs(data: Data, rounds: int) -> Iterator[tuple[str, float, float]]:
    """For every kind of noise its name, the ratio of seconds and the ratio of tokens."""
    examples, spared = data.examples(), spared_ids(data.tokenizer, special_tokens=True)
    plain = {"levels": LEVELS, "seeds": [1]}

    def clean() -> None:
        predict(data.model, examples, PRECISION)

    def clean_from_text() -> None:
        encode.cache_clear()
        predict(data.model, data.examples(), PRECISION)

    for place, kind in product(PLACES, READINGS):
        settings = plain | {"kind": kind, "place": place}
        call = partial(predictions_under_noise, data.model, examples, settings, spared, PRECISION)
        yield f"{place}, {kind}", ratio(clean, call, len(LEVELS), rounds), 1.0
    for kind in KINDS:
        call = partial(under_text_noise, data, plain | {"text": [kind]})
        yield f"text, {kind}", ratio(clean_from_text, call, len(LEVELS) - 1, rounds), tokens_ratio(data, kind)


def ratio(plain: Callable, noised: Callable, passes: int, rounds: int) -> float:
    """Seconds of `noised`, which makes `passes` passes, over those of as many calls of `plain`; both run in turn."""
    plain()
    seconds = interleaved({call: partial(clocked, call) for call in (plain, noised)}, rounds)
    return median_ratio(seconds[noised], seconds[plain]) / passes


def under_text_noise(data: Data, settings: dict) -> None:
    """Reads, perturbs, encodes and predicts a table as the stage noise does, with nothing cached."""
    encode.cache_clear()
    with tempfile.TemporaryDirectory() as folder:
        predictions_under_text_noise(
            data.model, data.table, settings, data.tokenizer, data.maximum_length, PRECISION, Path(folder)
        )


def tokens_ratio(data: Data, kind: str) -> float:
    """Mean over the levels above 0 of tokens under noise over tokens without."""
    frame = pd.read_parquet(data.table)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "noised.parquet"
        counts = []
        for level in LEVELS[1:]:
            perturbed(frame, kind, level, 1).to_parquet(path, index=False)
            encode.cache_clear()
            counts.append(sum(map(len, encode(path, data.tokenizer, data.maximum_length).ids)))
    return statistics.mean(counts) / sum(map(len, data.examples().ids))


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m stages.tools.benchmarks.noise",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", type=Path, help="folder of a model that stage `finetuning` kept")
    parser.add_argument("table", type=Path, help="data/tasks/TASK/SPLIT.parquet")
    parser.add_argument("--tokenizer", type=Path, default=TOKENIZER)
    parser.add_argument("--maximum-length", type=int, default=128, help="tokens (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    data = Data(load(chosen.model), chosen.table, chosen.tokenizer, chosen.maximum_length)
    print(f"{'noise':35} seconds tokens")
    for name, seconds, tokens in costs(data, chosen.rounds):
        print(f"{name:35} {seconds:7.2f} {tokens:6.2f}")


if __name__ == "__main__":
    with clear_errors():
        main()
