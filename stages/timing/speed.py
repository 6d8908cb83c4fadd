"""Times our training on new models. Speed does not depend on learned weights, so every model starts untrained."""

from itertools import cycle, islice
from pathlib import Path

import numpy as np

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
from stages.training.machine import measure_seconds
from stages.training.optimisation import INITIALISATION, build_optimiser, find_device, seed_torch


class Pretraining:
    """Our masked-LM training of a new model, timed.

    Args:
        run: operator, size, recipe and seed.
        corpus: the packed sequences.
    """

    def __init__(self, run: PretrainingRun, corpus: Corpus):
        # the trainer only stores the path of the checkpoint; no checkpoint is written
        self.trainer = Trainer(run, corpus, Path("speed"))
        self.done = 0

    def measure_seconds(self, steps: int) -> float:
        """Trains the model further; returns the mean seconds of `steps` steps after a step that is not timed."""
        # The first step may compile or load kernels.
        self._make_update()
        return measure_seconds(lambda: self._make_updates(steps)) / steps

    def _make_updates(self, steps: int) -> None:
        for _ in range(steps):
            self._make_update()

    def _make_update(self) -> None:
        # after the last update of the recipe, batches and learning rates start again; the weights stay
        self.trainer.advance(self.done % self.trainer.steps)
        self.done += 1


class Finetuning:
    """Our fine-tuning of a new classifier, timed.

    Args:
        variant: settings of the operator by name, `operator` among the names.
        task: the GLUE task, which decides the number of outputs.
        recipe: the recipe of fine-tuning.
        size: an entry of section `models` of params.yaml, as a dict.
        vocabulary_size: number of word pieces.
    """

    def __init__(self, variant: dict, task: str, recipe: Recipe, size: dict[str, int], vocabulary_size: int):
        # no checkpoint is loaded: the speed of training does not depend on the initial weights
        columns = {"stage": "timing", "size": "timed"}
        self.run = FinetuningRun(
            task=task,
            seed=1,
            training=recipe,
            weights="",
            pretraining_seed=1,
            columns=columns,
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
        self.model = OperatorBertForSequenceClassification(config).to(find_device())

    def train(self, examples: Encoded) -> float:
        """Trains the model on the examples for all epochs of the recipe; returns the mean seconds of an epoch."""
        seconds = measure_seconds(lambda: finetuning.train_model(self.model, examples, self.run))
        return seconds / self.run.training.epochs


class Translation:
    """Our training of a new encoder-decoder, timed on the same batches for every operator.

    Args:
        run: the operator, the seed and the protocol of `translation`, whose sentence pairs are read.
    """

    def __init__(self, run: TranslationRun):
        self.run = run
        self.done = 0
        self.pairs = sentence_pairs.load_pairs(run.data / "train.safetensors")
        self.batches = list(draw_batches(self.pairs.lengths, run.training.batch_size, run.seed))
        self.model = translation.build_model(run, sentence_pairs.read_vocabulary_sizes(run.data))
        # Adam without weight decay, as in stage translation
        self.adam = build_optimiser(self.model, run.training.betas, run.training.epsilon, weight_decay=0.0)

    def measure_seconds(self, steps: int) -> float:
        """Trains the model further; returns the mean seconds of `steps` steps after a step that is not timed."""
        # Every call starts with the first batch, so that all rounds time the same batches.
        first, *others = islice(cycle(self.batches), steps + 1)
        self._make_update(first)
        return measure_seconds(lambda: self._make_updates(others)) / steps

    def _make_updates(self, batches_of_indices: list[np.ndarray]) -> None:
        for indices in batches_of_indices:
            self._make_update(indices)

    def _make_update(self, indices: np.ndarray) -> None:
        translation.make_update(self.model, self.adam, self.done, self.pairs, indices, self.run)
        self.done += 1
