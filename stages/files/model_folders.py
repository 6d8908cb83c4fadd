"""Completes the folder of a model, which has weights and configuration, with tokenizer and model card.

Hugging Face's libraries load such a folder, and `hf upload` publishes it without changes.
"""

import json
from pathlib import Path

from stages.files.storage import link_file, write_atomically

SPECIAL = {
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
    "pad_token": "[PAD]",
    "sep_token": "[SEP]",
    "unk_token": "[UNK]",
}
CARD = """---
{{ card_data }}
---

# {{ title }}

{{ text }}

## Use

{% if operators_sha256 -%}
The operator is defined in a file of its user's, whose content has the checksum below: no model folder can name code for
others to run. In a checkout of this repository, with that file as `{{ operators_file }}`, where you trust it:

```python
from stages.attention.own import import_own_operators
from transformers import pipeline

import_own_operators("{{ operators_file }}", "{{ operators_sha256 }}")
{%- else -%}
Where the package of the operators is installed (`pip install .` in a checkout of this repository):

```python
import fewer_attention  # makes the operators known to the Auto classes

from transformers import pipeline
{%- endif %}

model = pipeline("{{ task }}", "{{ folder }}")
```
{%- if not operators_sha256 %}

`python -m fewer_attention.export {{ folder }} TARGET` makes a folder of it that loads without the package; \
`--own` keeps the operator there.
{%- endif %}
"""


def complete_folder(folder: Path, tokenizer: Path, length: int, card: str) -> None:
    """Adds tokenizer, tokenizer configuration and model card to a folder that has weights and configuration.

    `tokenizer` is a tokenizer.json with BERT's special tokens, `length` the longest sequence of the model in tokens,
    and `card` the text of README.md.
    """
    link_file(tokenizer, folder / "tokenizer.json")
    settings = SPECIAL | {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        "model_max_length": length,
    }
    write_atomically(folder / "tokenizer_config.json", json.dumps(settings, indent=2, sort_keys=True) + "\n")
    write_atomically(folder / "README.md", card)


def render_card(
    folder: Path,
    title: str,
    text: str,
    operator: str,
    variant: dict,
    task: str,
    measured: dict[tuple[str, str, str], float],
) -> str:
    """Renders a model card, the text of README.md, with metadata for the hub.

    `folder` is the final folder of the model, `text` Markdown, `variant` the settings of the operator, `task` the hub's
    name of the task, such as `fill-mask`, and `measured` values by (name of the data, part of the data, metric).
    """
    from huggingface_hub import EvalResult, ModelCard, ModelCardData

    results = [
        EvalResult(
            task_type=task,
            # required, but the data have no name on the hub
            dataset_type="own",
            dataset_name=data_name,
            # without the part, results of several parts would look like results of the same part
            dataset_config=part,
            metric_type=metric,
            metric_value=round(value, 6),
        )
        for (data_name, part, metric), value in measured.items()
    ]
    metadata = ModelCardData(
        model_name=folder.as_posix().removeprefix("data/"),
        language="en",
        license="mit",
        library_name="transformers",
        pipeline_tag=task,
        tags=["bert", "attention", operator],
        # an empty list would be written out
        eval_results=results or None,
    )
    values = variant | {"title": title, "text": text, "task": task, "folder": folder.as_posix()}
    return str(ModelCard.from_template(metadata, template_str=CARD, **values))
