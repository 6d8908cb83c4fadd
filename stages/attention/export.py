"""Writes a model folder that others can load: as an ordinary BERT, or with the code of its operator next to it.

An ordinary BERT has equal outputs and needs no code but Hugging Face's; it exists for every operator whose scores are
products of queries and keys and which keeps BERT's kind of feed-forward network. `--own` keeps the operator and its
parameters and copies the files of its code into the folder; `from_pretrained(FOLDER, trust_remote_code=True)` runs that
code. Tokenizer and card are copied, too. Either folder can be uploaded to the hub as it is: `hf upload NAME FOLDER`.
"""

import argparse
import re
import shutil
import sys
from pathlib import Path

import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertModel,
    PreTrainedModel,
)

from .bert import (
    OperatorBertForMaskedLM,
    OperatorBertForQuestionAnswering,
    OperatorBertForSequenceClassification,
    OperatorBertModel,
    WithOperator,
)
from .configuration import OperatorConfig

STOCK = {
    OperatorBertModel: BertModel,
    OperatorBertForMaskedLM: BertForMaskedLM,
    OperatorBertForSequenceClassification: BertForSequenceClassification,
    OperatorBertForQuestionAnswering: BertForQuestionAnswering,
}


def main(arguments: list[str]) -> None:
    """Parses a command line and writes the folder that it asks for; exits with a message where that fails."""
    parser = argparse.ArgumentParser(prog="python -m fewer_attention.export", description=__doc__)
    parser.add_argument("source", type=Path, help="a model folder, such as data/pretraining/shared-tiny/seed-1")
    parser.add_argument("target", type=Path, help="the folder to write")
    parser.add_argument("--own", action="store_true", help="keep the operator, with its code in the folder")
    options = parser.parse_args(arguments)
    try:
        export(options.source, options.target, options.own)
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")


def export(source: Path, target: Path, own: bool) -> None:
    """Writes the model of a folder to another folder, in a form that loads without this repository.

    Args:
        source, target: a model folder, and the folder to write, in which files of the same names are replaced.
        own: whether the operator is kept, with its code; otherwise the model becomes an ordinary BERT.

    Raises:
        ValueError: the model's class is not in STOCK; BERT cannot express its operator, and `own` is false; or the
            operator is a user's own, and `own` is true or this process has not imported its file.
        OSError: `source` is no model folder, or `target` cannot be written.
    """
    config = OperatorConfig.from_pretrained(source)
    if own and config.operators_sha256:
        raise ValueError(
            f"{source}: the code of `{config.operator}` is in a file of its user's and imports this repository; "
            "export it in Python without it: own_operators(FILE, SHA256) of stages.attention.own, then export"
        )
    classes = {model.__name__: model for model in STOCK}
    name = (config.architectures or ["none"])[0]
    if name not in classes:
        raise ValueError(f"{source}/config.json: the architecture {name} is none of {', '.join(classes)}")
    model = classes[name].from_pretrained(source)
    if own:
        _save_with_code(model, target)
    else:
        to_stock_bert(model).save_pretrained(target)
    for name in ("tokenizer.json", "tokenizer_config.json", "README.md"):
        if (source / name).exists():
            shutil.copyfile(source / name, target / name)
    card = target / "README.md"
    if card.exists():
        card.write_text(_card(card.read_text(encoding="utf-8"), target, own), encoding="utf-8")


def _save_with_code(model: PreTrainedModel, target: Path) -> None:
    """Writes a model and the code of its classes; config.json then says which Auto class loads each of them.

    The registration for that is undone afterwards: it would save the code with every later model of this process.
    """
    head = type(model).__name__.removeprefix("OperatorBert").removeprefix("Model")  # "" or such as ForMaskedLM
    OperatorConfig.register_for_auto_class()
    type(model).register_for_auto_class(f"AutoModel{head}")
    try:
        model.save_pretrained(target)
    finally:
        OperatorConfig._auto_class = type(model)._auto_class = None


def _card(text: str, target: Path, own: bool) -> str:
    """Returns the card of an exported folder: `text`, the card of the source, with its last section `Use` replaced.

    The new section loads `target`, for the pipeline task of the old one. A card without such a task stays as it is.
    """
    body, _, use = text.partition("\n## Use\n")
    task = re.search(r'pipeline\("([\w-]+)"', use)
    if not task:
        return text
    explanation = (
        "The code of the operator stands beside the weights, and is run only with `trust_remote_code=True`."
        if own
        else "This is its export to an ordinary BERT, with equal outputs and BERT's three projections in a layer; it "
        "loads without this repository."
    )
    line = f'pipeline("{task[1]}", "{target.as_posix()}"{", trust_remote_code=True" * own})'
    return f"{body}\n## Use\n\n{explanation}\n\n```python\nfrom transformers import pipeline\n\nmodel = {line}\n```\n"


@torch.no_grad()
def to_stock_bert(model: OperatorBertModel | WithOperator) -> PreTrainedModel:
    """Builds an ordinary Hugging Face model with equal outputs (to 1e-5 in float32), on the CPU, in evaluation mode.

    Its attention has three projections, as in the operator Original: it is for compatibility and saves no memory. STOCK
    maps the class of `model`, which is not changed, to its own. ValueError: BERT cannot express the operator, or a
    `self_score`.
    """
    config = model.config
    if config.self_score is not None:
        raise ValueError(f"{config.operator}: self_score {config.self_score}; BERT adds nothing to its scores")
    names = BertConfig().to_dict().keys() - {"model_type", "architectures", "dtype"}  # these say what `model` is
    stock = STOCK[type(model)](BertConfig(**{name: getattr(config, name) for name in names}))
    state = {name: tensor for name, tensor in model.state_dict().items() if ".attention.self." not in name}
    # "bert.encoder", and "encoder" in a model without a head, which is its own base model
    encoder = f"{'' if model.base_model is model else f'{model.base_model_prefix}.'}encoder"
    for index, layer in enumerate(model.base_model.encoder.layer):
        for name, (weight, bias) in zip(("query", "key", "value"), layer.attention.self.projections(), strict=True):
            prefix = f"{encoder}.layer.{index}.attention.self.{name}"
            state |= {f"{prefix}.weight": weight, f"{prefix}.bias": bias}
    stock.load_state_dict(state)
    return stock.to(next(model.parameters()).dtype).eval()


if __name__ == "__main__":
    main(sys.argv[1:])
