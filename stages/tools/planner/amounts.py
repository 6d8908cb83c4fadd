"""How much data a run will meet: as data/tokens and data/tasks have it or, before they are there, as tables tell."""

from dataclasses import dataclass

import pandas as pd

from stages.plumbing.done import finished
from stages.plumbing.files import STATISTICS, TOKENS
from stages.plumbing.settings import Settings
from stages.sequences import packing

DATA = ("corpus", "filtering", "tokenization")
PRINTED = "data/published/kowsher2024_arxiv_table7_dataset_statistics.csv"  # examples of whole splits
TRIVIAQA = 95_000  # questions of all splits together (Joshi et al. 2017, abstract); Kowsher et al. leave them out
# Mean tokens of a training example, [CLS] and [SEP] included: 2,000 examples of each original file with the vocabulary
# of bert-base-uncased; 400 generated ones with the vocabulary of scale `laptop`. And of a question and its context.
LENGTHS = {
    "original": {
        "cola": 11.4, "sst2": 13.2, "mrpc": 53.5, "stsb": 30.9, "qqp": 30.6, "mnli": 38.3, "qnli": 49.0, "rte": 70.3,
        "question": 12.3, "context": 158.3,
    },
    "embedded": {
        "cola": 9.0, "sst2": 10.5, "mrpc": 15.1, "stsb": 16.6, "qqp": 19.7, "mnli": 16.0, "qnli": 15.7, "rte": 16.3,
        "question": 7.1, "context": 18.3,
    },
}  # fmt: skip
OTHER = 30.0  # of an example of any other task
PIECES_A_WORD = 1.3  # of SQuAD's contexts; TriviaQA's are taken to be as long as allowed


@dataclass(frozen=True)
class Amounts:
    """vocabulary_size: at most, until data/tokens is there. sequences: packed ones, by split; none before it is there.

    examples: by (task or set of questions, split). lengths: as LENGTHS has them, and of a context of TriviaQA.
    """

    vocabulary_size: int
    sequences: dict[str, int]
    examples: dict[tuple[str, str], int]
    lengths: dict[str, float]


def of(settings: Settings) -> Amounts:
    """Counts the data that a run with these settings has made or, before it has made them, estimates them."""
    vocabulary_size, sequences = settings.tokenization.vocabulary_size, {}
    if finished(settings, *DATA) == [*DATA]:
        index = packing.read_index(TOKENS)
        vocabulary_size = index["vocabulary_size"]
        sequences = {name: split["sequences"] for name, split in index["splits"].items()}
    generated = settings.data.source == "embedded"
    lengths = LENGTHS["embedded" if generated else "original"]
    longest = lengths["context"] if generated else settings.tasks.questions.triviaqa_words * PIECES_A_WORD
    return Amounts(vocabulary_size, sequences, _examples(settings), lengths | {"triviaqa": longest})


def _examples(settings: Settings) -> dict[tuple[str, str], int]:
    """The number of examples of data/tasks or, before they are there, of whole splits, at most what is asked for."""
    if finished(settings, "tasks"):
        return pd.read_csv(STATISTICS).set_index(["task", "split"])["examples"].to_dict()
    examples = pd.read_csv(PRINTED).set_index(["row_key", "column_key"])["value"].dropna().astype(int).to_dict()
    examples |= {("triviaqa", split): TRIVIAQA for split in ("train", "validation")}
    examples |= {("mnli", f"validation_{kind}"): examples["mnli", "validation"] for kind in ("matched", "mismatched")}
    for name, split in examples:
        section = settings.tasks.questions if name in settings.tasks.questions.hub else settings.tasks
        limit = section.train_examples if split == "train" else section.validation_examples
        examples[name, split] = min(examples[name, split], limit or examples[name, split])
    return examples
