"""Hugging Face's BERT with another operator; everything else, from embeddings to heads, is the library's.

Models save and load as any Hugging Face model does (`save_pretrained`, `from_pretrained`, the Auto classes once this
module is imported), in safetensors. Parameters of the operators are named as in the papers' equations; those that BERT
has, too, keep its names, so that a stock checkpoint loads into `original`.
"""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    BertForMaskedLM,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertModel,
    PreTrainedModel,
)
from transformers.models.bert.modeling_bert import BertLayer

from .base import SelfAttention
from .configuration import OperatorConfig
from .over_parameters import AttentionOverParameters
from .products import Dropout


class Attention(nn.Module):
    """BERT's attention block: an operator, its output projection, dropout, residual sum and LayerNorm."""

    def __init__(self, config: OperatorConfig, output: nn.Module):
        super().__init__()
        self.config = config
        self.self = config.self_attention()
        self.output = output  # Hugging Face's BertSelfOutput, which holds `dense`, `dropout` and `LayerNorm`

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, **others: Any
    ) -> tuple[Tensor, Tensor | None]:
        """Returns the hidden states of the block [batch, n, h], and the attention weights [batch, heads, n, n] or None.

        The weights are returned where `output_attentions`, in `others` or else in the configuration, is true.
        attention_mask: boolean (True = seen) or numbers to add to the scores, [batch, heads, n, n] or 1 in place of any
        of these; None: everything is seen. Of `others`, which the library passes, no more is read.
        """
        projected = self.output.dropout(self.self(hidden_states, attention_mask, output=self.output.dense))
        with_weights = others.get("output_attentions", self.config.output_attentions)
        weights = self.self.weights(hidden_states, attention_mask) if with_weights else None
        return self.output.LayerNorm(projected + hidden_states), weights


class OperatorBertModel(BertModel):
    """BertModel with the operator: embeddings, encoder and, unless `add_pooling_layer` is false, pooler."""

    config_class = OperatorConfig
    _can_record_outputs: ClassVar = {"hidden_states": BertLayer, "attentions": Attention}  # who gives which output

    def __init__(self, config: OperatorConfig, add_pooling_layer: bool = True):
        super().__init__(config, add_pooling_layer)
        for layer in self.encoder.layer:
            layer.attention = Attention(config, layer.attention.output)
            replacement = config.feed_forward()
            if replacement is not None:
                layer.intermediate, width = replacement
                layer.output.dense = nn.Linear(width, config.hidden_size)
        for module in list(self.modules()):  # the library's dropout takes a sixth of a training step on a CPU
            for name, child in module.named_children():
                if isinstance(child, nn.Dropout):
                    setattr(module, name, Dropout(child.p))
        self.init_weights()  # of the new modules alone: the library has marked those that it initialised before

    def _initialize_weights(self, module: nn.Module, is_custom_code: bool = False) -> None:
        """Has the library initialise operators, too, whose parameters are all in submodules or loaded.

        In custom code it would skip such a module. But an operator without parameters outside its Linear layers may
        change theirs: a tied W_k is initialised as W_q, and a variant scales its first scores.
        """
        super()._initialize_weights(module, is_custom_code=False)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Initialises a module, after its submodules. What was loaded, which the library marks, stays as it is."""
        super()._init_weights(module)
        if isinstance(module, SelfAttention | AttentionOverParameters):
            loaded = [p for p in module.parameters() if getattr(p, "_is_hf_initialized", False)]
            values = [parameter.clone() for parameter in loaded]  # `initialise` may overwrite all
            module.initialise(self.config.initializer_range)
            for parameter, value in zip(loaded, values, strict=True):
                parameter.copy_(value)


class WithOperator(PreTrainedModel):
    """A mixin for BERT classes with a head: replaces their BertModel by an OperatorBertModel."""

    config_class = OperatorConfig

    def __init__(self, config: OperatorConfig):
        super().__init__(config)
        self.bert = OperatorBertModel(config, add_pooling_layer=self.bert.pooler is not None)
        self.post_init()  # ties the masked-LM decoder to the embedding of the new BertModel


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
