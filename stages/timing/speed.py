"""Times steps and epochs of our training, on new models, for speed does not depend on what a model has learned."""

from itertools import cycle, islice
from pathlib import Path

import numpy as np

from stages.attention.bert import OperatorBertForSequenceClassification
from stages.attention.configuration import configuration
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
from stages.training.batches import batches
from stages.training.machine import clocked
from stages.training.optimisation import INITIALISATION, device, optimiser, seed_torch


class Pretraining:
    """Our masked-LM training of a new model, timed. run: operator, size, recipe, seed; corpus: the packed sequences."""

    def __init__(self, run: PretrainingRun, corpus: Corpus):
        self.trainer, self.done = Trainer(run, corpus, Path("speed")), 0  # the path of a checkpoint, never written

    def seconds(self, steps: int) -> float:
        """Trains further; returns the seconds of one step, the mean of `steps` after a first one that is not timed."""
        self._step()
        return clocked(lambda: [self._step() for _ in range(steps)]) / steps

    def _step(self) -> None:
        # after the last update of a run comes the first again, its batch and rate, with the weights as they are
        self.trainer.advance(self.done % self.trainer.steps)
        self.done += 1


class Finetuning:
    """Our fine-tuning of a new classifier, timed.

    Args:
        variant: an operator and its settings, as Settings.variant gives them.
        task, recipe: the GLUE task, which decides the number of outputs, and the recipe of fine-tuning.
        size, vocabulary_size: an entry of section `models` of params.yaml, as a dict; number of word pieces.
        seed: decides the weights, the order of the examples and the dropout.
    """

    def __init__(
        self, variant: dict, task: str, recipe: Recipe, size: dict[str, int], vocabulary_size: int, seed: int = 1
    ):
        # a run without a checkpoint: how long training takes does not depend on the weights that it starts from
        unused = {"weights": "", "pretraining_seed": seed, "columns": {"stage": "timing", "size": "timed"}}
        self.run = FinetuningRun(task=task, seed=seed, training=recipe, **unused)
        seed_torch(seed, INITIALISATION)
        config = configuration(
            **variant,
            **size,
            vocab_size=vocabulary_size,
            num_labels=TASKS[task].outputs,
            hidden_dropout_prob=recipe.hidden_dropout,
            attention_probs_dropout_prob=recipe.attention_dropout,
        )
        self.model = OperatorBertForSequenceClassification(config).to(device())

    def train(self, examples: Encoded) -> float:
        """Trains the model further, for all epochs of the recipe; returns the mean seconds of an epoch."""
        return clocked(lambda: finetuning.train_model(self.model, examples, self.run)) / self.run.training.epochs

    def predict(self, examples: Encoded) -> np.ndarray:
        """Predicts the class index [n] of every example, or its score where the model has one output."""
        return finetuning.predict(self.model, examples, self.run.training.precision)


class Translation:
    """Our training of a new encoder-decoder, timed on the same batches for every operator.

    run: the operator, the protocol of `translation`, whose sentence pairs are read, and the seed.
    """

    def __init__(self, run: TranslationRun):
        self.run, recipe, self.done = run, run.training, 0
        self.pairs = sentence_pairs.load(run.data / "train.safetensors")
        self.batches = list(batches(self.pairs.lengths, recipe.batch_size, run.seed))
        self.model = translation.built(run, sentence_pairs.vocabulary_sizes(run.data))
        self.adam = optimiser(self.model, recipe.betas, recipe.epsilon, weight_decay=0.0)  # as in stage translation

    def seconds(self, steps: int) -> float:
        """Trains further, from the first batch at every call; returns the mean seconds of `steps` after a first one."""
        first, *others = islice(cycle(self.batches), steps + 1)
        self._step(first)
        return clocked(lambda: [self._step(indices) for indices in others]) / steps

    def _step(self, indices: np.ndarray) -> None:
        """Makes one update on the sentence pairs at `indices`."""
        translation.advance(self.model, self.adam, self.done, self.pairs, indices, self.run)
        self.done += 1
