"""Hugging Face's BERT with another operator; everything else, from embeddings to heads, is the library's.

Models save and load as any Hugging Face model does (`save_pretrained`, `from_pretrained`, the Auto classes once this
module is imported), in safetensors. Parameters of the operators have their names in the papers' equations, and those
that BERT has too BERT's: a stock checkpoint loads into `original`.
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
        self.output = output  # Hugging Face's BertSelfOutput

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, **others: Any
    ) -> tuple[Tensor, Tensor | None]:
        """[batch, n, h] -> [batch, n, h]; and, where `output_attentions` asks, the weights [batch, heads, n, n]."""
        projected = self.output.dropout(self.self(hidden_states, attention_mask, output=self.output.dense))
        with_weights = others.get("output_attentions", self.config.output_attentions)
        weights = self.self.weights(hidden_states, attention_mask) if with_weights else None
        return self.output.LayerNorm(projected + hidden_states), weights


class OperatorBertModel(BertModel):
    """BertModel with the operator: embeddings, encoder and, unless `add_pooling_layer` is false, pooler."""

    config_class = OperatorConfig
    _can_record_outputs: ClassVar = {"hidden_states": BertLayer, "attentions": Attention}

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
        self.init_weights()  # of the new modules; the library has marked those that it initialised

    def _initialize_weights(self, module: nn.Module, is_custom_code: bool = False) -> None:
        """Skips nothing: of custom code, the library skips a module that holds no parameters beside its submodules.

        Such an operator needs its turn: a tied W_k is initialised as W_q, and a variant scales its first scores.
        """
        super()._initialize_weights(module, is_custom_code=False)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Initialises a module; parameters that were loaded from a checkpoint keep their values."""
        super()._init_weights(module)
        if isinstance(module, SelfAttention | AttentionOverParameters):
            loaded = [p for p in module.parameters() if getattr(p, "_is_hf_initialized", False)]
            values = [parameter.clone() for parameter in loaded]
            module.initialise(self.config.initializer_range)
            for parameter, value in zip(loaded, values, strict=True):
                parameter.copy_(value)


class WithOperator(PreTrainedModel):
    """Puts an OperatorBertModel into the BERT class with a head that it is mixed into."""

    config_class = OperatorConfig

    def __init__(self, config: OperatorConfig):
        super().__init__(config)
        self.bert = OperatorBertModel(config, add_pooling_layer=self.bert.pooler is not None)
        self.post_init()


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
