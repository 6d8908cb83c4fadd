"""The parameters of a BERT by closed formulas, as the papers count parameters, biases and layer norms included."""

from dataclasses import dataclass
from fractions import Fraction

# Rows of the embeddings, as in bert-base-uncased.
VOCABULARY, POSITIONS, TYPES = 30522, 512, 2

# Layers, width h, inner width of the feed-forward network, heads.
SIZES = {"small": (4, 512, 2048, 8), "base": (12, 768, 3072, 12)}


@dataclass(frozen=True)
class Count:
    """Exact numbers of parameters.

    Attributes:
        projections: Q, K and V in one layer, with the matrices of pairwise or the diagonals of shared.
        block: the attention block, which adds the output projection.
        layer: one whole layer.
        masked_lm: the model with a masked-LM head: a linear map, a norm, the bias of a decoder tied to the embedding.
        classifier: the model with a pooler and a linear map to two labels.
    """

    projections: int
    block: int
    layer: int
    masked_lm: int
    classifier: int


def count_bert(operator: str, size: str) -> Count:
    """Count the parameters of a BERT.

    Args:
        operator: `original`, `symmetric`, `pairwise` or `shared`.
        size: a key of SIZES.
    """
    layers, h, inner, heads = SIZES[size]
    linear, norm = h * h + h, 2 * h
    formulas = {
        "original": 3 * linear,
        "symmetric": 2 * linear,
        "pairwise": 2 * linear + heads * (h // heads) ** 2,
        "shared": linear + 3 * h,
    }
    block = formulas[operator] + linear
    feed_forward = (h * inner + inner) + (inner * h + h)
    layer = block + norm + feed_forward + norm
    encoder = (VOCABULARY + POSITIONS + TYPES) * h + norm + layers * layer
    return Count(
        projections=formulas[operator],
        block=block,
        layer=layer,
        masked_lm=encoder + linear + norm + VOCABULARY,
        classifier=encoder + linear + 2 * (h + 1),
    )


def save_percent(operator: str, size: str) -> dict[str, Fraction]:
    """Compute the per cent of parameters that an operator saves against `original`, by field of `Count`."""
    whole, reduced = vars(count_bert("original", size)), vars(count_bert(operator, size))
    return {part: 100 * (1 - Fraction(reduced[part], whole[part])) for part in whole}
