"""How fast our training runs: steps and epochs of fresh models, for speed does not depend on what one has learned."""

from itertools import cycle, islice
from pathlib import Path

import numpy as np

from stages.common.attention.bert import OperatorBertForSequenceClassification
from stages.common.attention.configuration import configuration
from stages.common.classification import training as finetuning
from stages.common.classification.training import Encoded
from stages.common.masked_lm import steps as masked_lm
from stages.common.masked_lm.corpus import Corpus
from stages.common.training.batches import batches
from stages.common.training.machine import clocked
from stages.common.training.optimisation import INITIALISATION, device, optimiser, seed_torch
from stages.common.translation import pairs as sentence_pairs
from stages.common.translation import steps as translation


class Pretraining:
    """Our masked-LM training of a fresh model, timed; `run` a record as the stage pretraining makes one."""

    def __init__(self, run: dict, corpus: Corpus):
        settings = run["training"]
        self.run, self.corpus, self.done = run, corpus, 0
        self.model = masked_lm.built(run, corpus.vocabulary_size).to(device())
        self.adamw = optimiser(self.model, settings["betas"], settings["epsilon"], settings["weight_decay"])
        self.loss_of = masked_lm.ready(self.model)

    def seconds(self, steps: int) -> float:
        """Of one step: the mean of `steps` after a first one."""
        self.step()
        return clocked(lambda: [self.step() for _ in range(steps)]) / steps

    def step(self) -> float:
        """One update; gives the summed loss."""
        steps = self.run["training"]["steps"]
        step, self.done = self.done % steps, self.done + 1
        state = self.loss_of, self.model, self.adamw
        return masked_lm.advance(*state, step, steps, self.run, self.corpus, Path("speed"))[0]


class Finetuning:
    """Our fine-tuning of a fresh classifier.

    Args:
        run: seed, labels, training (a record of `finetuning`), name.
        variant: an operator and its settings, as Settings.variant gives them.
        size: a record of `models`.
        vocabulary_size: word pieces.
    """

    def __init__(self, run: dict, variant: dict, size: dict[str, int], vocabulary_size: int):
        settings = run["training"]
        seed_torch(run["seed"], INITIALISATION)
        config = configuration(
            **variant,
            **size,
            vocab_size=vocabulary_size,
            num_labels=run["labels"],
            hidden_dropout_prob=settings["hidden_dropout"],
            attention_probs_dropout_prob=settings["attention_dropout"],
        )
        self.run, self.model = run, OperatorBertForSequenceClassification(config).to(device())

    def train(self, examples: Encoded) -> float:
        """Trains the model; gives the seconds of an epoch."""
        return clocked(lambda: finetuning.train_model(self.model, examples, self.run)) / self.run["training"]["epochs"]


class Translation:
    """Our training of a fresh encoder-decoder, timed on the same batches for every operator.

    Args:
        job: name, operator, seed, training (a record of `translation.protocols`).
        data: the folder of the protocol's sentence pairs.
    """

    def __init__(self, job: dict, data: Path):
        settings = job["training"]
        self.job, self.done = job, 0
        self.pairs = sentence_pairs.load(data / "train.safetensors")
        self.batches = list(batches(self.pairs.lengths, settings["batch_size"], job["seed"]))
        self.model = translation.built(job, sentence_pairs.vocabulary_sizes(data))
        self.adam = optimiser(self.model, settings["betas"], settings["epsilon"], weight_decay=0.0)

    def seconds(self, steps: int) -> float:
        """Of one step: the mean of `steps` after a first one, on the same batches at every call."""
        taken = list(islice(cycle(self.batches), steps + 1))
        self.step(taken[0])
        return clocked(lambda: [self.step(indices) for indices in taken[1:]]) / steps

    def step(self, indices: np.ndarray) -> None:
        """One update."""
        translation.advance(self.model, self.adam, self.done, self.pairs, indices, self.job)
        self.done += 1
