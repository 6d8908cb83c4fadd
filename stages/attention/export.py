"""Any model whose scores are products of queries and keys, as an ordinary BERT without code of ours."""

import torch
from torch import Tensor
from transformers import BertConfig, BertForMaskedLM, BertForQuestionAnswering, BertForSequenceClassification, BertModel

from stages.attention.bert import (
    OVER_PARAMETERS,
    OperatorBertForMaskedLM,
    OperatorBertForQuestionAnswering,
    OperatorBertForSequenceClassification,
    OperatorBertModel,
    WithOperator,
)

STOCK = {
    OperatorBertModel: BertModel,
    OperatorBertForMaskedLM: BertForMaskedLM,
    OperatorBertForSequenceClassification: BertForSequenceClassification,
    OperatorBertForQuestionAnswering: BertForQuestionAnswering,
}


@torch.no_grad()
def to_stock_bert(
    model: OperatorBertModel | WithOperator,
) -> BertModel | BertForMaskedLM | BertForSequenceClassification:
    """An ordinary Hugging Face model with equal outputs (to 1e-5 in float32), in evaluation mode.

    It has the parameters of Original: the export serves compatibility and saves nothing. ValueError for an operator
    that BERT cannot express: hadamard, fixed, parameters and parameters_wide.
    """
    config = model.config
    if config.operator in OVER_PARAMETERS:
        raise ValueError(
            f"{config.operator}: BERT has no attention over parameters in place of its feed-forward network"
        )
    names = BertConfig().to_dict().keys() - {"model_type", "architectures", "dtype"}
    stock = STOCK[type(model)](BertConfig(**{name: getattr(config, name) for name in names}))
    state = {name: tensor for name, tensor in model.state_dict().items() if ".attention.self." not in name}
    for index, layer in enumerate(model.base_model.encoder.layer):
        prefix = (
            f"{'' if model.base_model is model else model.base_model_prefix + '.'}encoder.layer.{index}.attention.self"
        )
        state |= projections(layer.attention.self.projections(), prefix)
    stock.load_state_dict(state)
    return stock.to(next(model.parameters()).dtype).eval()


def projections(parts: tuple[tuple[Tensor, Tensor], ...], prefix: str) -> dict[str, Tensor]:
    """Weights and biases of query, key and value under BERT's names."""
    return {
        f"{prefix}.{name}.{kind}": tensor
        for name, part in zip(("query", "key", "value"), parts, strict=True)
        for kind, tensor in zip(("weight", "bias"), part, strict=True)
    }
