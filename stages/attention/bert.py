"""Hugging Face's BERT with another self-attention operator; embeddings, pooler and heads are the library's.

Models save and load as other Hugging Face models (`save_pretrained`, `from_pretrained`, the Auto classes once this
module is imported). Parameters of the operators are named as in the papers' equations; parameters that BERT has, too,
keep BERT's names, so that a stock checkpoint loads into `original`.
"""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForMultipleChoice,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    BertForMaskedLM,
    BertForMultipleChoice,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertModel,
    PreTrainedModel,
)
from transformers.models.bert.modeling_bert import BertLayer

from .base import SelfAttention
from .configuration import OperatorConfig
from .over_parameters import AttentionOverParameters
from .products import Dropout, Mask, apply_scaled_layer


class Attention(nn.Module):
    """BERT's attention block: an operator, its output projection, dropout, residual sum and LayerNorm.

    `output` is Hugging Face's BertSelfOutput, which holds `dense`, `dropout` and `LayerNorm`.
    """

    def __init__(self, config: OperatorConfig, output: nn.Module):
        super().__init__()
        self.config = config
        self.self = config.build_self_attention()
        self.output = output

    def forward(
        self,
        hidden_states: Tensor,
        attention_mask: Mask = None,
        **others: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """Applies the block to hidden states [batch, n, h], with a mask as in SelfAttention.

        Returns:
            The hidden states after the block [batch, n, h]; and the attention weights [batch, heads, n, n], or `None`
            unless `output_attentions`, in `others` or else in the configuration, is true.

        Raises:
            ValueError: keys and values of earlier tokens are given, as by prefix tuning.
        """
        # transformers 5.24 renamed `past_key_values` to `cache`.
        cache = others.get("cache", others.get("past_key_values"))
        if cache is not None:
            raise ValueError(
                "past_key_values: the operators take no keys and values of earlier tokens; use LoRA in place of prefix "
                "tuning, or export to stock BERT"
            )
        weighted, D = self.self(hidden_states, attention_mask, project=False)
        projected = apply_scaled_layer(weighted, D, self.output.dense)
        hidden = self.output.LayerNorm(self.output.dropout(projected) + hidden_states)
        if others.get("output_attentions", self.config.output_attentions):
            return hidden, self.self(hidden_states, attention_mask, weights=True)
        return hidden, None


class OperatorBertModel(BertModel):
    """BertModel with the operator: embeddings, encoder and, unless `add_pooling_layer` is false, pooler."""

    config_class = OperatorConfig
    # the modules that give each output
    _can_record_outputs: ClassVar = {"hidden_states": BertLayer, "attentions": Attention}

    def __init__(self, config: OperatorConfig, add_pooling_layer: bool = True):
        if not hasattr(config, "build_self_attention"):
            raise TypeError(
                f"config: given a {type(config).__name__}, which names no operator; `make_configuration` makes a "
                "config with an operator"
            )
        # The library would leave the causal mask to the operator, which would then see future tokens.
        if config.is_decoder:
            raise ValueError("config.is_decoder: given True; an operator's BERT is an encoder, so leave it False")
        super().__init__(config, add_pooling_layer)
        for layer in self.encoder.layer:
            layer.attention = Attention(config, layer.attention.output)
            replacement = config.build_feed_forward()
            if replacement is not None:
                layer.intermediate, width = replacement
                layer.output.dense = nn.Linear(width, config.hidden_size)
        # A faster dropout: the library's takes a sixth of a training step on a CPU.
        for module in list(self.modules()):
            for name, child in module.named_children():
                if isinstance(child, nn.Dropout):
                    setattr(module, name, Dropout(child.p))
        # Initialises only the new modules: the library has marked the modules that were initialised before.
        self.init_weights()

    # The library calls this method and, for custom code such as an exported folder's, would skip modules whose
    # parameters are all in submodules.
    def _initialize_weights(self, module: nn.Module, is_custom_code: bool = False) -> None:
        """Initialises a module of a new or loaded model, also if all parameters are in submodules."""
        # Such an operator may still copy weights between Linear layers, as the start `tied` does.
        super()._initialize_weights(module, is_custom_code=False)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Initialises a module after the submodules; loaded parameters keep the loaded values."""
        super()._init_weights(module)
        if not isinstance(module, SelfAttention | AttentionOverParameters):
            return
        # `initialise` may overwrite all parameters. Loaded values, which the library marks, are restored afterwards.
        loaded = {}
        for parameter in module.parameters():
            if getattr(parameter, "_is_hf_initialized", False):
                loaded[parameter] = parameter.clone()
        module.initialise(self.config.initializer_range)
        for parameter, value in loaded.items():
            parameter.copy_(value)


class WithOperator(PreTrainedModel):
    """A mixin for BERT classes with a head, which replaces the library's BertModel by an OperatorBertModel."""

    config_class = OperatorConfig

    def __init__(self, config: OperatorConfig):
        super().__init__(config)
        self.bert = OperatorBertModel(config, add_pooling_layer=self.bert.pooler is not None)
        # Ties the masked-LM decoder to the embedding of the new BertModel.
        self.post_init()


class OperatorBertForMaskedLM(WithOperator, BertForMaskedLM):
    """BertForMaskedLM: decoder tied to the word embedding, no pooler."""


class OperatorBertForSequenceClassification(WithOperator, BertForSequenceClassification):
    """BertForSequenceClassification: pooler, dropout, one Linear layer to `num_labels`."""


class OperatorBertForQuestionAnswering(WithOperator, BertForQuestionAnswering):
    """BertForQuestionAnswering: one Linear layer to the start and end scores of every token."""


class OperatorBertForTokenClassification(WithOperator, BertForTokenClassification):
    """BertForTokenClassification: dropout, one Linear layer to `num_labels` for every token."""


class OperatorBertForMultipleChoice(WithOperator, BertForMultipleChoice):
    """BertForMultipleChoice: pooler, dropout, one Linear layer to a score for every choice."""


# all models by the Auto class that loads the model
MODELS = {
    AutoModel: OperatorBertModel,
    AutoModelForMaskedLM: OperatorBertForMaskedLM,
    AutoModelForSequenceClassification: OperatorBertForSequenceClassification,
    AutoModelForQuestionAnswering: OperatorBertForQuestionAnswering,
    AutoModelForTokenClassification: OperatorBertForTokenClassification,
    AutoModelForMultipleChoice: OperatorBertForMultipleChoice,
}

AutoConfig.register(OperatorConfig.model_type, OperatorConfig)
for auto_class, model in MODELS.items():
    auto_class.register(OperatorConfig, model)
