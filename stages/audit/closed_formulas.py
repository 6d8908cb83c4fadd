"""The parameters of a BERT by closed formulas, as the papers count them."""

from dataclasses import dataclass

VOCABULARY, POSITIONS, TYPES = 30522, 512, 2
SIZES = {"small": (4, 512, 2048, 8), "base": (12, 768, 3072, 12)}  # layers, width, inner width, heads


@dataclass(frozen=True)
class Count:
    """Exact parameters of a BERT: projections of one layer, one layer, the encoder, and the two heads."""

    projections: int
    layer: int
    encoder: int
    masked_lm: int
    classifier: int


def bert(operator: str, size: str, bias: bool = True) -> Count:
    """Counts the parameters of a BERT.

    Args:
        operator: one of printed.KOWSHER.
        size: a key of SIZES.
        bias: whether the projection of shared has one.
    """
    layers, h, inner, heads = SIZES[size]
    linear = h * h + h
    projections = {
        "original": 3 * linear,
        "symmetric": 2 * linear,
        "pairwise": 2 * linear + heads * (h // heads) ** 2,
        "shared": h * h + bias * h + 3 * h,
    }[operator]
    layer = projections + linear + 2 * h + (h * inner + inner) + (inner * h + h) + 2 * h
    encoder = (VOCABULARY + POSITIONS + TYPES) * h + 2 * h + layers * layer
    return Count(projections, layer, encoder, encoder + linear + 2 * h + VOCABULARY, encoder + linear + 2 * h + 2)
