"""Parameters of every operator: by closed formula, and of whole models by counting a built one.

Both papers count the masked-LM model with BERT's vocabulary of 30,522 (Courtois et al. 2024, Table 2; Kowsher et al.,
Table 4, whose shared-weight row is a two-label classifier instead).
"""

import torch

from stages.attention.bert import OperatorBertForMaskedLM, configuration
from stages.attention.operators import OPERATORS


def attention_parameters(operator: str, hidden: int, heads: int) -> int:
    """Parameters of one self-attention module without the output projection, biases included.

    Courtois et al. 2024, Table 1, and Kowsher et al., Table 3, print the same without biases.
    """
    projection = hidden * hidden + hidden
    formulas = {
        "original": 3 * projection,
        "symmetric": 2 * projection,
        "pairwise": 2 * projection + heads * (hidden // heads) ** 2,
        "shared": projection + 3 * hidden,
    }
    return formulas[operator]


def counted_attention_parameters(operator: str, hidden: int, heads: int) -> int:
    """The same number, counted on the built module."""
    with torch.device("meta"):
        module = OPERATORS[operator](hidden, heads, 0.0)
    return sum(parameter.numel() for parameter in module.parameters())


def masked_lm_parameters(operator: str, **size: int) -> int:
    """Trainable parameters of the masked-LM model of `size` (layers, hidden, heads, intermediate, positions).

    Vocabulary 30,522, the tied decoder counted once, no pooler.
    """
    with torch.device("meta"):
        model = OperatorBertForMaskedLM(configuration(operator, **size))
    return sum(parameter.numel() for parameter in model.parameters())
