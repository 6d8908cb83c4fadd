"""Hugging Face's BERT with another operator; everything else, from embeddings to heads, is the library's.

`OperatorConfig.operator` is one of OPERATORS. Models save and load as any Hugging Face model does (`save_pretrained`,
`from_pretrained`, the Auto classes once this module is imported), in safetensors. Parameters of the operators have
their names in the papers' equations, and those that BERT has too BERT's: a stock checkpoint loads into `original`.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    BertConfig,
    BertForMaskedLM,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertModel,
    PreTrainedModel,
)

from stages.attention.operators import SELF_ATTENTION, AttentionOverParameters, Pairwise, SelfAttention
from stages.attention.products import Dropout

# Beside the self-attention operators: original attention with another feed-forward network
NARROW = "original_narrow"
OVER_PARAMETERS = {"parameters": 1, "parameters_wide": 2}  # heads, as a multiple of the model's
OPERATORS = (*SELF_ATTENTION, NARROW, *OVER_PARAMETERS)


class OperatorConfig(BertConfig):
    model_type = "operator-bert"
    operator: str = "original"
    pairwise_init: str = "normal"


class Attention(nn.Module):
    """BERT's attention block: an operator, the output projection, dropout, residual and LayerNorm."""

    def __init__(self, operator: SelfAttention, output: nn.Module):
        super().__init__()
        self.self = operator
        self.output = output  # Hugging Face's BertSelfOutput

    def forward(self, hidden_states: Tensor, attention_mask: Tensor | None = None, **_) -> tuple[Tensor, None]:
        """[batch, n, h] -> [batch, n, h]; attention weights are not returned."""
        context, scale, dense = self.self(hidden_states, attention_mask), self.self.output_scale(), self.output.dense
        weight = dense.weight if scale is None else dense.weight * scale
        projected = self.output.dropout(functional.linear(context, weight, dense.bias))
        return self.output.LayerNorm(projected + hidden_states), None


class OperatorBertModel(BertModel):
    """BertModel with the operator: embeddings, encoder and, unless `add_pooling_layer` is false, pooler."""

    config_class = OperatorConfig

    def __init__(self, config: OperatorConfig, add_pooling_layer: bool = True):
        if config.operator not in OPERATORS:
            raise ValueError(f"unknown operator {config.operator!r}; known: {', '.join(OPERATORS)}")
        super().__init__(config, add_pooling_layer)
        for layer in self.encoder.layer:
            layer.attention = Attention(self_attention(config), layer.attention.output)
            if config.operator in OVER_PARAMETERS:
                layer.intermediate = over_parameters(config)
                layer.output.dense = nn.Linear(layer.intermediate.query.out_features, config.hidden_size)
        for module in list(self.modules()):
            for name, child in module.named_children():
                if isinstance(child, nn.Dropout):
                    setattr(module, name, Dropout(child.p))
        self.init_weights()  # of the new modules; the library has marked those that it initialised

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Starts a module; parameters that a checkpoint has brought keep their values."""
        super()._init_weights(module)
        if isinstance(module, SelfAttention | AttentionOverParameters):
            loaded = [p for p in module.parameters() if getattr(p, "_is_hf_initialized", False)]
            values = [parameter.clone() for parameter in loaded]
            module.initialise()
            for parameter, value in zip(loaded, values, strict=True):
                parameter.copy_(value)


class WithOperator(PreTrainedModel):
    """Puts an OperatorBertModel into the BERT class with a head that it is mixed into."""

    config_class = OperatorConfig

    def __init__(self, config: OperatorConfig):
        super().__init__(config)
        self.bert = OperatorBertModel(config, add_pooling_layer=self.bert.pooler is not None)
        self.post_init()


def self_attention(config: OperatorConfig) -> SelfAttention:
    """The operator's self-attention; Original where the operator exchanges the feed-forward network."""
    operator = SELF_ATTENTION.get(config.operator, SELF_ATTENTION["original"])
    others = {"start": config.pairwise_init} if operator is Pairwise else {}
    return operator(
        config.hidden_size,
        config.num_attention_heads,
        config.attention_probs_dropout_prob,
        config.max_position_embeddings,
        **others,
    )


def over_parameters(config: OperatorConfig) -> AttentionOverParameters:
    """As many pairs as keep the number of weights of a feed-forward network of width f: (f - w) h / w.

    w = heads d is the width of the heads together. At h = 512 and f = 2,048 these are the draft's 1,536 and 512 pairs.
    """
    heads = OVER_PARAMETERS[config.operator] * config.num_attention_heads
    d = config.hidden_size // config.num_attention_heads
    pairs = config.intermediate_size * config.hidden_size // (heads * d) - config.hidden_size
    if pairs < 1:
        raise ValueError(
            f"{config.operator}: its projections alone have the weights of a feed-forward network of width "
            f"{config.intermediate_size}; `intermediate` must exceed {OVER_PARAMETERS[config.operator]} x `hidden`"
        )
    return AttentionOverParameters(config.hidden_size, heads, d, pairs, config.attention_probs_dropout_prob)


class OperatorBertForMaskedLM(WithOperator, BertForMaskedLM):
    """BertForMaskedLM: decoder tied to the word embedding, no pooler."""


class OperatorBertForSequenceClassification(WithOperator, BertForSequenceClassification):
    """BertForSequenceClassification: pooler, dropout, one Linear layer to `num_labels`."""


class OperatorBertForQuestionAnswering(WithOperator, BertForQuestionAnswering):
    """BertForQuestionAnswering: one Linear layer to the start and end scores of every token."""


AutoConfig.register(OperatorConfig.model_type, OperatorConfig)
AutoModel.register(OperatorConfig, OperatorBertModel)
AutoModelForMaskedLM.register(OperatorConfig, OperatorBertForMaskedLM)
AutoModelForSequenceClassification.register(OperatorConfig, OperatorBertForSequenceClassification)
AutoModelForQuestionAnswering.register(OperatorConfig, OperatorBertForQuestionAnswering)


def configuration(
    operator: str, layers: int, hidden: int, heads: int, intermediate: int, positions: int, **others: Any
) -> OperatorConfig:
    """BERT's configuration at a size; what is not named keeps BERT's value (gelu, LayerNorm epsilon 1e-12, ...).

    original_narrow: its feed-forward network is h - 1 narrower, which saves (h - 1) (2 h + 1) parameters a layer, to
    one the 2 h^2 - h that the shared-weight operator saves.
    """
    return OperatorConfig(
        operator=operator,
        num_hidden_layers=layers,
        hidden_size=hidden,
        num_attention_heads=heads,
        intermediate_size=intermediate - (hidden - 1) if operator == NARROW else intermediate,
        max_position_embeddings=positions,
        **others,
    )
