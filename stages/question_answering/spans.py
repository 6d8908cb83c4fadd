"""Fine-tuning of a pre-trained model on questions about a text, and the answers of the fine-tuned model.

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
from torch.nn import functional

from stages.attention.bert import OperatorBertForQuestionAnswering
from stages.classification.runs import TunedRun
from stages.classification.training import EVALUATION_BATCH, load_weights, train_epochs
from stages.question_answering.windows import Window, encode_questions, pad_windows
from stages.schema.training_sections import QuestionAnswering
from stages.training.batches import sort_into_batches
from stages.training.optimisation import find_device, open_autocast, require_finite


def train_on_questions(
    run: TunedRun,
    tokenizer: Path,
    train: Path,
    kept: Path | None = None,
) -> tuple:
    """Trains a model to answer questions; ValueError if the training diverges.

    Args:
        run: The weights to start from, the recipe (a QuestionAnswering) and the seed. The layer that finds the answers
            is new, unless the weights belong to a model that answers questions already.
        tokenizer: File of the tokenizer.
        train: Parquet file of questions to train on.
        kept: Folder to save the model in, if the model is to be saved.

    Returns:
        The trained OperatorBertForQuestionAnswering, and the seconds of training, without loading and tokenising.
    """
    model = load_weights(OperatorBertForQuestionAnswering, run)
    # Training sees every window, also windows without the answer.
    windows = _encode_questions(train, tokenizer, run.training)
    lengths = [len(window.ids) for window in windows]
    longest = max(lengths)

    def compute_loss(indices: np.ndarray) -> torch.Tensor:
        """Computes the mean loss of the windows at `indices`: of the first and of the last token of the answer."""
        batch = [windows[i] for i in indices]
        starts, ends, _ = _score_tokens(model, batch, longest, run.training.precision)
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
    tokenizer: Path,
    recipe: QuestionAnswering,
    unanswerable: bool,
) -> list[str]:
    """Answers every question of a table by a part of the context, or by an empty text.

    Args:
        model: A trained OperatorBertForQuestionAnswering, which is left in evaluation mode.
        table: Parquet file of questions.
        tokenizer: File of the tokenizer.
        recipe: The lengths of windows, questions and answers, the stride, the precision and `null_threshold`.
        unanswerable: Whether a question may be left unanswered, with the empty text as answer.

    Raises:
        ValueError: The model gives scores that are not finite.
    """
    windows = _encode_questions(table, tokenizer, recipe)
    contexts = pd.read_parquet(table, columns=["context"])["context"]
    spans = score_windows(model, windows, recipe.answer_length, recipe.precision)
    threshold = recipe.null_threshold if unanswerable else None
    return choose_answers(contexts, windows, spans, threshold)


def _encode_questions(table: Path, tokenizer: Path, recipe: QuestionAnswering) -> list[Window]:
    """Tokenises a table of questions (a Parquet file) into windows of the lengths, in tokens, that a recipe sets."""
    return encode_questions(table, tokenizer, recipe.maximum_length, recipe.question_length, recipe.stride)


class Span(NamedTuple):
    """The best answer in a window.

    Attributes:
        score: Logits of the first and the last token, added; minus infinity if the window holds no token of the
            context.
        first: First token, counted from the first token of the context in the window; meaningless for minus infinity.
        last: Last token, counted likewise.
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
    null_threshold: float | None,
) -> list[str]:
    """Turns the best spans of the windows into an answer for every question.

    A question whose context fills several windows takes the span with the highest score. The answer is the part of
    the context from the first character of the span's first token to the last character of the span's last token.

    Args:
        contexts: The context of every question, in the order of the table.
        windows: The windows of all these questions.
        spans: The best span of every window.
        null_threshold: A question is left unanswered where the score for no answer (as in BERT's code, the lowest of
            [CLS] in all windows) exceeds the score of the span by more than this. None: every question is answered.

    Returns:
        A text for every question, empty where the question is left unanswered or no window holds a token of the
        context.
    """
    # Windows of a question are adjacent.
    answers = []
    pairs = zip(windows, spans, strict=True)
    for number, group in groupby(pairs, key=lambda pair: pair[0].question):
        candidates = list(group)
        window, span = max(candidates, key=lambda pair: pair[1].score)
        # No window holds a token of the context.
        unanswered = math.isinf(span.score)
        if null_threshold is not None:
            null = min(candidate.null for _, candidate in candidates)
            unanswered = unanswered or null - span.score > null_threshold
        text = ""
        if not unanswered:
            start = window.offsets[span.first, 0]
            end = window.offsets[span.last, 1]
            text = contexts[number][start:end]
        answers.append(text)
    return answers


