"""Translates with a trained Transformer, by beam search with a length penalty; a single beam is greedy search.

Every step runs the decoder over the whole prefix, without a cache: sentences are short, and all operators are treated
alike.
"""

from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor

from stages.encoder_decoder.pairs import BEGIN, END, Pairs
from stages.encoder_decoder.transformer import Transformer
from stages.training.batches import pad_sequences, sort_into_batches
from stages.training.machine import open_autocast

# Log probability of a hypothesis that does not exist.
IMPOSSIBLE = float("-inf")


@torch.no_grad()
def translate_pairs(
    model: Transformer,
    pairs: Pairs,
    tokenizer: Path,
    precision: str,
    beams: int,
    length_penalty: float,
) -> list[str]:
    """Translates the source sentences of some pairs; returns a text per pair, in the order of the pairs.

    A translation has at most as many tokens as the model has positions, begin and end token included. `tokenizer` is
    the target's tokenizer.json; `search_by_beams` explains `beams` and `length_penalty` (alpha). The model is left in
    evaluation mode.
    """
    model.eval()
    target_tokenizer = Tokenizer.from_file(str(tokenizer))
    texts = [""] * len(pairs)
    for indices in sort_into_batches([len(sentence) for sentence in pairs.source], size=64):
        source = pad_sequences(pairs.source, indices)
        with open_autocast(precision):
            translated = search_by_beams(model, source, beams, length_penalty)
        for i, ids in zip(indices, translated, strict=True):
            texts[i] = target_tokenizer.decode(ids)
    return texts


def search_by_beams(model: Transformer, source: Tensor, beams: int, alpha: float) -> list[list[int]]:
    """Finds the hypothesis with the highest log probability divided by the length penalty, for each sentence.

    A hypothesis, the first tokens of a translation, is open until the end token or the model's last position. In every
    step, only the `beams` best continuations of a sentence may end. The search stops when in no sentence an open
    hypothesis can overtake the best ended hypothesis.

    The model is in evaluation mode; `source` has padded token ids `[batch, n]`; `alpha` is the exponent of the penalty.
    Returns token ids without begin and end token.
    """
    batch = len(source)
    longest = len(model.places)
    device = source.device
    rows = torch.arange(batch, device=device)[:, None]
    memory, seen = model.encode(source)
    memory = memory.repeat_interleave(beams, dim=0)
    seen = seen.repeat_interleave(beams, dim=0)
    prefix = torch.full((batch, beams, 1), BEGIN, device=device)
    # The log probability of every open hypothesis. All beams begin with the same prefix. Only the first beam is open,
    # because equal beams would stay equal.
    open_values = torch.full((batch, beams), IMPOSSIBLE, device=device)
    open_values[:, 0] = 0.0
    best = [IMPOSSIBLE] * batch
    translations = [[] for _ in range(batch)]
    # n: tokens of a hypothesis after the step, without the begin token.
    for n in range(1, longest):
        hidden = model.decode(prefix.flatten(0, 1), memory, seen)[:, -1]
        following = model.output(hidden).float().log_softmax(-1).unflatten(0, (batch, beams))
        words = following.shape[-1]
        # Each of `beams` prefixes has a single END: of the best 2 * beams continuations, at least `beams` go on.
        continued = open_values[..., None] + following
        # The best continuations of a sentence; an index is beam * words + token.
        values, indices = continued.flatten(1).topk(2 * beams)
        parents = indices // words
        tokens = indices % words
        extended = prefix[rows, parents]
        prefix = torch.cat([extended, tokens[..., None]], dim=-1)
        ends = (tokens == END) | (n == longest - 1)
        for i, j in ends[:, :beams].nonzero().tolist():
            score = values[i, j].item() / compute_length_penalty(n, alpha)
            if score > best[i]:
                best[i] = score
                # Without the begin token, and without the end token, which ends the search for this hypothesis.
                translations[i] = [word for word in prefix[i, j, 1:].tolist() if word != END]
        open_values, chosen = values.masked_fill(ends, IMPOSSIBLE).topk(beams)
        prefix = prefix[rows, chosen]
        # Upper bound of an open hypothesis: no further loss of probability, and the largest penalty as the divisor.
        bounds = open_values.amax(-1) / compute_length_penalty(longest - 1, alpha)
        if all(score >= bound for score, bound in zip(best, bounds.tolist(), strict=True)):
            break
    return translations


def compute_length_penalty(tokens: int, alpha: float) -> float:
    """Computes the length penalty `((5 + n) / 6)^alpha` of a hypothesis of n tokens, the end token included."""
    # Beam search divides log probabilities by the penalty, in favour of long hypotheses (Wu et al. 2016, equation 14,
    # as in Vaswani et al.). For alpha = 0 the penalty is 1.
    return ((5 + tokens) / 6) ** alpha
