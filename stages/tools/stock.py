"""Describes trainings of stock BERT that match ours, which functions of peers.py time in a separate process.

Fine-tuning pads every example to the maximum length. `size` is an entry of section `models` of params.yaml.
"""

from pathlib import Path

import numpy as np

from stages.attention.configuration import make_configuration
from stages.benchmarks.glue import TASKS
from stages.classification.training import Encoded
from stages.files.model_folders import SPECIAL
from stages.masked_lm.corpus import Corpus
from stages.masked_lm.run import PretrainingRun
from stages.schema.training_sections import Finetuning
from stages.schema.training_sections import Training as Recipe
from stages.tools.peers import Training


def configure_stock_bert(size: dict[str, int], recipe: Recipe, **others: int | str) -> dict:
    """Builds the configuration of stock BERT with the dropout of a recipe, as fields of BertConfig by name.

    `others` are further fields, such as vocab_size.
    """
    config = make_configuration(
        "original",
        **size,
        hidden_dropout_prob=recipe.hidden_dropout,
        attention_probs_dropout_prob=recipe.attention_dropout,
        **others,
    )
    return config.to_dict()


def describe_pretraining(run: PretrainingRun, corpus: Corpus, tokenizer: Path, steps: int) -> Training:
    """Describes masked-LM training of stock BERT for `steps` + 1 steps; a corpus of fewer sequences is repeated.

    The run gives the size of the model and the recipe; `tokenizer` is the tokenizer.json of the sequences.
    """
    recipe = run.training
    # the model takes as many sequences at once as in our training
    micro_batch_size = min(recipe.micro_batch_size or recipe.batch_size, recipe.batch_size)
    number = min(len(corpus.train), recipe.batch_size * (steps + 1))
    sequences = corpus.train[range(number)]
    examples = []
    for ids in sequences:
        # `corpus.special` are the ids of [CLS], [SEP] and [PAD]; packed sequences have no [PAD]
        special = np.isin(ids, corpus.special.numpy()).astype(int)
        examples.append({"input_ids": ids, "token_type_ids": np.zeros_like(ids), "special_tokens_mask": special})
    return Training(
        model="BertForMaskedLM",
        configuration=configure_stock_bert(run.model.model_dump(), recipe, vocab_size=corpus.vocabulary_size),
        examples=examples,
        tokenizer={
            "tokenizer_file": str(tokenizer.resolve()),
            # no attention_mask: packed sequences have no padding, and a mask would slow compiled attention down
            "model_input_names": ["input_ids", "token_type_ids"],
            **SPECIAL,
        },
        precision=recipe.precision,
        batch_size=micro_batch_size,
        schedule={"gradient_accumulation_steps": recipe.batch_size // micro_batch_size},
    )


def describe_finetuning(
    task: str, recipe: Finetuning, size: dict[str, int], vocabulary_size: int, examples: Encoded, steps: int
) -> Training:
    """Describes the fine-tuning of stock BERT as a new classifier for `steps` + 1 steps.

    The recipe gives batch size, precision, maximum length, dropout and the peak learning rate (the first of
    `learning_rates`), with a linear schedule after a warm-up of a tenth of the steps.
    """
    outputs = TASKS[task].outputs
    # without a `problem_type`, the model would set its own in the first step, and the second step would compile again
    problem_type = "regression" if outputs == 1 else "single_label_classification"
    # all examples that the steps take
    number = min(len(examples), recipe.batch_size * (steps + 1))
    return Training(
        model="BertForSequenceClassification",
        configuration=configure_stock_bert(
            size, recipe, vocab_size=vocabulary_size, num_labels=outputs, problem_type=problem_type
        ),
        examples=[pad_example(examples, i, recipe.maximum_length) for i in range(number)],
        tokenizer=None,
        precision=recipe.precision,
        batch_size=recipe.batch_size,
        # 0.1: a share of the steps
        schedule={"learning_rate": recipe.learning_rates[0], "warmup_steps": 0.1},
    )


def pad_example(examples: Encoded, index: int, length: int) -> dict[str, np.ndarray]:
    """Pads an example with 0 to `length` tokens: the ids [5, 6] become [5, 6, 0] at length 3.

    Returns:
        Arrays [length]: input_ids, token_type_ids and attention_mask (1 at tokens); and the label, a number.
    """
    ids = examples.ids[index]
    columns = {"input_ids": ids, "token_type_ids": examples.types[index], "attention_mask": np.ones_like(ids)}
    padding = (0, length - len(ids))
    padded = {name: np.pad(values, padding).astype(int) for name, values in columns.items()}
    return {**padded, "label": examples.labels[index]}
