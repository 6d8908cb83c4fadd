"""How much data a run will meet: counted in what `dvc repro` has made of the same settings, or in original files.

Where there are neither, published numbers of examples stand in, and mean lengths in word pieces that were measured on
the real files and on embedded tasks. What is not known stays None.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import yaml
from tokenizers import Tokenizer

from stages.common.benchmarks import glue
from stages.common.sequences import packing
from stages.plumbing.done import made
from stages.plumbing.files import TASK_FOLDER, TOKENIZER
from stages.plumbing.settings import Settings
from stages.tasks import squad, triviaqa
from stages.tasks.glue import read_original
from stages.tokenization import vocabulary

BEFORE_TRAINING = ("corpus", "filtering", "tokenization")
TOKENS = TOKENIZER.parents[1]
PUBLISHED = Path("data/published/kowsher2024_arxiv_table7_dataset_statistics.csv")
PROTOCOL = Path("data/published/protocol.yaml")
SAMPLE = 200  # examples whose length is measured

# Mean tokens of a training example, [CLS] and [SEP] included: 2,000 examples of each original file with the vocabulary
# of bert-base-uncased; 400 embedded ones with the vocabulary of scale `laptop`.
LENGTHS = {
    "original": {
        "cola": 11.4, "sst2": 13.2, "mrpc": 53.5, "stsb": 30.9, "qqp": 30.6, "mnli": 38.3, "qnli": 49.0, "rte": 70.3,
    },
    "embedded": {
        "cola": 9.0, "sst2": 10.5, "mrpc": 15.1, "stsb": 16.6, "qqp": 19.7, "mnli": 16.0, "qnli": 15.7, "rte": 16.3,
    },
}  # fmt: skip
# Mean tokens of a question and of its context, measured likewise on SQuAD
QUESTION, CONTEXT = {"original": 12.3, "embedded": 7.1}, {"original": 158.3, "embedded": 18.3}
PIECES_A_WORD = 1.3  # of SQuAD's contexts; TriviaQA's, of which no text was at hand, are taken to be as long as allowed
TRIVIAQA = 95_000  # questions of all splits together (Joshi et al. 2017, abstract): so many at most
# Of 2,500 embedded documents: share that is kept, tokens of one, and pieces of the vocabulary that is trained on them
EMBEDDED_KEPT, EMBEDDED_TOKENS, EMBEDDED_PIECES = 0.656, 215.0, 623


@dataclass(frozen=True)
class Amounts:
    """sequences: packed ones, by split; None where unknown. examples: of a task or a set of questions, by split.

    lengths: tokens of some examples of a task, uncut. questions: tokens of some questions and their contexts, by set.
    counted: tasks and sets whose numbers come from data, not from tables.
    """

    vocabulary_size: int
    sequences: dict[str, int | None]
    examples: dict[tuple[str, str], int]
    lengths: dict[str, tuple[float, ...]]
    questions: dict[str, tuple[tuple[float, float], ...]]
    counted: frozenset[str]


def of(settings: Settings) -> Amounts:
    """ValueError for original files that are there and cannot be read, and for open numbers of embedded documents."""
    if settings.data.source == "embedded" and settings.corpus.documents is None:
        raise ValueError("corpus.documents: null; source `embedded` needs the number of documents to generate")
    wanted = settings.tasks
    packed = made(settings, *BEFORE_TRAINING) == [*BEFORE_TRAINING]
    index = packing.read_index(TOKENS) if packed else None
    words = _tokenizer(settings, packed)
    examples, lengths, questions, counted = {}, {}, {}, set()
    for name in (*wanted.names, *wanted.questions.names):
        asked = name in wanted.questions.names
        section = wanted.questions if asked else wanted
        for split in squad.STEMS if asked else [split.name for split in glue.TASKS[name].splits]:
            frame = _table(settings, name, split)
            limit = section.train_examples if split == "train" else section.validation_examples
            number = published(name, split) if frame is None else len(frame)
            examples[name, split] = number if limit is None else min(limit, number)
            if split != "train":
                continue
            known = frame is not None and words is not None
            if asked:
                questions[name] = _asked(frame, words) if known else _mean_question(settings, name)
            else:
                lengths[name] = _lengths(frame, words) if known else (LENGTHS[kind(settings)][name],)
            counted |= {name} if frame is not None else set()
    sequences = _sequences(settings, index)
    return Amounts(_pieces(settings, index), sequences, examples, lengths, questions, frozenset(counted))


def kind(settings: Settings) -> str:
    """Which column of the tables above holds."""
    return "embedded" if settings.data.source == "embedded" else "original"


def published(name: str, split: str) -> int:
    """Examples of a whole split, as printed by Kowsher et al. (rounded); of TriviaQA, which they leave out, at most."""
    if name == "triviaqa":
        return TRIVIAQA
    table = pd.read_csv(PUBLISHED)
    row = table[(table["row_key"] == name) & (table["column_key"] == split.split("_")[0])]
    return int(row["value"].item())


def number(text: str) -> float:
    """The first number of a text such as "about 3.2 billion" or "200,000 (Figure 2)"."""
    found = re.search(r"([\d,]*\.?\d+)\s*(million|billion)?", text)
    return float(found[1].replace(",", "")) * {"million": 1e6, "billion": 1e9, None: 1}[found[2]]


def _pieces(settings: Settings, index: dict | None) -> int:
    if index:
        return index["vocabulary_size"]
    trained = settings.data.source == "embedded" and settings.tokenization.vocabulary is None
    return min(settings.tokenization.vocabulary_size, EMBEDDED_PIECES if trained else vocabulary.LARGEST)


def _sequences(settings: Settings, index: dict | None) -> dict[str, int | None]:
    if index:
        return {split: entry["sequences"] for split, entry in index["splits"].items()}
    documents, tokens = _documents(settings)
    held_out, length = settings.tokenization.validation_documents, settings.tokenization.sequence_length
    return {
        "train": None if documents is None or tokens is None else round((documents - held_out) * tokens / length),
        "validation": None if tokens is None else round(held_out * tokens / length),
    }


def _documents(settings: Settings) -> tuple[float | None, float | None]:
    """Documents to tokenise, and tokens of one, as far as tables tell; of OSCAR by what Courtois et al. state."""
    if settings.data.source == "embedded":
        return settings.corpus.documents * EMBEDDED_KEPT, EMBEDDED_TOKENS
    if settings.data.source == "files" or not all("oscar" in hub.repository.lower() for hub in settings.corpus.hub):
        return None, None
    stated = yaml.safe_load(PROTOCOL.read_text())["courtois2024"]["stated"]["pretraining_data"]
    limits = [limit for limit in (settings.filtering.documents, settings.corpus.documents) if limit]
    tokens = stated["size"]["train_tokens"] / number(stated["corpus"]["value"])
    return min(limits) if limits else None, tokens


def _tokenizer(settings: Settings, packed: bool) -> Tokenizer | None:
    if packed:
        words = Tokenizer.from_file(str(TOKENIZER))
        words.no_truncation()
        words.no_padding()
        return words
    path = Path(settings.data.root or ".") / (settings.tokenization.vocabulary or "")
    return vocabulary.from_file(path) if path.is_file() else None


def _table(settings: Settings, name: str, split: str) -> pd.DataFrame | None:
    """The examples of a split, where there are data."""
    path = TASK_FOLDER / name / f"{split}.parquet"
    if made(settings, "tasks") and path.exists():
        return pd.read_parquet(path)
    root = Path(settings.data.root or "")
    if settings.data.source != "files" or not any(path.is_dir() for path in root.glob("*")):
        return None  # data/original of a fresh checkout has a page that says what it is for, and no folders
    if name in glue.TASKS:
        splits = {each.name: each for each in glue.TASKS[name].splits}
        return read_original(root, glue.TASKS[name], splits[split]).frame
    if name == "triviaqa":
        return triviaqa.read_original(root, split, settings.tasks.questions.triviaqa_words).frame
    derived = name == "squad2" and split == "train" and settings.tasks.questions.squad2_training == "derived"
    return squad.read_original(root, "squad1" if derived else name, split).frame


def _some(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.iloc[:: max(1, len(frame) // SAMPLE)][:SAMPLE]


def _lengths(frame: pd.DataFrame, words: Tokenizer) -> tuple[float, ...]:
    some = _some(frame)
    texts = [(a, b) if isinstance(b, str) else a for a, b in zip(some["text_a"], some["text_b"], strict=True)]
    return tuple(len(encoding.ids) for encoding in words.encode_batch(texts))


def _asked(frame: pd.DataFrame, words: Tokenizer) -> tuple[tuple[float, float], ...]:
    def count(texts: Iterable[str]) -> list[int]:
        return [len(encoding.ids) for encoding in words.encode_batch(list(texts), add_special_tokens=False)]

    some = _some(frame)
    return tuple(zip(count(some["question"]), count(some["context"]), strict=True))


def _mean_question(settings: Settings, name: str) -> tuple[tuple[float, float], ...]:
    context = CONTEXT[kind(settings)]
    if name == "triviaqa" and kind(settings) == "original":
        context = settings.tasks.questions.triviaqa_words * PIECES_A_WORD
    return ((QUESTION[kind(settings)], context),)
