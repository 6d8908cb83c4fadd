"""Questions and contexts as windows of tokens: [CLS] question [SEP] part of the context [SEP].

A context that does not fit gives several windows, each `stride` tokens after the window before (Devlin et al. 2018 and
their code). A question is cut to the first `question_length` tokens. Ends are exclusive.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from tokenizers import Tokenizer
from torch import Tensor

from stages.files.storage import read_once
from stages.schema.training_sections import QuestionAnswering

# Batches are padded to a multiple of this number of tokens, because PyTorch compiles for every new length.
STEP = 8


class Window(NamedTuple):
    """A question and a part of the context.

    Attributes:
        ids: Token ids of the window.
        begin: Number of tokens before the tokens of the context.
        offsets: [tokens of the context in the window, 2], where each token begins and ends in the context, in
            characters.
        question: Row of the question in the table, from 0.
        span: First and last token of the first right answer, counted from [CLS] at 0; both are 0 where the window does
            not hold all of an answer.
    """

    ids: np.ndarray
    begin: int
    offsets: np.ndarray
    question: int
    span: tuple[int, int]


@read_once(4)
def encode_questions(
    table: Path,
    tokenizer_file: Path,
    recipe: QuestionAnswering,
) -> list[Window]:
    """Reads a table of questions and tokenises the texts. The result is cached and must not be changed.

    Columns are context, question, answers (right answers, empty for an unanswerable question) and starts (the first
    character of each answer in the context). Windows of a question are adjacent, in the order of the context.
    """
    frame = pd.read_parquet(table)
    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    # "[MASK]" in a text is ordinary text, not the special token.
    tokenizer.encode_special_tokens = True
    tokenizer.no_truncation()
    tokenizer.no_padding()
    classifier = tokenizer.token_to_id("[CLS]")
    separator = tokenizer.token_to_id("[SEP]")
    # Many questions may ask about the same context, which is tokenised once.
    texts = frame["context"].unique().tolist()
    contexts = {}
    encodings = tokenizer.encode_batch(texts, add_special_tokens=False)
    for text, encoding in zip(texts, encodings, strict=True):
        tokens = np.array(encoding.ids, dtype=np.int32)
        # Two columns even for an empty context, which has no offsets.
        offsets = np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2)
        contexts[text] = (tokens, offsets)
    questions = tokenizer.encode_batch(frame["question"].tolist(), add_special_tokens=False)
    windows = []
    for number, row in enumerate(frame.itertuples()):
        tokens, offsets = contexts[row.context]
        before = [classifier, *questions[number].ids[: recipe.question_length], separator]
        begin = len(before)
        # First and last token of the first right answer, counted in the context.
        answer = None
        if len(row.starts):
            first_character = row.starts[0]
            answer = find_token_span(offsets, first_character, first_character + len(row.answers[0]))
        # Tokens of the context in a window; the last token of a window is [SEP].
        room = recipe.maximum_length - begin - 1
        for start, end in cut_context(len(tokens), room, recipe.stride):
            ids = np.array([*before, *tokens[start:end], separator], dtype=np.int32)
            span = (0, 0)
            # A window with only a part of the answer counts as a window without the answer.
            if answer and start <= answer[0] and answer[1] < end:
                # From a place in the context to a place in the window.
                shift = begin - start
                span = (answer[0] + shift, answer[1] + shift)
            window = Window(
                ids=ids,
                begin=begin,
                offsets=offsets[start:end],
                question=number,
                span=span,
            )
            windows.append(window)
    return windows


def cut_context(tokens: int, room: int, stride: int) -> Iterator[tuple[int, int]]:
    """Yields the first token, from 0, and the end of each window on a context of `tokens` tokens.

    Ten tokens with room for 6 and stride 3 give (0, 6), (3, 9) and (6, 10). An empty context has an empty window.
    """
    start = 0
    while start + room < tokens:
        yield start, start + room
        start += stride
    yield start, tokens


def find_token_span(offsets: np.ndarray, start: int, end: int) -> tuple[int, int] | None:
    """Finds the first and the last token that reach into the characters of a text from `start` to `end`.

    Offsets [[0, 3], [4, 7]] and the characters from 5 to 7 give (1, 1). None for a part without tokens, such as white
    space.
    """
    # The first token that ends after `start`, and the last token that begins before `end`.
    first = int(np.searchsorted(offsets[:, 1], start, side="right"))
    last = int(np.searchsorted(offsets[:, 0], end, side="left")) - 1
    return (first, last) if first <= last else None


def pad_windows(windows: list[Window], limit: int) -> tuple[Tensor, ...]:
    """Pads the windows of a batch to the longest window, rounded up, but not beyond `limit` tokens.

    Returns four tensors [windows, n], 0 or False at padding: the token ids; the token types, 1 from the context on; 1
    for every token; and booleans, True for the tokens of the context.
    """
    # [windows, 1], to be compared with the places [n].
    lengths = np.array([[len(window.ids)] for window in windows])
    begins = np.array([[window.begin] for window in windows])
    # Rounded up, so that batches have few different shapes.
    rounded = -(-lengths.max() // STEP) * STEP
    places = np.arange(min(rounded, limit))
    mask = places < lengths
    types = mask & (places >= begins)
    # The last token of a window is [SEP].
    context = types & (places < lengths - 1)
    ids = np.zeros(mask.shape, dtype=np.int64)
    ids[mask] = np.concatenate([window.ids for window in windows])
    arrays = [ids, types.astype(np.int64), mask.astype(np.int64), context]
    return tuple(map(torch.from_numpy, arrays))
