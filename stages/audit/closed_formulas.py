"""The parameters of a BERT by closed formulas, as the papers count parameters, biases and layer norms included."""

from fractions import Fraction

# As in bert-base-uncased.
VOCABULARY = 30522

# Layers, width h, inner width of the feed-forward network, heads.
SIZES = {"small": (4, 512, 2048, 8), "base": (12, 768, 3072, 12)}


def count_parameters(operator: str, size: str) -> dict[str, int]:
    """Count the parameters of a BERT with `original`, `symmetric`, `pairwise` or `shared` attention by closed formula.

    The result is by part: projections (Q, K, V of a layer, with matrices or diagonals), block (with the output
    projection), layer, masked_lm (whole model, decoder tied to the embedding), classifier (whole model, two labels).
    """
    layers, h, inner, heads = SIZES[size]
    # A linear map with bias, and a layer norm.
    linear = h * h + h
    norm = 2 * h
    projections = {
        "original": 3 * linear,
        "symmetric": 2 * linear,
        # A matrix [h / heads, h / heads] per head.
        "pairwise": 2 * linear + h * h // heads,
        # Three diagonals.
        "shared": linear + 3 * h,
    }[operator]
    block = projections + linear
    # The feed-forward network has two linear maps. A layer norm follows the network, another the attention block.
    layer = block + 2 * h * inner + inner + h + 2 * norm
    # Rows of the embeddings: also 512 positions and 2 types.
    encoder = (VOCABULARY + 512 + 2) * h + norm + layers * layer
    return {
        "projections": projections,
        "block": block,
        "layer": layer,
        # A bias per word; the classifier has a pooler.
        "masked_lm": encoder + linear + norm + VOCABULARY,
        "classifier": encoder + linear + 2 * (h + 1),
    }


def compute_saved_percent(operator: str, size: str) -> dict[str, Fraction]:
    """Compute the per cent of parameters that an operator saves against `original`, by part, as in count_parameters."""
    whole = count_parameters("original", size)
    reduced = count_parameters(operator, size)
    return {part: 100 * (1 - Fraction(reduced[part], whole[part])) for part in whole}
