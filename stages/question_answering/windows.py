"""Questions and their contexts as windows of tokens: [CLS] question [SEP] part of the context [SEP].

A context that does not fit gives several windows, each `stride` tokens after the one before (Devlin et al. 2018 and
their code). A question is never cut below `question_length` tokens. Every token of a context knows its place in the
text, so an answer can be read from the text itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from tokenizers import Tokenizer

from stages.plumbing.files import read_once

STEP = 8  # tokens; few lengths, for the library keeps what it compiles for each


@dataclass(frozen=True)
class Windows:
    """One entry a window; the windows of a question follow each other, in the order of its context.

    ids: token ids. begins: number of tokens before the context's. offsets: [tokens of the context here, 2], where each
    begins and ends in the text. questions: row of the table. spans: [windows, 2], first and last token of the first
    answer, counted within the window; both 0, which is [CLS], where the window does not hold all of it.
    """

    ids: tuple[np.ndarray, ...]
    begins: np.ndarray
    offsets: tuple[np.ndarray, ...]
    questions: np.ndarray
    spans: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def lengths(self) -> list[int]:
        """Of the windows, in tokens."""
        return [len(ids) for ids in self.ids]

    @cached_property
    def longest(self) -> int:
        """Tokens."""
        return max(self.lengths)


@read_once(4)
def encode(table: Path, tokenizer: Path, maximum_length: int, question_length: int, stride: int) -> Windows:
    """Reads a table of questions (context, question, answers, starts) and tokenises it.

    Args:
        table: the file of the table.
        tokenizer: the file of the tokenizer.
        maximum_length: tokens of a window at most.
        question_length: tokens, at which longer questions are cut.
        stride: tokens by which a window of a context begins after the one before.
    """
    frame = pd.read_parquet(table)
    words = Tokenizer.from_file(str(tokenizer))
    words.no_truncation()
    words.no_padding()
    first, between = (words.token_to_id(token) for token in ("[CLS]", "[SEP]"))
    texts = frame["context"].unique().tolist()
    contexts = {  # each is tokenised once, however many questions ask about it
        text: (np.array(encoding.ids, dtype=np.int32), np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2))
        for text, encoding in zip(texts, words.encode_batch(texts, add_special_tokens=False), strict=True)
    }
    encodings = words.encode_batch(frame["question"].tolist(), add_special_tokens=False)
    ids, begins, offsets, questions, spans = [], [], [], [], []
    for number, (row, question) in enumerate(zip(frame.itertuples(), encodings, strict=True)):
        tokens, places = contexts[row.context]
        before = np.array([first, *question.ids[:question_length], between], dtype=np.int32)
        answer = token_span(places, row.starts[0], row.starts[0] + len(row.answers[0])) if len(row.starts) else None
        for start, end in cuts(len(tokens), maximum_length - len(before) - 1, stride):
            ids.append(np.concatenate([before, tokens[start:end], np.array([between], dtype=np.int32)]))
            begins.append(len(before))
            offsets.append(places[start:end])
            questions.append(number)
            inside = answer is not None and start <= answer[0] <= answer[1] < end
            spans.append([place - start + len(before) for place in answer] if inside else [0, 0])
    return Windows(tuple(ids), np.array(begins), tuple(offsets), np.array(questions), np.array(spans))


def cuts(tokens: int, room: int, stride: int) -> Iterator[tuple[int, int]]:
    """Cuts a context into windows, up to the one that holds its last token.

    Args:
        tokens: of the context.
        room: tokens of a window at most.
        stride: tokens by which a window begins after the one before.

    Yields:
        The first token of a window, and the one after its last.
    """
    start = 0
    while True:
        yield start, min(start + room, tokens)
        if start + room >= tokens:
            return
        start += stride


def token_span(places: np.ndarray, start: int, end: int) -> tuple[int, int] | None:
    """Finds the tokens that reach into a part of a text.

    Args:
        places: [tokens, 2], where each begins and ends in the text.
        start: the first character of the part.
        end: the character after its last.

    Returns:
        The first and the last of them; None where there is none, as for signs that the tokenizer leaves out.
    """
    first = int(np.searchsorted(places[:, 1], start, side="right"))
    last = int(np.searchsorted(places[:, 0], end, side="left")) - 1
    return (first, last) if first <= last else None


def padded(windows: Windows, indices: np.ndarray) -> tuple[torch.Tensor, ...]:
    """The windows at `indices`, padded to the next multiple of STEP above the longest of them.

    Four of [windows, n]: ids, token types, which are no padding, and which are of the context (as booleans).
    """
    length = min(-(-max(len(windows.ids[i]) for i in indices) // STEP) * STEP, windows.longest)
    ids, types, mask, context = np.zeros((4, len(indices), length), dtype=np.int64)
    for row, i in enumerate(indices):
        n, begin = len(windows.ids[i]), windows.begins[i]
        ids[row, :n] = windows.ids[i]
        types[row, begin:n] = 1
        mask[row, :n] = 1
        context[row, begin : n - 1] = 1
    return tuple(map(torch.from_numpy, (ids, types, mask, context.astype(bool))))
