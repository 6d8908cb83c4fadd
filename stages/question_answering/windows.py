"""Questions and their contexts as windows of tokens: [CLS] question [SEP] part of the context [SEP].

A context that does not fit gives several windows, each `stride` tokens after the window before (Devlin et al. 2018 and
their code). A question is cut to its first `question_length` tokens. The characters of every token of a context are
kept, so an answer can be read from the text itself.
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

# Batches are padded to multiples of so many tokens: PyTorch compiles for every length that it meets.
STEP = 8


@dataclass(frozen=True)
class Windows:
    """The windows of all questions of a table; windows of a question are adjacent, in the order of its context.

    Attributes:
        ids: For every window, its token ids.
        begins: [windows], the number of tokens before the tokens of the context.
        offsets: For every window, [tokens of the context in the window, 2], the characters of the context at which each
            token begins and ends, the end exclusive.
        questions: [windows], the row of the question in the table, from 0.
        spans: [windows, 2], the first and the last token of the question's first right answer, counted from [CLS] at 0;
            both are 0 where the window does not hold all of that answer, or where the question has no answer.
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


@read_once(4)
def encode(table: Path, tokenizer: Path, maximum_length: int, question_length: int, stride: int) -> Windows:
    """Reads a table of questions and tokenises it; callers share the result.

    Args:
        table: Parquet file with columns context, question, answers (the list of right answers, empty for an
            unanswerable question) and starts (the list of the characters at which these begin in the context).
        tokenizer: File of the tokenizer.
        maximum_length: Tokens of a window at most, [CLS] and both [SEP] included.
        question_length: Tokens to which longer questions are cut.
        stride: Tokens from the beginning of a window of a context to the beginning of the next window.
    """
    frame = pd.read_parquet(table)
    words = Tokenizer.from_file(str(tokenizer))
    words.no_truncation()
    words.no_padding()
    first = words.token_to_id("[CLS]")
    between = words.token_to_id("[SEP]")
    # Many questions may ask about a context, which is tokenised once.
    texts = frame["context"].unique().tolist()
    contexts = {}
    for text, encoding in zip(texts, words.encode_batch(texts, add_special_tokens=False), strict=True):
        tokens = np.array(encoding.ids, dtype=np.int32)
        offsets = np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2)
        contexts[text] = tokens, offsets
    questions = words.encode_batch(frame["question"].tolist(), add_special_tokens=False)
    windows = {"ids": [], "begins": [], "offsets": [], "questions": [], "spans": []}
    for number, row in enumerate(frame.itertuples()):
        tokens, offsets = contexts[row.context]
        before = np.array([first, *questions[number].ids[:question_length], between], dtype=np.int32)
        after = np.array([between], dtype=np.int32)
        answer = None
        if len(row.starts):
            answer = token_span(offsets, row.starts[0], row.starts[0] + len(row.answers[0]))
        for start, end in cuts(len(tokens), maximum_length - len(before) - 1, stride):
            windows["ids"].append(np.concatenate([before, tokens[start:end], after]))
            windows["begins"].append(len(before))
            windows["offsets"].append(offsets[start:end])
            windows["questions"].append(number)
            span = [0, 0]
            if answer and start <= answer[0] and answer[1] < end:
                span = [token - start + len(before) for token in answer]
            windows["spans"].append(span)
    return Windows(
        ids=tuple(windows["ids"]),
        begins=np.array(windows["begins"]),
        offsets=tuple(windows["offsets"]),
        questions=np.array(windows["questions"]),
        spans=np.array(windows["spans"]),
    )


def cuts(tokens: int, room: int, stride: int) -> Iterator[tuple[int, int]]:
    """Yields the first token of each window of a context, from 0, and the end, exclusive, up to the context's end.

    Ten tokens with room for 6 and stride 3 give (0, 6), (3, 9) and (6, 10).

    Args:
        tokens: Tokens of the context; an empty context has one empty window.
        room: Tokens of the context that a window has room for.
        stride: Tokens from the beginning of a window to the beginning of the next window.
    """
    start = 0
    while start + room < tokens:
        yield start, start + room
        start += stride
    yield start, tokens


def token_span(offsets: np.ndarray, start: int, end: int) -> tuple[int, int] | None:
    """Finds the tokens that reach into a part of a text.

    Args:
        offsets: [tokens, 2], the characters at which each token begins and ends (exclusive) in the text, in order.
        start: First character of the part.
        end: End of the part, exclusive.

    Returns:
        The first and the last of these tokens; None if no token reaches into the part, as for white space and for
        characters that the tokenizer leaves out.
    """
    # The first token that ends after `start`, and the last token that begins before `end`.
    first = int(np.searchsorted(offsets[:, 1], start, side="right"))
    last = int(np.searchsorted(offsets[:, 0], end, side="left")) - 1
    return (first, last) if first <= last else None


def pad_windows(windows: Windows, indices: np.ndarray) -> tuple[torch.Tensor, ...]:
    """Pads the windows at `indices` to one length n.

    The length is the longest of these windows, rounded up to a multiple of STEP, but no more than the longest window of
    all, for which the model has positions.

    Returns:
        Four tensors [len(indices), n], 0 or False at padding: the token ids; the token types, 1 from the context on; 1
        for every token of the window; and booleans, True for the tokens of the context.
    """
    longest = max(len(windows.ids[i]) for i in indices)
    length = min(-(-longest // STEP) * STEP, windows.longest)
    ids, types, mask, context = np.zeros((4, len(indices), length), dtype=np.int64)
    for row, i in enumerate(indices):
        n = len(windows.ids[i])
        begin = windows.begins[i]
        ids[row, :n] = windows.ids[i]
        types[row, begin:n] = 1
        mask[row, :n] = 1
        context[row, begin : n - 1] = 1
    tensors = [torch.from_numpy(array) for array in (ids, types, mask, context)]
    return *tensors[:3], tensors[3].bool()
