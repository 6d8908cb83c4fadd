"""BERT's configuration with an operator. It imports no model, as that would take seconds."""

from typing import Any

from torch import nn
from transformers import BertConfig

from .base import SelfAttention
from .operators import operator_class
from .own import own_operators


class OperatorConfig(BertConfig):
    """BERT's configuration, an operator, and the settings of a variant; None: as the operator's source has it.

    operator: its name in the code. variant: what params.yaml calls the operator with these settings, if anything.
    start: how its parameters are initialised, one of its `starts`. score_spread: standard deviation of its scores
    before training. score_rate: learning rate of the parameters that influence the scores alone (its `scores_alone`),
    as a multiple of all others'. self_score: number that is added to the score of every token with itself.
    operators_sha256: of the imported file of a user's own operator; None for one of ours.
    """

    model_type = "operator-bert"
    operator: str = "original"
    variant: str | None = None
    start: str | None = None
    score_spread: float | None = None
    score_rate: float | None = None
    self_score: float | None = None
    operators_sha256: str | None = None

    def operator_class(self) -> type[SelfAttention]:
        """Returns the class of the operator. ValueError for an unknown name, or a user's file that is not imported."""
        return operator_class({"operator": self.operator, "operators_sha256": self.operators_sha256})

    def self_attention(self, output: bool = False) -> SelfAttention:
        """Builds a self-attention layer, not initialised. output: with a projection; BERT's block has one itself."""
        return self.operator_class()(
            self.hidden_size,
            self.num_attention_heads,
            self.max_position_embeddings,
            self.attention_probs_dropout_prob,
            self.start,
            self.score_spread,
            self.score_rate,
            output,
            self_score=self.self_score,
            deviation=None,  # the model initialises its Linear layers in its own way, and then calls `initialise`
        )

    def feed_forward(self) -> tuple[nn.Module, int] | None:
        """Builds what replaces BERT's first feed-forward layer and activation, as `SelfAttention.feed_forward` does."""
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
    """Makes a configuration of a size; what is not named keeps BERT's value (gelu, LayerNorm epsilon 1e-12, ...).

    Args:
        operator, layers, hidden, heads: its name, number of layers, width h, and number of heads, a divisor of h.
        intermediate, positions: width of BERT's feed-forward network, and the longest sequence, in tokens.
        operators_file: file of a user's own operator, imported here; needs `operators_sha256` in `others`, or KeyError.
        others: further fields of OperatorConfig and BertConfig by their names.

    Returns:
        The configuration, in which `intermediate_size` is the width that the operator has.

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
