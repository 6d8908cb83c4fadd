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

from stages.attention.bert import OperatorBertForQuestionAnswering, OperatorConfig
from stages.learning.finetuning import batches
from stages.learning.optimisation import (
    DROPOUT,
    INITIALISATION,
    ORDER,
    autocast,
    derived_seed,
    device,
    optimiser,
    scheduled_rate,
    update,
)
from stages.learning.windows import Windows, encode, padded

EVALUATION_BATCH = 128  # windows


def finetune(run: dict, weights: Path, tokenizer: Path, train: Path, kept: Path | None = None) -> tuple:
    """Trains on the table `train`; gives the model and the seconds of training.

    run: name, seed, training (a record of `question_answering`). weights: a model folder; of a model that answers
    questions already, its head goes on too. kept: where to save the model.
    """
    model = _model(run, weights).to(device())
    windows = _encode(train, tokenizer, run["training"])
    started = time.perf_counter()
    _train(model, windows, run)
    seconds = time.perf_counter() - started
    if kept:
        model.save_pretrained(kept)
    return model, seconds


def answer(model, table: Path, tokenizer: Path, settings: dict, unanswerable: bool) -> list[str]:
    """The answer to every question of the table, as it stands in its context.

    settings: a record of `question_answering`. unanswerable: whether the empty text, for no answer, is allowed.
    """
    windows = _encode(table, tokenizer, settings)
    threshold = settings["null_threshold"] if unanswerable else None
    best = score(model, windows, settings["answer_length"], settings["precision"])
    return read(pd.read_parquet(table, columns=["context"])["context"], windows, best, threshold)


def read(contexts: pd.Series, windows: Windows, best: np.ndarray, null_threshold: float | None) -> list[str]:
    """The texts of the best spans of `score`, one a question; of several windows, the highest score counts.

    A question is left unanswered where [CLS], in the window that speaks least for it, outscores the best span by more
    than `null_threshold`; never where that is None.
    """
    answers = []
    borders = np.searchsorted(windows.questions, np.arange(len(contexts) + 1))
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
    """The best span of every window, of all within its context and of at most `answer_length` tokens.

    Record array [windows]: score (sum of the two logits; minus infinity for an empty context), first and last (tokens,
    counted from the context's first), null (the same sum for [CLS]).
    """
    model.eval()
    order = np.argsort([len(ids) for ids in windows.ids], kind="stable")
    found = np.empty(len(windows), dtype=[("score", "f4"), ("first", "i4"), ("last", "i4"), ("null", "f4")])
    for begin in range(0, len(order), EVALUATION_BATCH):
        indices = order[begin : begin + EVALUATION_BATCH]
        starts, ends, context = _logits(model, windows, indices, precision)
        value, first, last = best_span(starts, ends, context, answer_length)
        shift = torch.from_numpy(windows.begins[indices])
        found["score"][indices], found["null"][indices] = value, starts[:, 0] + ends[:, 0]
        found["first"][indices], found["last"][indices] = first - shift, last - shift
    return found


def best_span(
    starts: torch.Tensor, ends: torch.Tensor, allowed: torch.Tensor, longest: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Highest starts[first] + ends[last] with first <= last < first + longest, both allowed: (value, first, last), [b].

    starts, ends, allowed: [b, n]. All spans are looked at, so no list of the n best has to be long enough.
    """
    n = starts.shape[1]
    starts, ends = (scores.masked_fill(~allowed, -torch.inf) for scores in (starts, ends))
    values = torch.full((starts.shape[0], min(longest, n), n), -torch.inf)
    for further in range(values.shape[1]):
        values[:, further, : n - further] = starts[:, : n - further] + ends[:, further:]
    value, place = values.flatten(1).max(1)
    first = place % n
    return value, first, first + place // n


def _encode(table: Path, tokenizer: Path, settings: dict) -> Windows:
    return encode(table, tokenizer, *(settings[name] for name in ("maximum_length", "question_length", "stride")))


def _model(run: dict, weights: Path) -> OperatorBertForQuestionAnswering:
    torch.manual_seed(derived_seed(run["seed"], INITIALISATION))
    config = OperatorConfig.from_pretrained(
        weights,
        hidden_dropout_prob=run["training"]["hidden_dropout"],
        attention_probs_dropout_prob=run["training"]["attention_dropout"],
    )
    return OperatorBertForQuestionAnswering.from_pretrained(weights, config=config)


def _train(model, windows: Windows, run: dict) -> None:
    settings, seed = run["training"], run["seed"]
    adamw = optimiser(model, settings["betas"], settings["epsilon"], settings["weight_decay"])
    steps = settings["epochs"] * -(-len(windows) // settings["batch_size"])
    warmup = round(settings["warmup_share"] * steps)
    model.train()
    step = 0
    for epoch in range(settings["epochs"]):
        for indices in batches(windows, settings["batch_size"], derived_seed(seed, ORDER, epoch)):
            torch.manual_seed(derived_seed(seed, DROPOUT, step))
            starts, ends, _ = _logits(model, windows, indices, settings["precision"])
            spans = torch.from_numpy(windows.spans[indices]).to(starts.device)
            loss = (functional.cross_entropy(starts, spans[:, 0]) + functional.cross_entropy(ends, spans[:, 1])) / 2
            where = f"fine-tuning {run['name']}, step {step + 1}"
            update(
                model, adamw, loss, scheduled_rate(settings, step, steps, warmup), settings["gradient_clipping"], where
            )
            step += 1


def _logits(model, windows: Windows, indices: np.ndarray, precision: str) -> tuple:
    """Scores as the first and as the last token, [windows, n] float32, lowest for padding; and which are the context's.

    While the model is trained they stay on its device; else they come back to the CPU.
    """
    batch, where = padded(windows, indices), device()
    mask = batch.mask.to(where)
    with autocast(precision):
        given = model(batch.ids.to(where), attention_mask=mask, token_type_ids=batch.types.to(where))
    logits = [scores.float().masked_fill(mask == 0, -torch.inf) for scores in (given.start_logits, given.end_logits)]
    return (*logits, batch.context) if model.training else (*(scores.cpu() for scores in logits), batch.context)
