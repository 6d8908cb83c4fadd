"""Translates with a trained Transformer, by greedy search or by beam search with a length penalty.

Every step runs the decoder over the whole prefix, without a cache: sentences are short, and all operators are treated
alike.
"""

from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor

from stages.encoder_decoder.pairs import BEGIN, END, PAD, Pairs
from stages.encoder_decoder.transformer import Transformer
from stages.training.batches import pad_sequences, sort_into_batches
from stages.training.optimisation import open_autocast

# Number of sentences that are translated at once.
BATCH = 64
# Log probability of a hypothesis that does not exist.
NOTHING = float("-inf")


@torch.no_grad()
def translate_pairs(
    model: Transformer,
    pairs: Pairs,
    tokenizer: Path,
    precision: str,
    beams: int,
    length_penalty: float,
) -> list[str]:
    """Translates the source sentences of some pairs.

    Args:
        model: a trained model, which is left in evaluation mode.
        pairs: the pairs.
        tokenizer: the file of the tokenizer of the target side.
        precision: `float32` or `bfloat16`.
        beams: hypotheses kept per sentence; 1 is greedy search, which has no length penalty.
        length_penalty: exponent of the length penalty `((5 + n) / 6)^alpha`.

    Returns:
        A text per pair, in the order of the pairs. With begin and end token, a translation has at most as many tokens
        as the model has positions.
    """
    model.eval()
    words = Tokenizer.from_file(str(tokenizer))
    texts = [""] * len(pairs)
    lengths = [len(sentence) for sentence in pairs.source]
    for indices in sort_into_batches(lengths, BATCH):
        source = pad_sequences(pairs.source, indices)
        with open_autocast(precision):
            if beams == 1:
                translated = decode_greedily(model, source)
            else:
                translated = search_by_beams(model, source, beams, length_penalty)
        for i, ids in zip(indices, translated, strict=True):
            texts[i] = words.decode(ids)
    return texts


def decode_greedily(model: Transformer, source: Tensor) -> list[list[int]]:
    """Translates by appending the most likely token, until the end token or the model's last position.

    Args:
        model: in evaluation mode.
        source: token ids `[batch, n]`, padded.

    Returns:
        The token ids of each translation, without begin and end token.
    """
    memory, seen = model.encode(source)
    prefix = torch.full((len(source), 1), BEGIN, device=source.device)
    ended = torch.zeros(len(source), dtype=torch.bool, device=source.device)
    while prefix.shape[1] < len(model.places) and not ended.all():
        hidden = model.decode(prefix, memory, seen)[:, -1]
        following = model.output(hidden).argmax(-1)
        # A translation that has ended is padded.
        following = following.masked_fill(ended, PAD)
        prefix = torch.cat([prefix, following[:, None]], dim=1)
        ended |= following == END
    translations = []
    for ids in prefix.tolist():
        translations.append(_strip_marks(ids))
    return translations


def search_by_beams(model: Transformer, source: Tensor, beams: int, alpha: float) -> list[list[int]]:
    """Translates by beam search: finds the hypothesis with the highest log probability divided by the length penalty.

    In every step a hypothesis may end only among the `beams` best continuations of the sentence. The search stops when
    in no sentence an open hypothesis can overtake the best ended hypothesis, even if all further tokens were certain. A
    hypothesis that is open at the model's last position counts as ended.

    Args:
        model: in evaluation mode.
        source: token ids `[batch, n]`, padded.
        beams: number of open hypotheses of a sentence.
        alpha: exponent of the length penalty.

    Returns:
        The token ids of each translation, without begin and end token.
    """
    batch = len(source)
    longest = len(model.places)
    device = source.device
    rows = torch.arange(batch, device=device)[:, None]
    memory, seen = model.encode(source)
    memory = memory.repeat_interleave(beams, dim=0)
    seen = seen.repeat_interleave(beams, dim=0)
    prefix = torch.full((batch, beams, 1), BEGIN, device=device)
    # All beams begin with the same prefix. Only the first beam is open, because equal beams would stay equal.
    living = torch.full((batch, beams), NOTHING, device=device)
    living[:, 0] = 0.0
    best = [NOTHING] * batch
    translations = [[] for _ in range(batch)]
    for n in range(1, longest):
        hidden = model.decode(prefix.flatten(0, 1), memory, seen)[:, -1]
        scores = model.output(hidden).float().log_softmax(-1)
        scores = scores.unflatten(0, (batch, beams))
        words = scores.shape[-1]
        # Each of `beams` prefixes has a single END: of the best 2 * beams continuations, at least `beams` go on.
        continued = living[..., None] + scores
        total, places = continued.flatten(1).topk(2 * beams)
        parents = places // words
        following = places % words
        extended = prefix[rows, parents]
        prefix = torch.cat([extended, following[..., None]], dim=-1)
        ends = (following == END) | (n == longest - 1)
        for i, j in ends[:, :beams].nonzero().tolist():
            value = total[i, j].item() / compute_length_penalty(n, alpha)
            if value > best[i]:
                best[i] = value
                translations[i] = _strip_marks(prefix[i, j].tolist())
        going_on = total.masked_fill(ends, NOTHING)
        living, chosen = going_on.topk(beams)
        prefix = prefix[rows, chosen]
        # Upper bound of an open hypothesis: no further loss of probability, and the largest penalty as the divisor.
        highest = living.max(-1).values
        bounds = highest / compute_length_penalty(longest - 1, alpha)
        decided = [value >= bound for value, bound in zip(best, bounds.tolist(), strict=True)]
        if all(decided):
            break
    return translations


def compute_length_penalty(tokens: int, alpha: float) -> float:
    """Computes the length penalty `((5 + n) / 6)^alpha` of a hypothesis of n tokens, the end token included.

    Beam search divides log probabilities by the penalty, in favour of long hypotheses (Wu et al. 2016, equation 14, as
    in Vaswani et al.). For `alpha = 0` the penalty is 1.
    """
    return ((5 + tokens) / 6) ** alpha


def _strip_marks(ids: list[int]) -> list[int]:
    """Removes the begin token, and the end token with everything after: `[BEGIN, 7, 9, END, PAD]` -> `[7, 9]`."""
    inner = ids[1:]
    if END in inner:
        return inner[: inner.index(END)]
    return inner
