"""Translates with a trained Transformer: by greedy search, and by beam search with a length penalty.

Every step runs the decoder over the whole prefix, with no cache: one way for all operators, and sentences are short.
"""

from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor

from stages.encoder_decoder.pairs import BEGIN, END, PAD, Pairs
from stages.encoder_decoder.transformer import Transformer
from stages.training.batches import padded, sorted_batches
from stages.training.optimisation import autocast

BATCH = 64  # sentences that are translated at once
NOTHING = float("-inf")  # log probability of a hypothesis that there is not


@torch.no_grad()
def translate(
    model: Transformer, pairs: Pairs, tokenizer: Path, precision: str, beams: int, length_penalty: float
) -> list[str]:
    """Translates the source side of some pairs.

    Args:
        model, pairs: a trained model, which is left in evaluation mode, and the pairs.
        tokenizer, precision: the file of the tokenizer of the target side, and float32 or bfloat16.
        beams: living hypotheses per sentence; 1 is greedy search, which has no length penalty.
        length_penalty: alpha of Wu et al. 2016, equation 14, which Vaswani et al. use: a hypothesis of n tokens, END
            among them, is worth its log probability / ((5 + n) / 6)^alpha.

    Returns:
        One text per pair, in their order. With BEGIN and END it has at most as many tokens as the model has positions.
    """
    model.eval()
    words = Tokenizer.from_file(str(tokenizer))
    texts = [""] * len(pairs)
    for indices in sorted_batches([len(sentence) for sentence in pairs.source], BATCH):
        source = padded(pairs.source, indices)
        with autocast(precision):
            translated = greedy(model, source) if beams == 1 else beam(model, source, beams, length_penalty)
        for i, ids in zip(indices, translated, strict=True):
            texts[i] = words.decode(ids)
    return texts


def greedy(model: Transformer, source: Tensor) -> list[list[int]]:
    """Appends the most likely token to every prefix, until END or the last position of the model.

    model: in evaluation mode. source: token ids [batch, n], padded with PAD. Returns ids without BEGIN and END.
    """
    memory, seen = model.encode(source)
    prefix = torch.full((len(source), 1), BEGIN, device=source.device)
    ended = torch.zeros(len(source), dtype=torch.bool, device=source.device)
    while prefix.shape[1] < len(model.places) and not ended.all():
        scores = model.output(model.decode(prefix, memory, seen)[:, -1])
        following = scores.argmax(-1).masked_fill(ended, PAD)
        prefix = torch.cat([prefix, following[:, None]], dim=1)
        ended |= following == END
    return [_inner(row) for row in prefix.tolist()]


def beam(model: Transformer, source: Tensor, beams: int, alpha: float) -> list[list[int]]:
    """Searches by beams for the hypothesis of the highest penalised log probability.

    In every step a hypothesis may end only among the `beams` best continuations of its sentence. The search stops when
    in no sentence a living hypothesis can overtake the best one that has ended, even if all its further tokens were
    certain. A hypothesis that has not ended at the model's last position counts as it is.

    Args:
        model, source: as in `greedy`.
        beams, alpha: number of living hypotheses of a sentence, and exponent of the length penalty.

    Returns:
        The token ids of each translation, without BEGIN and END.
    """
    batch, longest = len(source), len(model.places)
    memory, seen = (T.repeat_interleave(beams, dim=0) for T in model.encode(source))
    prefix = torch.full((batch, beams, 1), BEGIN, device=source.device)
    living = torch.full((batch, beams), NOTHING, device=source.device)
    living[:, 0] = 0.0  # all beams begin with the same prefix: only one of them may live, or they would stay equal
    best = [(NOTHING, [])] * batch
    for n in range(1, longest):
        scores = model.output(model.decode(prefix.flatten(0, 1), memory, seen)[:, -1]).float().log_softmax(-1)
        words = scores.shape[-1]
        total = (living[..., None] + scores.unflatten(0, (batch, beams))).flatten(1)
        values, places = total.topk(2 * beams)  # each of `beams` prefixes has one END: at least `beams` others remain
        parents, following = places // words, places % words
        prefix = torch.cat([prefix.gather(1, parents[..., None].expand(-1, -1, n)), following[..., None]], dim=-1)
        ends = (following == END) | (n == longest - 1)
        for i, j in ends[:, :beams].nonzero().tolist():
            penalised = values[i, j].item() / penalty(n, alpha)
            if penalised > best[i][0]:
                best[i] = penalised, _inner(prefix[i, j].tolist())
        living, chosen = values.masked_fill(ends, NOTHING).topk(beams)
        prefix = prefix.gather(1, chosen[..., None].expand(-1, -1, n + 1))
        bound = living.max(-1).values / penalty(longest - 1, alpha)  # no further loss, and the largest divisor
        if all(value >= possible for (value, _), possible in zip(best, bound.tolist(), strict=True)):
            break
    return [ids for _, ids in best]


def penalty(tokens: int, alpha: float) -> float:
    """The length penalty ((5 + n) / 6)^alpha of a hypothesis of n tokens with END (Wu et al. 2016, equation 14)."""
    return ((5 + tokens) / 6) ** alpha


def _inner(ids: list[int]) -> list[int]:
    """The ids between BEGIN and the first END, or all after BEGIN where there is no END."""
    ids = ids[1:]
    return ids[: ids.index(END)] if END in ids else ids
