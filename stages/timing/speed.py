"""Times our training on new models. Speed does not depend on learned weights, so every model starts untrained."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle, islice

from stages.attention.bert import OperatorBertForSequenceClassification
from stages.attention.configuration import make_configuration
from stages.benchmarks.glue import TASKS
from stages.classification import training as finetuning
from stages.classification.runs import FinetuningRun
from stages.classification.training import Encoded
from stages.encoder_decoder import pairs as sentence_pairs
from stages.encoder_decoder import steps as translation
from stages.encoder_decoder.run import TranslationRun
from stages.masked_lm.corpus import Corpus
from stages.masked_lm.run import PretrainingRun
from stages.masked_lm.steps import Trainer
from stages.schema.training_sections import Finetuning as Recipe
from stages.training.batches import draw_batches
from stages.training.machine import find_device, measure_seconds
from stages.training.optimisation import INITIALISATION, build_optimiser, seed_torch


def prepare_pretraining(run: PretrainingRun, corpus: Corpus, steps: int) -> Callable[[], float]:
    """Prepares our masked-LM training of a new model.

    Args:
        run: operator, size, recipe and seed.
        corpus: the packed sequences.
        steps: number of steps of a measurement.

    Returns:
        A function that trains the model further, and returns the mean seconds of `steps` steps after a step that is not
        timed.
    """
    trainer = Trainer(run, corpus)
    # after the last update of the recipe, batches and learning rates start again; the weights stay
    updates = map(trainer.advance, cycle(range(trainer.steps)))
    return partial(time_updates, updates, steps)


def time_updates(updates: Iterator[object], steps: int) -> float:
    """Takes an update that is not timed, then `steps` updates; returns the mean seconds of the timed updates."""
    # An update is made when the iterator is asked for it. The first may compile or load kernels.
    next(updates)
    return measure_seconds(lambda: list(islice(updates, steps))) / steps


def prepare_finetuning(
    variant: dict, task: str, recipe: Recipe, size: dict[str, int], vocabulary_size: int, examples: Encoded
) -> Callable[[], float]:
    """Prepares our fine-tuning of a new classifier.

    Args:
        variant: settings of the operator by name, `operator` among the names.
        task: the GLUE task, which decides the number of outputs.
        recipe: the recipe of fine-tuning.
        size: an entry of section `models` of params.yaml, as a dict.
        vocabulary_size: number of word pieces.
        examples: the training examples of the task.

    Returns:
        A function that trains the model for all epochs of the recipe, and returns the mean seconds of an epoch.
    """
    # No checkpoint is loaded, because speed does not depend on the initial weights. `weights`, `pretraining_seed` and
    # `columns` do not influence the training.
    run = FinetuningRun(
        task=task,
        seed=1,
        training=recipe,
        weights="",
        pretraining_seed=1,
        columns={"stage": "timing", "size": "timed"},
    )
    seed_torch(1, INITIALISATION)
    config = make_configuration(
        **variant,
        **size,
        vocab_size=vocabulary_size,
        num_labels=TASKS[task].outputs,
        hidden_dropout_prob=recipe.hidden_dropout,
        attention_probs_dropout_prob=recipe.attention_dropout,
    )
    model = OperatorBertForSequenceClassification(config).to(find_device())
    train = partial(finetuning.train_model, model, examples, run)
    return lambda: measure_seconds(train) / recipe.epochs


def prepare_translation(run: TranslationRun, steps: int) -> Callable[[], float]:
    """Prepares our training of a new encoder-decoder, timed on the same batches for every operator.

    Args:
        run: the operator, the seed and the protocol of `translation`, whose sentence pairs are read.
        steps: number of steps of a measurement.

    Returns:
        A function that trains the model further, and returns the mean seconds of `steps` steps after a step that is not
        timed.
    """
    pairs = sentence_pairs.load_pairs(run.data / "train.safetensors")
    batches = draw_batches(pairs.lengths, run.training.batch_size, run.seed)
    # Every measurement has the same batches, so that all rounds are comparable.
    measured = list(islice(cycle(batches), steps + 1))
    model = translation.build_model(run, sentence_pairs.read_vocabulary_sizes(run.data))
    # Adam without weight decay, as in stage translation
    adam = build_optimiser(model, run.training.betas, run.training.epsilon, weight_decay=0.0)
    updates = (
        translation.make_update(model, adam, step, pairs, indices, run) for step, indices in enumerate(cycle(measured))
    )
    return partial(time_updates, updates, steps)
