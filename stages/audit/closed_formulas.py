"""The parameters of a BERT by closed formulas, as the papers count them, biases and layer norms included."""

from dataclasses import dataclass

VOCABULARY, POSITIONS, TYPES = 30522, 512, 2  # rows of the embeddings, as in bert-base-uncased
SIZES = {"small": (4, 512, 2048, 8), "base": (12, 768, 3072, 12)}  # layers, width h, inner width, heads


@dataclass(frozen=True)
class Count:
    """Exact numbers of parameters. projections: of Q, K and V in one layer, with the matrices S or the diagonals.

    layer: one whole layer. encoder: the embeddings and all layers. masked_lm: the encoder and the masked-LM head: a
    linear map, a norm, the bias of a decoder tied to the word embedding. classifier: encoder, pooler and two labels.
    """

    projections: int
    layer: int
    encoder: int
    masked_lm: int
    classifier: int


def bert(operator: str, size: str, bias: bool = True) -> Count:
    """Counts the parameters of a BERT.

    Args:
        operator: `original`, `symmetric`, `pairwise` or `shared`.
        size: a key of SIZES.
        bias: whether the only projection of shared has a bias (Kowsher et al. do not say, so counts.py tries both);
            those of the other operators always have.
    """
    layers, h, inner, heads = SIZES[size]
    linear = h * h + h  # with bias, as the output projection of attention; a layer norm has 2 h parameters
    projections = {
        "original": 3 * linear,
        "symmetric": 2 * linear,
        "pairwise": 2 * linear + heads * (h // heads) ** 2,
        "shared": h * h + bias * h + 3 * h,
    }[operator]
    layer = projections + linear + 2 * h + (h * inner + inner) + (inner * h + h) + 2 * h  # with two norms
    encoder = (VOCABULARY + POSITIONS + TYPES) * h + 2 * h + layers * layer
    return Count(projections, layer, encoder, encoder + linear + 2 * h + VOCABULARY, encoder + linear + 2 * h + 2)
