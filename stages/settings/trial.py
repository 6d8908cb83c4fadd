"""Tries a user's own operator in a BERT of two layers: training, saving and loading, and export to an ordinary BERT."""

from tempfile import TemporaryDirectory

import torch
from torch import Tensor
from transformers import PreTrainedModel

# seconds, because the models are imported, too
from stages.attention.bert import OperatorBertForMaskedLM
from stages.attention.configuration import make_configuration
from stages.attention.export import convert_to_stock_bert
from stages.files.quoting import quote_value
from stages.schema.training_sections import Model


def try_operator(variant: dict, size: str, model: Model) -> None:
    """Runs a new BERT with a user's own operator forward and backward, to find mistakes before hours of training.

    The outputs are compared with the outputs of the saved and loaded model and, if the operator is `exportable`, with
    the outputs of the exported ordinary BERT.

    Raises:
        ValueError: the operator fails, cannot be trained, or has other outputs when saved or exported.
    """
    place = f"{variant['operators_file']}: operator `{variant['operator']}` at size {size}"
    # `variant` has the name, the file and further settings of the operator
    config = make_configuration(**variant, **model.model_dump() | {"layers": 2}, vocab_size=4)
    torch.manual_seed(1)
    remedy = "correct the operator"
    # The user's code may raise any exception.
    try:
        tried = OperatorBertForMaskedLM(config)
        fault = (
            _find_lost_tensor(tried)
            or _find_fault_of_training(tried)
            or _find_zero_gradient(tried)
            or _find_fault_of_saving(tried)
        )
        # An ordinary BERT cannot express a self-score.
        if not fault and config.find_operator_class().exportable and config.self_score is None:
            # also for an exception of the export
            remedy = "correct `build_projections`, or set `exportable = False`"
            if not _have_equal_logits(tried, convert_to_stock_bert(tried)):
                fault = "`exportable` is true, but an ordinary BERT with the operator's projections has other outputs"
    except Exception as error:
        raise ValueError(f"{place}: {type(error).__name__}: {quote_value(error)}; {remedy}") from error
    if fault:
        raise ValueError(f"{place}: {fault}; {remedy}")


def _compute_logits(model: PreTrainedModel) -> Tensor:
    """Computes the logits [2, n, vocabulary] of two sequences of the greatest length n; one token is padding."""
    # Short sequences would not do: a parameter may act only between distant tokens. Tokens have ids 1 to 3, padding 0.
    ids = torch.arange(2 * model.config.max_position_embeddings).reshape(2, -1) % 3 + 1
    ids[1, -1] = 0
    return model(ids, attention_mask=ids > 0).logits


def _find_lost_tensor(model: OperatorBertForMaskedLM) -> str | None:
    """Describes a tensor that a saved model would lose, if any."""
    for module in model.bert.encoder.modules():
        kind = type(module)
        # ordinary attributes; vars() leaves out parameters and buffers
        held = {**vars(kind), **vars(module)}
        # buffers that are not saved
        held |= {name: getattr(module, name) for name in module._non_persistent_buffers_set}
        lost = [name for name, value in held.items() if isinstance(value, Tensor)]
        if lost:
            return (
                f"`{lost[0]}` of class {kind.__name__} is not saved with a model; register the tensor by "
                f'`self.register_buffer("{lost[0]}", ...)`, without `persistent=False`'
            )
    # A parameter with two names, in one layer or in two, is saved once. In layer 0, names are shortened to `S` or `W`.
    first_name = {}
    for path, parameter in model.bert.encoder.named_parameters(remove_duplicate=False):
        name = path.removeprefix("layer.0.attention.self.")
        first = first_name.setdefault(id(parameter), name)
        if first != name:
            return f"`{name}` is `{first}`, and a saved model holds no tensor twice; give one layer both `roles`"
    return None


def _find_fault_of_training(model: OperatorBertForMaskedLM) -> str | None:
    """Runs a new model forward and backward; describes the first fault, if any."""
    layer = model.bert.encoder.layer[0]
    hidden_states = torch.randn(2, 3, model.config.hidden_size)
    shape = layer.attention.self(hidden_states).shape
    expected = hidden_states.shape
    if shape != expected:
        return f"the output has the shape {tuple(shape)}, the input {tuple(expected)}; the shapes must be equal"
    logits = _compute_logits(model)
    logits.square().mean().backward()
    # In the order in which NaN spreads: from parameters to the output, and from the output to gradients.
    parameters = {f"`{path.removeprefix('attention.self.')}`": value for path, value in layer.named_parameters()}
    trained = {name: value for name, value in parameters.items() if value.requires_grad}
    gradients = {f"the gradient of {name}": value.grad for name, value in trained.items()}
    for name, tensor in {**parameters, "the output": logits, **gradients}.items():
        if tensor is None:
            return f"{name} is missing, so that training would never change the parameter"
        if not tensor.isfinite().all():
            return f"{name} has numbers that are not finite"
    return None


def _find_zero_gradient(model: OperatorBertForMaskedLM) -> str | None:
    """Describes a parameter of the operator with a gradient of 0, if any."""
    # New parameters of 0 or 1 hide mistakes, so all parameters are moved by random numbers.
    with torch.no_grad():
        for parameter in model.bert.encoder.parameters():
            parameter.add_(torch.randn_like(parameter) / model.config.hidden_size**0.5)
    model.zero_grad()
    _compute_logits(model).square().mean().backward()
    for name, parameter in model.bert.encoder.layer[0].attention.self.named_parameters():
        gradient = parameter.grad
        if gradient is not None and not gradient.any():
            return f"the gradient of `{name}` is 0, so that training would never change the parameter"
    return None


@torch.no_grad()
def _have_equal_logits(model: OperatorBertForMaskedLM, other: PreTrainedModel) -> bool:
    # eval switches dropout off
    return torch.allclose(_compute_logits(model.eval()), _compute_logits(other.eval()), rtol=1e-4, atol=1e-4)


def _find_fault_of_saving(model: OperatorBertForMaskedLM) -> str | None:
    """Describes a difference between a model and the saved and loaded model, if any."""
    with TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        loaded = OperatorBertForMaskedLM.from_pretrained(folder)
    if _have_equal_logits(model, loaded):
        return None
    return "a saved and loaded model has other outputs; hold all numbers in parameters and buffers"
