"""Fine-tuning of one pre-trained model on questions about a text, and the answers that it then gives.

BERT's way (Devlin et al. 2018, sections 4.2 and 4.3): one Linear layer scores every token as the first and as the last
of the answer; the loss is the mean of both cross-entropies, with [CLS] as the target where a window holds no answer.
Batches hold windows of like length; all weights are trained, and the model after the last epoch counts.
"""

import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch.nn import functional

from stages.attention.bert import OperatorBertForQuestionAnswering
from stages.classification.runs import TunedRun
from stages.classification.training import EVALUATION_BATCH, loaded, train_epochs
from stages.question_answering.windows import Windows, encode, padded
from stages.schema.training_sections import QuestionAnswering
from stages.training.batches import sorted_batches
from stages.training.optimisation import autocast, device, require_finite


def train(run: TunedRun, tokenizer: Path, train: Path, kept: Path | None = None) -> tuple:
    """Trains a model to answer questions; ValueError where the training diverges.

    Args:
        run: names the weights to start from, the recipe (a QuestionAnswering) and the seed. The layer that finds the
            answers starts anew, unless the weights are those of a model that answers questions already.
        tokenizer, train: the file of the tokenizer; the table of questions to train on, as `windows.encode` reads it.
        kept: the folder to save the model in, if it is to be saved.

    Returns:
        The trained OperatorBertForQuestionAnswering, and the seconds of training, without loading and tokenising.
    """
    model = loaded(OperatorBertForQuestionAnswering, run)
    windows = _encode(train, tokenizer, run.training)

    def loss_of(indices: np.ndarray) -> torch.Tensor:
        starts, ends, _ = _logits(model, windows, indices, run.training.precision)
        spans = torch.from_numpy(windows.spans[indices]).to(starts.device)
        return (functional.cross_entropy(starts, spans[:, 0]) + functional.cross_entropy(ends, spans[:, 1])) / 2

    started = time.perf_counter()
    train_epochs(model, windows.lengths, run, loss_of)
    seconds = time.perf_counter() - started
    if kept:
        model.save_pretrained(kept)
    return model, seconds


def answer(model, table: Path, tokenizer: Path, recipe: QuestionAnswering, unanswerable: bool) -> list[str]:
    """Answers every question of a table by a part of its context, or an empty text; ValueError for scores not finite.

    Args:
        model, tokenizer: a model that `train` has trained; the file of the tokenizer.
        table: the table of questions, as `windows.encode` reads it.
        recipe: gives the lengths of windows, questions and answers, the stride, the precision and `null_threshold`.
        unanswerable: whether a question may be left unanswered, which the empty text stands for.
    """
    windows = _encode(table, tokenizer, recipe)
    threshold = recipe.null_threshold if unanswerable else None
    best = score(model, windows, recipe.answer_length, recipe.precision)
    return chosen_answers(pd.read_parquet(table, columns=["context"])["context"], windows, best, threshold)


def chosen_answers(contexts: pd.Series, windows: Windows, best: np.ndarray, null_threshold: float | None) -> list[str]:
    """Turns the best spans of the windows into one answer for every question.

    A question whose context fills several windows takes the span with the highest score among them. The answer is the
    part of the context from the first character of the span's first token to the last character of its last token.

    Args:
        contexts: the context of every question, in the order in which `windows.questions` numbers them.
        windows, best: the windows of all these questions, and what `score` gives for them.
        null_threshold: a question is left unanswered where its score for no answer (as in BERT's code, the lowest of
            [CLS] in its windows) exceeds that of its span by more than this. None: every one must be answered.

    Returns:
        One text for every question, empty where it is left unanswered or no window of it holds a token of the context.
    """
    answers = []
    borders = np.searchsorted(windows.questions, np.arange(len(contexts) + 1))  # a question's first window, and its end
    for context, start, end in zip(contexts, borders, borders[1:], strict=False):
        window = start + int(np.argmax(best["score"][start:end]))
        nothing = best["null"][start:end].min() - best["score"][window]
        first, last = best["first"][window], best["last"][window]
        unanswered = not np.isfinite(best["score"][window]) or (null_threshold is not None and nothing > null_threshold)
        places = windows.offsets[window]
        answers.append("" if unanswered else context[places[first, 0] : places[last, 1]])
    return answers


