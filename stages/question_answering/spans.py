"""Fine-tuning on questions about a text, and the answers of the fine-tuned model.

The method is BERT's (Devlin et al. 2018, sections 4.2 and 4.3): a Linear layer scores every token as the first and as
the last of the answer; the loss is the mean of both cross-entropies, with [CLS] as the target where a window holds no
answer. Batches hold windows of similar length; all weights are trained, and the model after the last epoch counts.
"""

import math
import time
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional

from stages.attention.bert import OperatorBertForQuestionAnswering
from stages.classification.runs import TunedRun
from stages.classification.training import EVALUATION_BATCH, load_weights, train_epochs
from stages.question_answering.windows import Window, encode_questions, pad_windows
from stages.schema.training_sections import QuestionAnswering
from stages.training.batches import sort_into_batches
from stages.training.machine import find_device, open_autocast
from stages.training.optimisation import require_finite


def train_on_questions(
    run: TunedRun,
    tokenizer_file: Path,
    train: Path,
    kept: Path | None = None,
) -> tuple:
    """Trains a model on a Parquet file of questions; ValueError if the training diverges.

    The layer that finds answers is new, unless the weights of `run` belong to a model that answers questions already.
    The folder `kept` gets the model, if given. Returns the trained OperatorBertForQuestionAnswering, and the seconds of
    training, without loading and tokenising.
    """
    model = load_weights(OperatorBertForQuestionAnswering, run)
    # Training sees every window, also windows without the answer.
    windows = encode_questions(train, tokenizer_file, run.training)
    lengths = [len(window.ids) for window in windows]
    longest = max(lengths)

    def compute_loss(indices: np.ndarray) -> Tensor:
        batch = [windows[i] for i in indices]
        starts, ends, _ = _score_tokens(model, batch, longest, run.training.precision)
        # First and last token of the right answer, [windows, 2].
        spans = torch.tensor([window.span for window in batch], device=starts.device)
        first = functional.cross_entropy(starts, spans[:, 0])
        last = functional.cross_entropy(ends, spans[:, 1])
        return (first + last) / 2

    started = time.perf_counter()
    train_epochs(model, lengths, run, compute_loss)
    seconds = time.perf_counter() - started
    if kept:
        model.save_pretrained(kept)
    return model, seconds


def answer_questions(
    model,
    table: Path,
    tokenizer_file: Path,
    recipe: QuestionAnswering,
    unanswerable: bool,
) -> list[str]:
    """Answers every question of a Parquet file by a part of the context, or by an empty text if `unanswerable`.

    Leaves the model in evaluation mode. ValueError if a score is not finite.
    """
    windows = encode_questions(table, tokenizer_file, recipe)
    contexts = pd.read_parquet(table, columns=["context"])["context"]
    spans = score_windows(model, windows, recipe)
    # With an infinite threshold, the score for no answer never makes the text empty.
    threshold = recipe.null_threshold if unanswerable else math.inf
    return choose_answers(contexts, windows, spans, threshold)


class Span(NamedTuple):
    """The best answer in a window.

    Attributes:
        score: Logits of the first and the last token, added; minus infinity if the window holds no token of the
            context.
        first: First token, counted from [CLS] at 0; meaningless for minus infinity.
        last: Last token, likewise.
        null: The same sum for [CLS], that is, for no answer.
    """

    score: float
    first: int
    last: int
    null: float


