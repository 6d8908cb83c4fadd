"""Writes a model folder that loads without this repository: as an ordinary BERT, or with the code of the operator.

An ordinary BERT has equal outputs and needs only the code of Hugging Face. This export exists for every operator whose
scores are products of queries and keys and which keeps BERT's kind of feed-forward network. `--own` keeps the operator
with all parameters and copies the operator's code into the folder; `from_pretrained(FOLDER, trust_remote_code=True)`
runs that code. Tokenizer and model card are copied, too, and vocab.txt is added for transformers 4. Either folder can
be uploaded to the hub: `hf upload NAME FOLDER`.
"""

import argparse
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError
from tokenizers import Tokenizer
from torch import nn
from transformers import BertConfig, PreTrainedModel

from .bert import MODELS, OperatorBertModel, WithOperator
from .configuration import OperatorConfig
from .products import is_plain

# by the class of this package, the class of the library, which is the last base
STOCK = {model: model.__bases__[-1] for model in MODELS.values()}
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
CARD = "README.md"
# the first words of the file that Git leaves in place of a large file
LFS_POINTER = b"version https://git-lfs.github.com/spec/"
# the last section of a card, for an ordinary BERT and for a folder with the code of its operator
STOCK_USE = """
## Use

This is its export to an ordinary BERT, with equal outputs and BERT's three projections in a layer; it loads without \
this repository.

```python
from transformers import pipeline

model = pipeline("{task}", "{folder}")
```

Tested with torch {torch} and transformers {transformers}.
"""
OWN_USE = """
## Use

The code of the operator stands beside the weights, and is run only with `trust_remote_code=True`.

```python
from transformers import pipeline

model = pipeline("{task}", "{folder}", trust_remote_code=True)
```

Tested with torch {torch} and transformers {transformers}.
"""


def main(arguments: list[str]) -> None:
    """Parses a command line and writes the exported model folder; exits with an error message on failure."""
    parser = argparse.ArgumentParser(prog="python -m fewer_attention.export", description=__doc__)
    parser.add_argument("source", type=Path, help="Model folder, such as data/pretraining/shared-tiny/seed-1.")
    parser.add_argument("target", type=Path, help="Folder to write, new or empty.")
    parser.add_argument("--own", action="store_true", help="Keep the operator, with code in the folder.")
    options = parser.parse_args(arguments)
    try:
        export(options.source, options.target, options.own)
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")


def export(source: Path, target: Path, own: bool) -> None:
    """Writes a saved model to another folder, in a form that loads without this repository.

    Args:
        source: the folder of the saved model.
        target: the folder to write, which does not exist or is empty.
        own: whether the target keeps the operator, with code; if false, the model becomes an ordinary BERT.

    Raises:
        ValueError: the model's class has no counterpart in the library; weights or tokenizer are damaged; BERT cannot
            express the operator, and `own` is false; or the operator is a user's own, and `own` is true or this process
            has not imported the user's file.
        OSError: `source` is no complete model folder or links to files outside; or `target` has files or cannot be
            written.
    """
    _check_folders(source, target)
    config = OperatorConfig.from_pretrained(source)
    if own and config.operators_sha256:
        raise ValueError(
            f"{source}: the code of `{config.operator}` is in a user's own file and imports this repository; "
            "export it in Python without it: import_own_operators(FILE, SHA256) of stages.attention.own, then export"
        )
    classes = {model.__name__: model for model in STOCK}
    # config.json lists a single architecture, such as OperatorBertForMaskedLM.
    architecture = str((config.architectures or ["none"])[0])
    if architecture not in classes:
        raise ValueError(
            f"{source}/config.json: the architecture {architecture!r:.80} cannot be exported; "
            f"expected {', '.join(classes)}"
        )
    tokenizer = _read_tokenizer(source)
    model = _load_model(classes[architecture], source)
    if own:
        _save_with_code(model, target)
    else:
        model = convert_to_stock_bert(model)
        model.save_pretrained(target)
    # A test: the card says that these versions of the libraries load the folder.
    _load_model(type(model), target)
    # BertTokenizer of transformers 4 reads vocab.txt, which `save` writes, and puts all text into lower case.
    if tokenizer and getattr(tokenizer.normalizer, "lowercase", False):
        tokenizer.model.save(str(target))
    for name in TOKENIZER_FILES:
        if (source / name).exists():
            shutil.copyfile(source / name, target / name)
    card = source / CARD
    if card.exists():
        use = OWN_USE if own else STOCK_USE
        text = _replace_use(card.read_text(encoding="utf-8"), use, target)
        (target / CARD).write_text(text, encoding="utf-8")


def _check_folders(source: Path, target: Path) -> None:
    """Raises OSError for an incomplete source, a source with links to outside, or a target with files."""
    # Hugging Face would look for a missing folder on the hub.
    if not (source / "config.json").is_file():
        raise FileNotFoundError(f"{source}: no model folder, because config.json is missing; correct the path")
    # The files may be trained weights, of the source (by another path) or of another model.
    if target.exists() and any(target.iterdir()):
        raise FileExistsError(f"{target}: not empty, and files might be replaced; name a new folder as the target")
    for file in filter(Path.is_file, source.iterdir()):
        with file.open("rb") as content:
            if content.read(len(LFS_POINTER)) == LFS_POINTER:
                raise OSError(f"{file}: a pointer of Git LFS; run `git lfs pull` in the repository of the model")
    # In a folder from somebody else, a link to a private file would put the file's text into the export.
    for name in (*TOKENIZER_FILES, CARD):
        file = (source / name).resolve()
        # Files of a model folder may be links to the cache of DVC or of the hub, which name files by a digest.
        in_cache = re.fullmatch("[0-9a-f]{30,64}", file.name)
        if not (in_cache or file.is_relative_to(source.resolve())):
            raise OSError(f"{source / name}: a link to {file}, outside the model folder; copy the file there")


