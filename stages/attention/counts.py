"""Parameters and work of every operator: by closed formula, and by counting a built model.

Both papers count the masked-LM model with BERT's vocabulary of 30,522 (Courtois et al. 2024, Table 2; Kowsher et al.,
Table 4, whose shared-weight row is a two-label classifier's count instead).
"""

import torch

from stages.attention.bert import (
    OVER_PARAMETERS,
    OperatorBertForMaskedLM,
    OperatorBertForSequenceClassification,
    WithOperator,
    configuration,
)

MODELS: dict[str, type[WithOperator]] = {
    "masked_lm_parameters": OperatorBertForMaskedLM,
    "classifier_parameters": OperatorBertForSequenceClassification,  # two labels, with pooler
}


def attention_parameters(operator: str, hidden: int, heads: int, positions: int) -> int:
    """Parameters of one layer's self-attention without the output projection, biases included.

    Courtois et al. 2024, Table 1, and Kowsher et al., Table 3, print the first four without biases.
    """
    projection = hidden * hidden + hidden
    formulas = {
        "symmetric": 2 * projection,
        "pairwise": 2 * projection + heads * (hidden // heads) ** 2,
        "shared": projection + 3 * hidden,
        "partial_qk": 2 * projection + hidden,
        "hadamard": projection + heads * positions**2 + 1,
        "fixed": projection + heads * positions**2,
        "shared_kv": 2 * projection,
        "tied_qkv": projection,
    }
    return formulas.get(operator, 3 * projection)


def attention_weights(operator: str, hidden: int, heads: int, positions: int) -> int:
    """The same without the biases of the projections: what the formulas of both papers count."""
    projections = {"symmetric": 2, "pairwise": 2, "partial_qk": 2, "shared_kv": 2}
    projections |= dict.fromkeys(("shared", "hadamard", "fixed", "tied_qkv"), 1)
    return attention_parameters(operator, hidden, heads, positions) - projections.get(operator, 3) * hidden


def attention_block_parameters(operator: str, hidden: int, heads: int, positions: int) -> int:
    """Self-attention and output projection, biases included: one layer as the blog post counts it."""
    return attention_parameters(operator, hidden, heads, positions) + hidden * hidden + hidden


def over_parameters_weights(hidden: int, heads: int, width: int, pairs: int) -> int:
    """Attention over `pairs` trained keys and values a head of `width`, without biases (draft, first formula)."""
    return 2 * heads * width * (hidden + pairs)


def feed_forward_parameters(operator: str, hidden: int, heads: int, intermediate: int) -> int:
    """Parameters of one layer's feed-forward network, or of what stands in its place, without the LayerNorm."""
    if operator in OVER_PARAMETERS:
        width = OVER_PARAMETERS[operator] * hidden  # of all heads together
        pairs = intermediate * hidden // width - hidden
        return hidden * width + width + 2 * pairs * width + width * hidden + hidden
    if operator == "original_narrow":
        intermediate -= hidden - 1
    return 2 * hidden * intermediate + intermediate + hidden


def layer_parameters(operator: str, size: dict[str, int]) -> tuple[int, int]:
    """The two numbers above at a size of `models`."""
    hidden, heads = size["hidden"], size["heads"]
    return (
        attention_parameters(operator, hidden, heads, size["positions"]),
        feed_forward_parameters(operator, hidden, heads, size["intermediate"]),
    )


def counted_layer_parameters(operator: str, size: dict[str, int]) -> tuple[int, int]:
    """The same two numbers, counted on a built layer."""
    layer = _built(OperatorBertForMaskedLM, operator, size | {"layers": 1}).bert.encoder.layer[0]
    return _count(layer.attention.self), _count(layer.intermediate) + _count(layer.output.dense)


def model_parameters(kind: str, operator: str, size: dict[str, int]) -> int:
    """Trainable parameters of a whole model, counted; kind: a key of MODELS.

    Vocabulary 30,522; the tied decoder of the masked-LM model counts once.
    """
    return _count(_built(MODELS[kind], operator, size))


def _built(model: type[WithOperator], operator: str, size: dict[str, int]) -> WithOperator:
    with torch.device("meta"):
        return model(configuration(operator, **size))


def _count(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def block_work(operator: str, hidden: int, heads: int, length: int) -> int:
    """Multiply-adds times two a token, forward, of the matrix products of one attention block with output projection.

    length: tokens of a sequence. Each operator in its least-work form: no projection evaluated twice.
    """
    square = 2 * hidden * hidden
    d = hidden // heads
    projected = {
        "symmetric": 2 * square,
        "pairwise": 2 * square + 2 * hidden * d,
        "shared": square,
        "partial_qk": 2 * square,
        "hadamard": square,
        "fixed": square,
        "shared_kv": 2 * square,
        "tied_qkv": square,
    }.get(operator, 3 * square)
    scores = 0 if operator == "fixed" else 2 * hidden * length
    return projected + scores + 2 * hidden * length + square


def feed_forward_work(operator: str, hidden: int, heads: int, intermediate: int) -> int:
    """The same of one layer's feed-forward network: every weight is multiplied once a token."""
    weights = feed_forward_parameters(operator, hidden, heads, intermediate) - hidden
    if operator in OVER_PARAMETERS:
        return 2 * (weights - OVER_PARAMETERS[operator] * hidden)
    narrower = hidden - 1 if operator == "original_narrow" else 0
    return 2 * (weights - (intermediate - narrower))


def training_flops(operator: str, size: dict[str, int], vocabulary_size: int, length: int, masked: float) -> float:
    """Floating-point operations a token of one masked-LM training step, of the matrix products alone.

    size: a record of `models`; length: tokens of a sequence; masked: the share of tokens that the head predicts (1.0:
    all). The backward pass takes two products for each of the forward pass.
    """
    hidden, heads, intermediate = size["hidden"], size["heads"], size["intermediate"]
    layer = block_work(operator, hidden, heads, length) + feed_forward_work(operator, hidden, heads, intermediate)
    head = 2 * hidden * hidden + 2 * hidden * vocabulary_size
    return 3 * (size["layers"] * layer + masked * head)
