"""BERT's configuration with an operator. This module imports no model, because such an import takes seconds."""

from typing import Any

from torch import nn
from transformers import BertConfig

from .base import SelfAttention, require_divisor
from .operators import find_operator_class
from .own import import_own_operators


class OperatorConfig(BertConfig):
    """BERT's configuration, an operator, and the settings of a variant, which SelfAttention explains.

    Attributes:
        operator: name of the operator in the code.
        variant: name of the operator with these settings in params.yaml, if any.
        operators_sha256: hash of the file of a user's own operator; `None` for an operator of this package.
    """

    model_type = "operator-bert"
    operator: str = "original"
    variant: str | None = None
    start: str | None = None
    score_spread: float | None = None
    score_rate: float | None = None
    self_score: float | None = None
    operators_sha256: str | None = None

    def find_operator_class(self) -> type[SelfAttention]:
        """Returns the operator's class; ValueError if no class has the name or the user's file was not imported."""
        return find_operator_class({"operator": self.operator, "operators_sha256": self.operators_sha256})

    def build_self_attention(self, output: bool = False) -> SelfAttention:
        """Builds a self-attention layer with the settings of this configuration, not initialised.

        `output`: whether the layer has an output projection, which BERT's attention block has already.
        """
        kind = self.find_operator_class()
        # No `deviation`: the model initialises the Linear layers as BERT does, and then calls `initialise`.
        return kind(
            self.hidden_size,
            self.num_attention_heads,
            positions=self.max_position_embeddings,
            dropout=self.attention_probs_dropout_prob,
            start=self.start,
            score_spread=self.score_spread,
            score_rate=self.score_rate,
            output=output,
            deviation=None,
            self_score=self.self_score,
        )

    def build_feed_forward(self) -> tuple[nn.Module, int] | None:
        """Builds the operator's replacement for BERT's first feed-forward layer and activation, if any.

        Returns:
            A module [batch, n, h] -> [batch, n, w], not initialised, and w; or `None`.
        """
        return self.find_operator_class().build_feed_forward(
            self.hidden_size,
            self.num_attention_heads,
            self.intermediate_size,
            self.attention_probs_dropout_prob,
        )


def make_configuration(
    operator: str,
    layers: int,
    hidden: int,
    heads: int,
    intermediate: int,
    positions: int,
    operators_file: str | None = None,
    **others: Any,
) -> OperatorConfig:
    """Makes the configuration of a model of `layers` layers; fields that are not given keep BERT's values.

    `positions` is the longest sequence, in tokens. A user's own operator needs `operators_file`, imported here, and
    `operators_sha256`.

    Returns:
        The configuration, in which `intermediate_size` is the feed-forward width that the operator asks for.

    Raises:
        KeyError: `operators_file` is given without `operators_sha256`.
        ValueError: the operator is unknown, the user's file is missing or has another hash, or heads do not divide the
            width.
    """
    require_divisor(hidden, heads)
    if operators_file:
        import_own_operators(operators_file, others["operators_sha256"])
    config = OperatorConfig(
        operator=operator,
        num_hidden_layers=layers,
        hidden_size=hidden,
        num_attention_heads=heads,
        max_position_embeddings=positions,
        **others,
    )
    config.intermediate_size = config.find_operator_class().compute_feed_forward_width(hidden, intermediate)
    return config
