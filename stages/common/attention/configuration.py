"""BERT's configuration with an operator; it imports no model, which takes seconds.

`OperatorConfig.operator` names the operator; the settings of a variant stand beside it.
"""

from typing import Any

from transformers import BertConfig

from .base import SelfAttention
from .operators import operator_class


class OperatorConfig(BertConfig):
    """BERT's configuration, an operator, and the settings of a variant; None: as the operator's source has it.

    variant: the name that the run gives to the operator with these settings, or None for the operator as it is.
    start: one of the operator's `starts`. score_spread: standard deviation of its first scores (base.py).
    score_rate: the learning rate of the parameters that serve its scores alone, as a multiple of that of the others.
    operators_file, operators_sha256: the file of a user's own operator, and its content; None for one of ours.
    """

    model_type = "operator-bert"
    operator: str = "original"
    variant: str | None = None
    start: str | None = None
    score_spread: float | None = None
    score_rate: float | None = None
    operators_file: str | None = None
    operators_sha256: str | None = None

    def operator_class(self) -> type[SelfAttention]:
        """The class of the operator. ValueError where there is none of that name."""
        names = ("operator", "operators_file", "operators_sha256")
        return operator_class({name: getattr(self, name) for name in names})


def configuration(
    operator: str, layers: int, hidden: int, heads: int, intermediate: int, positions: int, **others: Any
) -> OperatorConfig:
    """BERT's configuration at a size; what is not named keeps BERT's value (gelu, LayerNorm epsilon 1e-12, ...)."""
    config = OperatorConfig(
        operator=operator,
        num_hidden_layers=layers,
        hidden_size=hidden,
        num_attention_heads=heads,
        max_position_embeddings=positions,
        **others,
    )
    config.intermediate_size = config.operator_class().feed_forward_width(hidden, intermediate)
    return config
