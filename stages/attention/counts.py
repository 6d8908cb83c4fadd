"""Parameters of every operator, counted on a built model, and floating-point operations, by closed formula.

All functions raise ValueError for an unknown operator.

Arguments:
    variant: an operator's name, or settings by name with the key `operator`.
    size: a dict with the keys `layers`, `hidden` (the width h), `heads`, `intermediate` and `positions` (the longest
        sequence), as in section `models` of params.yaml.
    length: number of tokens of a sequence.
"""

# Both papers count the masked-LM model with BERT's vocabulary of 30,522 (Courtois et al. 2024, Table 2; Kowsher et al.,
# Table 4, whose shared-weight row is a two-label classifier's count instead).

from typing import Any

import torch
from torch import nn

from .bert import OperatorBertForMaskedLM, OperatorBertForSequenceClassification, WithOperator
from .configuration import make_configuration
from .operators import find_operator_class

Variant = dict[str, Any] | str
Size = dict[str, int]

# by the name of the count of the model's parameters; the classifier has two labels and a pooler
MODELS: dict[str, type[WithOperator]] = {
    "masked_lm_parameters": OperatorBertForMaskedLM,
    "classifier_parameters": OperatorBertForSequenceClassification,
}


def count_layer(variant: Variant, size: Size) -> dict[str, int]:
    """Counts the parameters of a Transformer layer.

    Returns:
        `attention_parameters`: of the self-attention, without output projection.
        `feed_forward_parameters`: without LayerNorm.
        `attention_weights`: of the self-attention, without biases and output projection.
        `attention_block_parameters`: of the self-attention and the output projection.
        `layer_parameters`: of attention block, feed-forward network and two LayerNorms.
    """
    # The weights are the counts of Courtois et al. 2024, Table 1, and Kowsher et al., Table 3. The blog post counts the
    # parameters of the block.
    layer = _build_layer(variant, size)
    attention = layer.attention.self
    parameters = _count_parameters(attention)
    biases = len(attention.linear_layers) * size["hidden"]
    return {
        "attention_parameters": parameters,
        "feed_forward_parameters": _count_parameters(layer.intermediate) + _count_parameters(layer.output.dense),
        "attention_weights": parameters - biases,
        "attention_block_parameters": parameters + _count_parameters(layer.attention.output.dense),
        "layer_parameters": _count_parameters(layer),
    }


def count_model_parameters(kind: str, variant: Variant, size: Size) -> int:
    """Counts the trainable parameters of a model with BERT's vocabulary of 30,522.

    `kind` is `masked_lm_parameters` (the decoder is the word embedding, counted once) or `classifier_parameters`
    (two labels and a pooler).
    """
    # The built model has one layer. The other layers of the size are alike.
    model = _build_on_meta(MODELS[kind], variant, size)
    layer = model.base_model.encoder.layer[0]
    return _count_parameters(model) + (size["layers"] - 1) * _count_parameters(layer)


def compute_first_score_spread(variant: Variant, size: Size, deviation: float) -> float | None:
    """Computes, for tables only, the standard deviation of the attention scores of different tokens before training.

    `deviation` is the standard deviation of the new weights of Linear layers. Returns `None` if the operator has no
    formula (`compute_source_spread`).
    """
    return _build_layer(variant, size).attention.self.compute_first_spread(deviation)


def _build_on_meta(model: type[WithOperator], variant: Variant, size: Size) -> WithOperator:
    """Builds a model of a single layer on the meta device, where parameters take no memory."""
    settings = {"operator": variant} if isinstance(variant, str) else variant
    config = make_configuration(**settings, **size | {"layers": 1})
    with torch.device("meta"):
        return model(config)


def _build_layer(variant: Variant, size: Size) -> nn.Module:
    return _build_on_meta(OperatorBertForMaskedLM, variant, size).bert.encoder.layer[0]


def _count_parameters(module: nn.Module) -> int:
    # `parameters` lists a shared parameter once.
    return sum(parameter.numel() for parameter in module.parameters())


def count_block_operations(variant: Variant, hidden: int, heads: int, length: int) -> int:
    """Counts the floating-point operations per token, forward, of the matrix products of an attention block.

    The products are all projections (each computed once, the output projection included), the scores and the weighted
    sum of values. A multiply-add counts as two operations.
    """
    kind = find_operator_class(variant)
    projections = 2 * hidden * hidden * (len(kind.linear_layers) + 1)
    scores = kind.count_score_operations(hidden, heads, length)
    weighted_sum = 2 * hidden * length
    return projections + scores + weighted_sum


def count_training_operations(
    variant: Variant,
    size: Size,
    vocabulary_size: int,
    length: int,
    masked: float,
) -> float:
    """Counts floating-point operations per token of a masked-LM training step, forward and backward.

    Only matrix products are counted: of attention, feed-forward network and masked-LM head. The head predicts the share
    `masked` of the tokens, in [0, 1].
    """
    hidden = size["hidden"]
    weights, _ = find_operator_class(variant).count_feed_forward_weights(hidden, size["intermediate"])
    # A multiply-add counts as two operations.
    layer = count_block_operations(variant, hidden, size["heads"], length) + 2 * weights
    # The head is a Linear layer h -> h, and the decoder.
    head = 2 * hidden * hidden + 2 * hidden * vocabulary_size
    # The backward pass takes two products for every product of the forward pass.
    return 3 * (size["layers"] * layer + masked * head)
