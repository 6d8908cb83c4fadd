"""Parameters and floating-point operations of every operator: by its closed formulas, and counted on a built model.

Both papers count the masked-LM model with BERT's vocabulary of 30,522 (Courtois et al. 2024, Table 2; Kowsher et al.,
Table 4, whose shared-weight row is a two-label classifier's count instead).

Everywhere `variant` is an operator's name, or a dict of settings as `configuration` takes them, `operator` among them;
`size` is a record of section `models` of params.yaml, with the keys `layers`, `hidden` (the width h), `heads`,
`intermediate` and `positions` (the longest sequence). An unknown operator is a ValueError.
"""

import math
from typing import Any

import torch
from torch import nn

from .bert import OperatorBertForMaskedLM, OperatorBertForSequenceClassification, WithOperator
from .configuration import configuration
from .operators import operator_class

MODELS: dict[str, type[WithOperator]] = {  # by the name of the count of its parameters
    "masked_lm_parameters": OperatorBertForMaskedLM,
    "classifier_parameters": OperatorBertForSequenceClassification,  # two labels, with pooler
}
Variant = dict[str, Any] | str


def attention_formulas(variant: Variant, size: dict[str, int]) -> dict[str, int]:
    """Counts one layer's attention parameters by closed formula; of `size` it reads `hidden`, `heads`, `positions`.

    attention_weights: without biases and output projection (Courtois et al. 2024, Table 1; Kowsher et al., Table 3).
    attention_parameters: with biases. attention_block_parameters: with both, as the blog post counts.
    """
    kind, hidden = operator_class(variant), size["hidden"]
    shapes = kind.parameter_shapes(hidden, size["heads"], size["positions"])
    weights = len(kind.linear_layers) * hidden * hidden + sum(map(math.prod, shapes.values()))
    parameters = weights + len(kind.linear_layers) * hidden
    return {
        "attention_weights": weights,
        "attention_parameters": parameters,
        "attention_block_parameters": parameters + hidden * hidden + hidden,
    }


def layer_formulas(variant: Variant, size: dict[str, int]) -> dict[str, int]:
    """Returns the numbers of `attention_formulas` and two more, for one layer, by closed formula.

    feed_forward_parameters: without LayerNorm. layer_parameters: of attention block, this network and two LayerNorms.
    """
    numbers, kind = attention_formulas(variant, size), operator_class(variant)
    feed_forward = sum(kind.feed_forward_weights(size["hidden"], size["intermediate"]))
    layer = numbers["attention_block_parameters"] + feed_forward + 4 * size["hidden"]
    return numbers | {"feed_forward_parameters": feed_forward, "layer_parameters": layer}


def counted_layer(variant: Variant, size: dict[str, int]) -> dict[str, int]:
    """Counts attention_parameters and feed_forward_parameters, as `layer_formulas` defines them, on a built layer."""
    layer = _one_layer(OperatorBertForMaskedLM, variant, size).bert.encoder.layer[0]
    return {
        "attention_parameters": _count(layer.attention.self),
        "feed_forward_parameters": _count(layer.intermediate) + _count(layer.output.dense),
    }


def model_parameters(kind: str, variant: Variant, size: dict[str, int]) -> int:
    """Counts the trainable parameters of a model.

    As all layers are alike, a model of one layer is built, and that layer counted as often as the size has layers.

    Args:
        kind: a key of MODELS.
        variant: the operator.
        size: of the model; the vocabulary is BERT's of 30,522.

    Returns:
        The number; the weights of the masked-LM decoder, which are those of the word embedding, are counted once.
    """
    model = _one_layer(MODELS[kind], variant, size)
    return _count(model) + (size["layers"] - 1) * _count(model.base_model.encoder.layer[0])


def first_score_spread(variant: Variant, size: dict[str, int], deviation: float) -> float | None:
    """Computes the standard deviation of the scores between different tokens before any training, by closed formula.

    Args:
        variant, size: the operator, and the size of the model.
        deviation: standard deviation of the new weights of Linear layers.

    Returns:
        The variant's `score_spread` if it has one, or else the formula's value; None where there is no formula.
    """
    layer = _one_layer(OperatorBertForMaskedLM, variant, size).bert.encoder.layer[0]
    return layer.attention.self.first_spread(deviation)


def _one_layer(model: type[WithOperator], variant: Variant, size: dict[str, int]) -> WithOperator:
    """Builds the model with one layer on the meta device, where its parameters have shapes but take no memory."""
    settings = {"operator": variant} if isinstance(variant, str) else variant
    with torch.device("meta"):
        return model(configuration(**settings, **size | {"layers": 1}))


def _count(module: nn.Module) -> int:
    """Counts the parameters of a module; one that stands in several places counts once."""
    return sum(parameter.numel() for parameter in module.parameters())


def block_work(variant: Variant, hidden: int, heads: int, length: int) -> int:
    """Counts the floating-point operations per token, forward, of the matrix products of one attention block.

    These are all projections (each computed once, the output projection among them), the scores and the weighted sum of
    values; a multiplication and the addition of its product are two operations.

    Args:
        variant, hidden, heads, length: the operator, width h, number of heads, and number of tokens of a sequence.
    """
    kind = operator_class(variant)
    linear = 2 * hidden * hidden * (len(kind.linear_layers) + 1)
    return linear + kind.score_work(hidden, heads, length) + 2 * hidden * length


def training_flops(variant: Variant, size: dict[str, int], vocabulary_size: int, length: int, masked: float) -> float:
    """Counts operations per token as `block_work` does, but of a masked-LM training step, forward and backward.

    Args:
        variant, size: the operator, and the size of the model.
        vocabulary_size, length: classes of the masked-LM head, and tokens of a sequence.
        masked: share of the tokens that the head predicts, in [0, 1].
    """
    hidden = size["hidden"]
    weights, _ = operator_class(variant).feed_forward_weights(hidden, size["intermediate"])
    layer = block_work(variant, hidden, size["heads"], length) + 2 * weights
    head = 2 * hidden * hidden + 2 * hidden * vocabulary_size  # a Linear layer h -> h, and the decoder
    return 3 * (size["layers"] * layer + masked * head)  # backward: two products for every one forward