def choose_answers(
    contexts: pd.Series,
    windows: list[Window],
    spans: list[Span],
    null_threshold: float,
) -> list[str]:
    """Turns the best span of every window into an answer for every question.

    A question with several windows takes the span with the highest score. The answer is the text of that span. The
    answer is empty if no window holds a token of the context, or if the score for no answer exceeds the score of the
    span by more than `null_threshold`.
    """
    answers = []
    # Windows of a question are adjacent.
    pairs = zip(windows, spans, strict=True)
    for question, group in groupby(pairs, key=lambda pair: pair[0].question):
        candidates = list(group)
        window, span = max(candidates, key=lambda pair: pair[1].score)
        # the lowest score for no answer, as in BERT's code
        null = min(candidate.null for _, candidate in candidates)
        text = ""
        # The score is minus infinity if no window holds a token of the context.
        if math.isfinite(span.score) and null - span.score <= null_threshold:
            # Tokens of the window become characters of the context.
            start, _ = window.offsets[span.first - window.begin]
            _, end = window.offsets[span.last - window.begin]
            text = contexts[question][start:end]
        answers.append(text)
    return answers


@torch.no_grad()
def score_windows(
    model,
    windows: list[Window],
    recipe: QuestionAnswering,
) -> list[Span]:
    """Finds the best answer in every window; ValueError if a score is not finite."""
    model.eval()
    lengths = [len(window.ids) for window in windows]
    # By index of the window, because batches hold windows of similar length.
    best = {}
    for indices in sort_into_batches(lengths, EVALUATION_BATCH):
        batch = [windows[i] for i in indices]
        starts, ends, in_context = _score_tokens(model, batch, max(lengths), recipe.precision)
        # An answer lies in the context.
        scores, firsts, lasts = find_best_span(starts, ends, in_context, recipe.answer_length)
        # The score of no answer, at [CLS].
        nulls = starts[:, 0] + ends[:, 0]
        columns = [column.tolist() for column in (scores, firsts, lasts, nulls)]
        best.update(zip(indices, map(Span, *columns), strict=True))
    return [best[i] for i in range(len(windows))]


def find_best_span(
    starts: Tensor,
    ends: Tensor,
    allowed: Tensor,
    longest: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Finds in every row the span for which starts[first] + ends[last] is highest.

    Args:
        starts: [b, n] on the CPU, the score of every token as the first of a span.
        ends: [b, n], the score of every token as the last of a span.
        allowed: [b, n] booleans, the tokens that may be the first or the last.
        longest: Largest number of tokens in a span.

    Returns:
        The sum, the first and the last token of the best span [b]. Of equal spans, the shortest is best, then the
            first. With no token allowed, the sum is minus infinity, and the tokens mean nothing.
    """
    rows, n = starts.shape
    starts = starts.masked_fill(~allowed, -torch.inf)
    ends = ends.masked_fill(~allowed, -torch.inf)
    # values[b, k, i] belongs to the span from token i to token i + k.
    values = torch.full((rows, min(longest, n), n), -torch.inf)
    for k in range(values.shape[1]):
        count = n - k
        values[:, k, :count] = starts[:, :count] + ends[:, k:]
    # In the flattened row, values[b, k, i] is at the place k * n + i. Of equal values, `max` takes the first.
    value, place = values.flatten(1).max(1)
    first = place % n
    return value, first, first + place // n


def _score_tokens(
    model,
    windows: list[Window],
    longest: int,
    precision: str,
) -> tuple[Tensor, ...]:
    """Scores every token as the first and as the last token of an answer.

    Returns both scores, and whether the token belongs to the context, each [windows, n].
    """
    # Padding is limited to `longest`, the number of tokens in the longest window of the table.
    ids, types, mask, in_context = pad_windows(windows, longest)
    # The library would read the mask back from a GPU to find out that nothing is padded.
    has_padding = not mask.all()
    mask = mask.to(find_device())
    with open_autocast(precision):
        output = model(
            ids.to(find_device()),
            attention_mask=mask if has_padding else None,
            token_type_ids=types.to(find_device()),
        )
    logits = torch.stack([output.start_logits, output.end_logits])
    scores = logits.float().masked_fill(mask == 0, -torch.inf)
    # In training, scores stay on the device, and an update checks its gradients instead.
    if not model.training:
        require_finite(logits, f"question {windows[0].question}, or another of its batch")
        scores = scores.cpu()
    return *scores, in_context
