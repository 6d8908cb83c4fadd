"""BERT's configuration with an operator; it imports no model, which takes seconds.

`OperatorConfig.operator` names the operator; the settings of a variant stand beside it.
"""

from typing import Any

from torch import nn
from transformers import BertConfig

from .base import SelfAttention
from .operators import operator_class
from .own import own_operators


class OperatorConfig(BertConfig):
    """BERT's configuration, an operator, and the settings of a variant; None: as the operator's source has it.

    operator: its name. variant: the name that the run gives to the operator with these settings.
    start: one of the operator's `starts`. score_spread: standard deviation of its first scores (base.py).
    score_rate: the learning rate of the parameters that serve its scores alone, as a multiple of that of the others.
    operators_sha256: of the file of a user's own operator, which the process must have imported; None for others.
    """

    model_type = "operator-bert"
    operator: str = "original"
    variant: str | None = None
    start: str | None = None
    score_spread: float | None = None
    score_rate: float | None = None
    operators_sha256: str | None = None

    def operator_class(self) -> type[SelfAttention]:
        """The class of the operator. ValueError where there is none of that name."""
        return operator_class({"operator": self.operator, "operators_sha256": self.operators_sha256})

    def self_attention(self, output: bool = False) -> SelfAttention:
        """One self-attention layer, not initialised. output: with a projection of its own; BERT's block has one."""
        return self.operator_class()(
            self.hidden_size,
            self.num_attention_heads,
            self.max_position_embeddings,
            self.attention_probs_dropout_prob,
            self.start,
            self.score_spread,
            self.score_rate,
            output,
            deviation=None,
        )

    def feed_forward(self) -> tuple[nn.Module, int] | None:
        """What stands in place of the first layer of the feed-forward network and its activation (base.py)."""
        sizes = self.hidden_size, self.num_attention_heads, self.intermediate_size
        return self.operator_class().feed_forward(*sizes, self.attention_probs_dropout_prob)


def configuration(
    operator: str,
    layers: int,
    hidden: int,
    heads: int,
    intermediate: int,
    positions: int,
    operators_file: str | None = None,
    **others: Any,
) -> OperatorConfig:
    """BERT's configuration at a size; what is not named keeps BERT's value (gelu, LayerNorm epsilon 1e-12, ...).

    Args:
        operator: name of the operator.
        layers: number of layers.
        hidden: width h.
        heads: number of heads, a divisor of h.
        intermediate: width of BERT's feed-forward network; an operator may have it narrower.
        positions: the longest sequence, in tokens.
        operators_file: with a user's own operator, which is imported.
        others: fields of OperatorConfig and BertConfig by their names.

    Raises:
        ValueError: there is no such operator, or the user's file is gone or is not the one of `operators_sha256`.
    """
    if operators_file:
        own_operators(operators_file, others["operators_sha256"])
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