@torch.no_grad()
def score(model, windows: Windows, answer_length: int, precision: str) -> np.ndarray:
    """Finds the span of every window that scores highest as an answer; ValueError where a score is not finite.

    Args:
        model, windows: a model that `train` has trained, which is left in evaluation mode; the windows to look at.
        answer_length: the greatest number of tokens that a span may have.
        precision: float32 or bfloat16.

    Returns:
        A structured array [windows]. score: the logits of the span's first and last token, added; minus infinity where
        the window holds no token of the context. first, last: these tokens, counted from the first token of the context
        in the window; meaningless where the score is minus infinity. null: the same sum for [CLS], that is, no answer.
    """
    model.eval()
    best = np.empty(len(windows), dtype=[("score", "f4"), ("first", "i4"), ("last", "i4"), ("null", "f4")])
    for indices in sorted_batches(windows.lengths, EVALUATION_BATCH):
        starts, ends, context = _logits(model, windows, indices, precision)
        value, first, last = best_span(starts, ends, context, answer_length)
        shift = torch.from_numpy(windows.begins[indices])
        best["score"][indices], best["null"][indices] = value, starts[:, 0] + ends[:, 0]
        best["first"][indices], best["last"][indices] = first - shift, last - shift
    return best


def best_span(
    starts: torch.Tensor, ends: torch.Tensor, allowed: torch.Tensor, longest: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Finds in every row the span for which starts[first] + ends[last] is highest.

    All spans are looked at, not only those between the tokens that score highest as the first and as the last.

    Args:
        starts, ends: [b, n] on the CPU, the score of every token as the first of a span, and as the last of one.
        allowed: [b, n] booleans, the tokens that may be the first or the last.
        longest: the greatest number of tokens that a span may have.

    Returns:
        Three tensors [b] on the CPU: the two scores of the best span, added; its first token; its last. Of equal spans,
        the shortest is best, then the first. With no token allowed, the sum is minus infinity, the tokens mean nothing.
    """
    n = starts.shape[1]
    starts, ends = (scores.masked_fill(~allowed, -torch.inf) for scores in (starts, ends))
    values = torch.full((starts.shape[0], min(longest, n), n), -torch.inf)  # [b, k, i]: the span from i to i + k
    for further in range(values.shape[1]):
        values[:, further, : n - further] = starts[:, : n - further] + ends[:, further:]
    value, place = values.flatten(1).max(1)
    first = place % n
    return value, first, first + place // n


def _encode(table: Path, tokenizer: Path, recipe: QuestionAnswering) -> Windows:
    """Tokenises a table of questions (a Parquet file) into windows of the lengths, in tokens, that a recipe sets."""
    return encode(table, tokenizer, recipe.maximum_length, recipe.question_length, recipe.stride)


def _logits(model, windows: Windows, indices: np.ndarray, precision: str) -> tuple:
    """Scores every token of the windows at `indices`.

    Returns three tensors [len(indices), n]: the scores as the first and as the last token of the answer, float32 and
    minus infinity at padding, and booleans, on the CPU, of the tokens that are the context's. In training the scores
    stay on the model's device; in evaluation they come to the CPU, and ValueError is raised where one is not finite.
    """
    *inputs, context = padded(windows, indices)
    ids, types, mask = (T.to(device()) for T in inputs)
    with autocast(precision):
        output = model(ids, attention_mask=mask, token_type_ids=types)
    logits = [output.start_logits, output.end_logits]
    for scores in () if model.training else logits:  # in training, the gradients are checked
        require_finite(scores, f"window {indices[0]}, or another of its batch")
    logits = [scores.float().masked_fill(mask == 0, -torch.inf) for scores in logits]
    return (*logits, context) if model.training else (*(scores.cpu() for scores in logits), context)