@torch.no_grad()
def score_windows(
    model,
    windows: list[Window],
    answer_length: int,
    precision: str,
) -> list[Span]:
    """Finds the span of every window that scores highest as an answer; ValueError where a score is not finite.

    Args:
        model: A model that `train_on_questions` has trained, which is left in evaluation mode.
        windows: The windows to look at.
        answer_length: Tokens of a span at most.
        precision: float32 or bfloat16.
    """
    model.eval()
    lengths = [len(window.ids) for window in windows]
    best = {}
    for indices in sort_into_batches(lengths, EVALUATION_BATCH):
        batch = [windows[i] for i in indices]
        starts, ends, context = _score_tokens(model, batch, max(lengths), precision)
        scores, firsts, lasts = find_best_span(starts, ends, context, answer_length)
        # The score of no answer, at [CLS].
        nulls = starts[:, 0] + ends[:, 0]
        for row, i in enumerate(indices):
            begin = windows[i].begin
            best[i] = Span(
                score=scores[row].item(),
                first=firsts[row].item() - begin,
                last=lasts[row].item() - begin,
                null=nulls[row].item(),
            )
    return [best[i] for i in range(len(windows))]


def find_best_span(
    starts: torch.Tensor,
    ends: torch.Tensor,
    allowed: torch.Tensor,
    longest: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Finds in every row the span for which starts[first] + ends[last] is highest, among all spans.

    Args:
        starts: [b, n] on the CPU, the score of every token as the first of a span.
        ends: [b, n] on the CPU, the score of every token as the last of a span.
        allowed: [b, n] booleans, the tokens that may be the first or the last.
        longest: Tokens of a span at most.

    Returns:
        Three tensors [b] on the CPU: the two scores of the best span, added; the first token; the last token. Of equal
        spans, the shortest is best, then the first. With no token allowed, the sum is minus infinity, the tokens mean
        nothing.
    """
    rows, n = starts.shape
    starts = starts.masked_fill(~allowed, -torch.inf)
    ends = ends.masked_fill(~allowed, -torch.inf)
    # values[b, k, i] belongs to the span from token i to token i + k.
    values = torch.full((rows, min(longest, n), n), -torch.inf)
    for k in range(values.shape[1]):
        count = n - k
        values[:, k, :count] = starts[:, :count] + ends[:, k:]
    # The largest value, with the place of its first occurrence.
    value, place = values.flatten(1).max(1)
    first = place % n
    return value, first, first + place // n


def _score_tokens(
    model,
    windows: list[Window],
    longest: int,
    precision: str,
) -> tuple[torch.Tensor, ...]:
    """Scores every token of a batch of windows as the first and as the last token of an answer.

    Args:
        model: The model, in training or evaluation mode.
        windows: The batch.
        longest: Tokens of the longest window of the table, to which padding is limited.
        precision: float32 or bfloat16.

    Returns:
        Three tensors [windows, n]: the scores as the first and as the last token of the answer, float32, minus
        infinity at padding, on the model's device in training and on the CPU in evaluation; and booleans, on the CPU,
        True for the tokens of the context.

    Raises:
        ValueError: In evaluation, a score is not finite.
    """
    ids, types, mask, context = pad_windows(windows, longest)
    # The library would read the mask back from a GPU to find out that nothing is padded.
    has_padding = not mask.all()
    mask = mask.to(find_device())
    with open_autocast(precision):
        output = model(
            ids.to(find_device()),
            attention_mask=mask if has_padding else None,
            token_type_ids=types.to(find_device()),
        )
    scores = []
    for logits in (output.start_logits, output.end_logits):
        masked = logits.float().masked_fill(mask == 0, -torch.inf)
        # In training, an update checks its gradients instead.
        if not model.training:
            require_finite(logits, f"question {windows[0].question}, or another of its batch")
            masked = masked.cpu()
        scores.append(masked)
    return *scores, context
