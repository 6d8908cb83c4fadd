"""The parts of masked-LM training: the model, and an update.

Batches, their order and the masks are functions of the seed and the step, so every operator sees the same data.
"""

from contextlib import nullcontext
from functools import cached_property, partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from stages.attention.bert import OperatorBertForMaskedLM
from stages.attention.configuration import make_configuration
from stages.masked_lm.batches import Ahead, Batch, draw_batch
from stages.masked_lm.compilation import compile_loss
from stages.masked_lm.corpus import Corpus
from stages.masked_lm.loss import MaskedLMLoss
from stages.masked_lm.run import PretrainingRun, count_steps
from stages.runner.processes import count_processes, find_rank
from stages.training import distributed
from stages.training.machine import find_device, has_gpu, open_autocast
from stages.training.optimisation import (
    DROPOUT,
    INITIALISATION,
    apply_gradients,
    build_optimiser,
    compute_linear_rate,
    seed_torch,
)


class Update(NamedTuple):
    """The measurements of an update; scalars stay on the device, because a GPU would wait while the host reads them."""

    # before the update, in nats, summed over this process's masked tokens, a scalar
    loss: Tensor
    # number of masked tokens of the whole batch, over all processes
    masked: int
    # before clipping, a scalar
    gradient_norm: Tensor
    # learning rate
    rate: float


def build_model(run: PretrainingRun, vocabulary_size: int) -> OperatorBertForMaskedLM:
    """Builds the model of a run on the CPU, with weights drawn from the run's seed. vocabulary_size: word pieces."""
    seed_torch(run.seed, INITIALISATION)
    config = make_configuration(
        **run.variant,
        **run.model.model_dump(),
        vocab_size=vocabulary_size,
        initializer_range=run.training.initializer_range,
        hidden_dropout_prob=run.training.hidden_dropout,
        attention_probs_dropout_prob=run.training.attention_dropout,
    )
    return OperatorBertForMaskedLM(config)


class Trainer:
    """The model, the optimiser and the updates of a run, in this process; steps count from 0."""

    def __init__(self, run: PretrainingRun, corpus: Corpus):
        recipe = run.training
        self.run = run
        self.corpus = corpus
        # The settings that a checkpoint must agree with. The number of processes decides the result, too, because each
        # process draws separate dropout.
        self.content = {**run.content, "processes": count_processes()}
        self.steps = count_steps(recipe, len(corpus.train))
        self.draw_batch = partial(draw_batch, run, corpus, self.steps)
        # Either takes a step and returns the batch; with a GPU, the next batch is drawn while the GPU computes.
        self._take_batch = Ahead(self.draw_batch, self.steps) if has_gpu() else self.draw_batch
        self.model = build_model(run, corpus.vocabulary_size).to(find_device())
        self.adamw = build_optimiser(self.model, recipe.betas, recipe.epsilon, recipe.weight_decay)

    def advance(self, step: int) -> Update:
        """Makes an update; a gradient that is not finite changes no weight. ValueError if no token is masked."""
        recipe = self.run.training
        # 1. Take the batch.
        batch = self._take_batch(step)
        # 2. Compute the gradient. Each process has its own seed of dropout, because each computes other sequences.
        seed_torch(self.run.seed, DROPOUT, step * count_processes() + find_rank())
        self.model.train()
        loss = self._add_gradients(batch)
        # 3. Update the weights.
        rate = compute_linear_rate(step, self.steps, recipe.warmup_steps, recipe.learning_rate)
        norm = apply_gradients(self.model, self.adamw, rate, recipe.gradient_clipping)
        return Update(loss, batch.masked, norm, rate)

    def _add_gradients(self, batch: Batch) -> Tensor:
        """Computes the gradient of a batch's mean loss; returns the loss summed over this process's masked tokens."""
        total = torch.zeros((), device=find_device())
        for number, part in enumerate(batch.parts, start=1):
            # Processes exchange their gradients once, after the last part.
            last = number == len(batch.parts)
            exchange = nullcontext() if last else distributed.keep_gradients(self._loss_of)
            arguments = [tensor.to(find_device(), non_blocking=True) for tensor in part]
            with exchange:
                with open_autocast(self.run.training.precision):
                    loss = self._loss_of(*arguments)
                # The loss is a sum. Processes average their gradients, so the factor turns the average into the sum,
                # and the sum over all masked tokens into the mean.
                (loss * (count_processes() / batch.masked)).backward()
            total += loss.detach()
        return total

    @cached_property
    def _loss_of(self) -> nn.Module:
        """The MaskedLMLoss of the model, compiled on a GPU; several processes average the gradients."""
        loss_of = MaskedLMLoss(self.model)
        if has_gpu():
            loss_of = compile_loss(loss_of)
        return distributed.replicate_module(loss_of)
