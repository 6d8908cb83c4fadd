"""Parameters and floating-point operations of every operator: by its closed formulas, and counted on a built model.

Both papers count the masked-LM model with BERT's vocabulary of 30,522 (Courtois et al. 2024, Table 2; Kowsher et al.,
Table 4, whose shared-weight row is a two-label classifier's count instead).

Everywhere `variant` is an operator's name, or settings as `configuration` takes them, `operator` among them; `hidden`
is the width h, `positions` the longest sequence, `size` a record of section `models` of params.yaml.
"""

from typing import Any

import torch

from .bert import OperatorBertForMaskedLM, OperatorBertForSequenceClassification, WithOperator
from .configuration import configuration
from .operators import operator_class

MODELS: dict[str, type[WithOperator]] = {
    "masked_lm_parameters": OperatorBertForMaskedLM,
    "classifier_parameters": OperatorBertForSequenceClassification,  # two labels, with pooler
}
Variant = dict[str, Any] | str


def attention_weights(variant: Variant, hidden: int, heads: int, positions: int) -> int:
    """Parameters of one layer's self-attention without the output projection and without biases.

    What the formulas of Courtois et al. 2024, Table 1, and Kowsher et al., Table 3, count.
    """
    kind = operator_class(variant)
    return len(kind.linear_layers) * hidden * hidden + kind.own_parameters(hidden, heads, positions)


def attention_parameters(variant: Variant, hidden: int, heads: int, positions: int) -> int:
    """Parameters of one layer's self-attention without the output projection, biases included."""
    return attention_weights(variant, hidden, heads, positions) + len(operator_class(variant).linear_layers) * hidden


def attention_block_parameters(variant: Variant, hidden: int, heads: int, positions: int) -> int:
    """Self-attention and output projection, biases included: one layer as the blog post counts it."""
    return attention_parameters(variant, hidden, heads, positions) + hidden * hidden + hidden


def over_parameters_weights(hidden: int, heads: int, width: int, pairs: int) -> int:
    """Weights of attention over `pairs` learned keys and values a head of `width`, no biases (draft, first formula)."""
    return 2 * heads * width * (hidden + pairs)


def layer_parameters(variant: Variant, size: dict[str, int]) -> tuple[int, int]:
    """Parameters of one layer's self-attention and of its feed-forward network, by closed formula."""
    hidden, heads = size["hidden"], size["heads"]
    return (
        attention_parameters(variant, hidden, heads, size["positions"]),
        operator_class(variant).feed_forward_parameters(hidden, heads, size["intermediate"]),
    )


def counted_layer_parameters(variant: Variant, size: dict[str, int]) -> tuple[int, int]:
    """The same two numbers, counted on a built layer."""
    layer = _built(OperatorBertForMaskedLM, variant, size | {"layers": 1}).bert.encoder.layer[0]
    return _count(layer.attention.self), _count(layer.intermediate) + _count(layer.output.dense)


def whole_layer_parameters(variant: Variant, size: dict[str, int]) -> int:
    """All parameters of one layer by closed formula: attention block, feed-forward network, two LayerNorms."""
    hidden, heads = size["hidden"], size["heads"]
    block = attention_block_parameters(variant, hidden, heads, size["positions"])
    return block + layer_parameters(variant, size)[1] + 4 * hidden


def model_parameters(kind: str, variant: Variant, size: dict[str, int]) -> int:
    """Counts the trainable parameters of a model.

    Layers are alike: one is built, and counted as often as the size has layers.

    Args:
        kind: a key of MODELS.
        variant: the operator.
        size: of the model; the vocabulary is BERT's of 30,522.

    Returns:
        The number; the decoder of the masked-LM model, tied to the word embedding, is counted once.
    """
    model = _built(MODELS[kind], variant, size | {"layers": 1})
    return _count(model) + (size["layers"] - 1) * _count(model.base_model.encoder.layer[0])


def first_score_spread(variant: Variant, size: dict[str, int], deviation: float) -> float | None:
    """Computes the standard deviation of the scores between different tokens before any training, by closed formula.

    Args:
        variant: the operator.
        size: of the model.
        deviation: standard deviation of a new weight.

    Returns:
        The spread; None where the operator has no formula.
    """
    layer = _built(OperatorBertForMaskedLM, variant, size | {"layers": 1}).bert.encoder.layer[0]
    return layer.attention.self.first_spread(deviation)


def _built(model: type[WithOperator], variant: Variant, size: dict[str, int]) -> WithOperator:
    settings = {"operator": variant} if isinstance(variant, str) else variant
    with torch.device("meta"):
        return model(configuration(**settings, **size))


def _count(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def block_work(variant: Variant, hidden: int, heads: int, length: int) -> int:
    """Counts the floating-point operations a token of the matrix products of one attention block, forward.

    Args:
        variant: the operator, in the form with the least work, which evaluates no projection twice.
        hidden: width h.
        heads: number of heads.
        length: tokens of a sequence.

    Returns:
        Two for every multiplication with its addition; the output projection is included.
    """
    kind = operator_class(variant)
    linear = 2 * hidden * hidden * (len(kind.linear_layers) + 1)
    return linear + kind.own_work(hidden, heads, length) + 2 * hidden * length


def training_flops(variant: Variant, size: dict[str, int], vocabulary_size: int, length: int, masked: float) -> float:
    """Counts the floating-point operations a token of the matrix products of one masked-LM training step.

    Args:
        variant: the operator.
        size: of the model.
        vocabulary_size: classes of the masked-LM head.
        length: tokens of a sequence.
        masked: share of the tokens that the head predicts, in [0, 1].

    Returns:
        Two for every multiplication with its addition, forward and backward.
    """
    hidden, heads, intermediate = size["hidden"], size["heads"], size["intermediate"]
    feed_forward = operator_class(variant).feed_forward_work(hidden, heads, intermediate)
    layer = block_work(variant, hidden, heads, length) + feed_forward
    head = 2 * hidden * hidden + 2 * hidden * vocabulary_size
    return 3 * (size["layers"] * layer + masked * head)  # the backward pass takes two products for each of the forward
