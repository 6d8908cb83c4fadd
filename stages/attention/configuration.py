"""BERT's configuration with an operator. It imports no model, as that would take seconds.

`OperatorConfig.operator` names the operator; the settings of a variant are further fields.
"""

from typing import Any

from torch import nn
from transformers import BertConfig

from .base import SelfAttention
from .operators import operator_class
from .own import own_operators


class OperatorConfig(BertConfig):
    """BERT's configuration, an operator, and the settings of a variant; None: as the operator's source has it.

    operator: its name in the code. variant: what params.yaml calls the operator with these settings, if anything.
    start: how its parameters are initialised, one of its `starts`. score_spread: the standard deviation that its scores
    shall have before training. score_rate: the learning rate of the parameters that influence the scores alone (its
    `scores_alone`), as a multiple of that of all others.
    operators_sha256: of the imported file of a user's own operator; None for an operator of this repository.
    """

    model_type = "operator-bert"
    operator: str = "original"
    variant: str | None = None
    start: str | None = None
    score_spread: float | None = None
    score_rate: float | None = None
    operators_sha256: str | None = None

    def operator_class(self) -> type[SelfAttention]:
        """Returns the class of the operator. ValueError for an unknown name, or a user's file that is not imported."""
        return operator_class({"operator": self.operator, "operators_sha256": self.operators_sha256})

    def self_attention(self, output: bool = False) -> SelfAttention:
        """Builds one self-attention layer, not initialised: whoever builds the model does that.

        output: whether it has an output projection of its own; BERT's block holds that projection itself.
        """
        return self.operator_class()(
            self.hidden_size,
            self.num_attention_heads,
            self.max_position_embeddings,
            self.attention_probs_dropout_prob,
            self.start,
            self.score_spread,
            self.score_rate,
            output,
            deviation=None,  # the model initialises its Linear layers in its own way, and then calls `initialise`
        )

    def feed_forward(self) -> tuple[nn.Module, int] | None:
        """Builds what replaces the first layer of BERT's feed-forward network and its activation; None: nothing does.

        Returns a module [batch, n, h] -> [batch, n, w], not initialised, and w. dropout in it: that of attention.
        """
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
        operator: name of the operator.
        layers, hidden, heads: number of layers, width h, and number of heads, a divisor of h.
        intermediate: width of BERT's feed-forward network; an operator may have it narrower.
        positions: the longest sequence, in tokens.
        operators_file: the file of a user's own operator, imported here; `others` must then have the field
            `operators_sha256` (else KeyError). None: no file.
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
