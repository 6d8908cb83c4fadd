"""Hugging Face's BERT with only the self-attention module exchanged.

`OperatorConfig.operator` names the operator; everything else, from embeddings to heads, is the library's. Models save
and load as any Hugging Face model does, in safetensors.
"""

from typing import Any

from torch import nn
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification, PreTrainedModel

from stages.attention.operators import OPERATORS, DotProduct


class OperatorConfig(BertConfig):
    model_type = "operator-bert"
    operator: str = "original"


class _WithOperator(PreTrainedModel):
    """Exchanges the self-attention modules of the BERT class that it is mixed into."""

    config_class = OperatorConfig

    def __init__(self, config: OperatorConfig):
        super().__init__(config)
        if config.operator not in OPERATORS:
            raise ValueError(f"unknown operator {config.operator!r}; known: {', '.join(OPERATORS)}")
        for layer in self.bert.encoder.layer:
            layer.attention.self = OPERATORS[config.operator](
                config.hidden_size, config.num_attention_heads, config.attention_probs_dropout_prob
            )
        self.init_weights()  # of the new modules; the library marks those that it has done

    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if isinstance(module, DotProduct):
            module.initialise()


class OperatorBertForMaskedLM(_WithOperator, BertForMaskedLM):
    """BertForMaskedLM: decoder tied to the word embedding, no pooler."""


class OperatorBertForSequenceClassification(_WithOperator, BertForSequenceClassification):
    """BertForSequenceClassification: pooler, dropout, one Linear layer to `num_labels`."""


def configuration(
    operator: str, layers: int, hidden: int, heads: int, intermediate: int, positions: int, **others: Any
) -> OperatorConfig:
    """BERT's configuration at a size; what is not named keeps BERT's value (gelu, LayerNorm epsilon 1e-12, ...)."""
    return OperatorConfig(
        operator=operator,
        num_hidden_layers=layers,
        hidden_size=hidden,
        num_attention_heads=heads,
        intermediate_size=intermediate,
        max_position_embeddings=positions,
        **others,
    )
