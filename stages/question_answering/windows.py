"""Questions and their contexts as windows of tokens: [CLS] question [SEP] part of the context [SEP].

A context that does not fit gives several windows, each `stride` tokens after the one before (Devlin et al. 2018 and
their code). A question is cut to its first `question_length` tokens. The place in the text of every token of a context
is kept, so an answer can be read from the text itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from tokenizers import Tokenizer

from stages.files.storage import read_once

STEP = 8  # tokens, to whose multiples batches are padded: few lengths, for PyTorch keeps what it compiles for each


@dataclass(frozen=True)
class Windows:
    """The windows of all questions of a table; those of a question follow each other, in the order of its context.

    Every field has one entry per window. ids: the token ids. begins: the number of tokens before those of the context.
    offsets: [tokens of the context in the window, 2], the characters at which each of them begins and ends in the
    context, the end exclusive. questions: the row of the question in the table, from 0. spans: [windows, 2], the first
    and the last token of the question's first right answer, counted from [CLS] at 0; both are 0 where the window does
    not hold all of that answer, or where there is none.
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
        """The lengths of the windows, in tokens."""
        return [len(ids) for ids in self.ids]

    @cached_property
    def longest(self) -> int:
        """The length of the longest window, in tokens."""
        return max(self.lengths)


@read_once(4)  # tables, those that were read last
def encode(table: Path, tokenizer: Path, maximum_length: int, question_length: int, stride: int) -> Windows:
    """Reads a table of questions and tokenises it; callers share the result.

    Args:
        table: the Parquet file, with columns context, question, answers (the list of right answers, empty for an
            unanswerable question) and starts (the list of the characters at which these begin in the context).
        tokenizer: the file of the tokenizer.
        maximum_length: tokens of a window at most, [CLS] and both [SEP] among them.
        question_length: tokens to which longer questions are cut.
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
    """Yields the first token of each window of a context, from 0, and the one after its last, up to the context's end.

    Args:
        tokens: number of tokens of the context; with 0 of them it has one window, which is empty.
        room: number of tokens of the context that a window has room for.
        stride: tokens by which a window begins after the one before; none begins after one that reaches the end.
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
        places: [tokens, 2], the characters at which each token begins and ends (exclusive) in the text, in order.
        start, end: the first character of the part, and the one after its last.

    Returns:
        The first and the last of these tokens; None where there is none, as for white space and for signs that the
        tokenizer leaves out.
    """
    first = int(np.searchsorted(places[:, 1], start, side="right"))  # the first that ends after `start`
    last = int(np.searchsorted(places[:, 0], end, side="left")) - 1  # the last that begins before `end`
    return (first, last) if first <= last else None


def padded(windows: Windows, indices: np.ndarray) -> tuple[torch.Tensor, ...]:
    """Pads the windows at `indices` to one length n.

    It is the length of the longest, rounded up to a multiple of STEP, but no more than the longest window of all, which
    the model has positions for. Returns four tensors [len(indices), n], 0 or False at padding: the token ids; the token
    types, 1 from the context on; 1 for every token of the window; and booleans, True for the tokens of the context.
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