def _read_tokenizer(folder: Path) -> Tokenizer | None:
    """Reads the tokenizer.json of a model folder, if any; ValueError if damaged."""
    file = folder / TOKENIZER_FILES[0]
    if not file.exists():
        return None
    try:
        return Tokenizer.from_file(str(file))
    # The library raises a plain Exception.
    except Exception as error:
        raise ValueError(f"{file}: damaged ({str(error)!r:.80}); copy the file again") from None


def _load_model(kind: type[PreTrainedModel], folder: Path) -> PreTrainedModel:
    """Loads a model from safetensors files; ValueError for damaged, missing or unexpected weights."""
    try:
        loaded: Any = kind.from_pretrained(
            folder, use_safetensors=True, ignore_mismatched_sizes=True, output_loading_info=True
        )
    except SafetensorError as error:
        raise ValueError(f"{folder}: the weights are damaged ({str(error)!r:.80}); copy the folder again") from None
    model, report = loaded
    # Hugging Face only warns, and draws missing weights at random. A name is a text, or a tuple of a name and two
    # shapes.
    for problem, names in report.items():
        if names:
            first = repr(str(sorted(names)[0]))
            raise ValueError(
                f"{folder}: not the weights of config.json: {problem}, as {first:.80}; copy the folder again"
            )
    return model


def _save_with_code(model: PreTrainedModel, target: Path) -> None:
    """Writes a model and the code of its classes; config.json then names an Auto class for each class."""
    # "ForMaskedLM" for OperatorBertForMaskedLM, "" for OperatorBertModel
    head = type(model).__name__.removeprefix("OperatorBert").removeprefix("Model")
    OperatorConfig.register_for_auto_class()
    type(model).register_for_auto_class(f"AutoModel{head}")
    try:
        model.save_pretrained(target)
    finally:
        # A registration that stays would save the code with every later model of this process.
        OperatorConfig._auto_class = None
        type(model)._auto_class = None


def _replace_use(card: str, use: str, folder: Path) -> str:
    """Replaces the last section of a model card, `Use`, by the template `use`, filled for the exported folder."""
    # The old section names the pipeline task, as in `pipeline("fill-mask", ...)`; without a task the card stays.
    body, _, old = card.partition("\n## Use\n")
    task = re.search(r'pipeline\("([\w-]+)"', old)
    if not task:
        return card
    return body + use.format(
        task=task[1],
        folder=folder.as_posix(),
        torch=torch.__version__,
        transformers=transformers.__version__,
    )


@torch.no_grad()
def convert_to_stock_bert(model: OperatorBertModel | WithOperator) -> PreTrainedModel:
    """Builds an ordinary Hugging Face model with equal outputs (to 1e-5 in float32), on the CPU, in evaluation mode.

    The attention of the new model has three projections, as in the operator Original: the export is for compatibility
    and saves no memory. OperatorBertForMaskedLM becomes BertForMaskedLM, and so on.

    Raises:
        ValueError: BERT cannot express the operator, or a `self_score`; or the model has changed parts, such as a layer
            with an adapter.
        TypeError: `model` is no model of this package, such as a PeftModel, which holds the model.
    """
    _require_own_parts(model)
    config = model.config
    if config.self_score is not None:
        raise ValueError(f"{config.operator}: self_score {config.self_score}; BERT adds nothing to its scores")
    # The three settings left out describe the class of `model`.
    names = BertConfig().to_dict().keys() - {"model_type", "architectures", "dtype"}
    values = {name: getattr(config, name) for name in names}
    stock = STOCK[type(model)](BertConfig(**values))
    projections = [layer.attention.self.build_projections() for layer in model.base_model.encoder.layer.children()]
    # Outside self-attention, both models have the same names.
    others = {name: tensor for name, tensor in model.state_dict().items() if ".attention.self." not in name}
    stock.load_state_dict(others, strict=False)
    for layer, parts in zip(stock.base_model.encoder.layer, projections, strict=True):
        attention = layer.attention.self
        for linear, (weight, bias) in zip((attention.query, attention.key, attention.value), parts, strict=True):
            linear.weight.copy_(weight)
            linear.bias.copy_(bias)
    return stock.to(next(model.parameters()).dtype).eval()


def _require_own_parts(model: OperatorBertModel | WithOperator) -> None:
    """Raises TypeError for a model of another package, and ValueError for changed parts, such as adapters."""
    if type(model) not in STOCK:
        raise TypeError(
            f"model: given a {type(model).__name__}, which is no model of this package; a PeftModel returns the model "
            "from merge_and_unload()"
        )
    # The parts are compared with a new model, built without memory for parameters.
    with torch.device("meta"):
        new = type(model)(model.config)
    kinds = {name: type(part) for name, part in new.named_modules()}
    for name, part in model.named_modules():
        if type(part) is not kinds.get(name) or (type(part) is nn.Linear and not is_plain(part)):
            raise ValueError(
                f"{name}: a {type(part).__name__} with other code, hooks or parameters than a new model's part; merge "
                "adapters, undo quantisation, and remove pruning, parametrisations and hooks before the export"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
