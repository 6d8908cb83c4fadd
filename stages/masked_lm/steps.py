"""The parts of masked-LM training: the model, an update, and the validation loss.

Batches, their order and the masks are functions of the seed and the step, so every operator sees the same data.
"""

from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from stages.attention.bert import OperatorBertForMaskedLM
from stages.attention.configuration import configuration
from stages.masked_lm.corpus import Corpus, batch_indices
from stages.masked_lm.loss import MaskedLMLoss, sparse_targets
from stages.masked_lm.masking import mask_tokens
from stages.masked_lm.run import PretrainingRun, choose_length, count_steps
from stages.runner.worker import processes, rank
from stages.schema.training_sections import Pretraining
from stages.training import distributed
from stages.training.optimisation import (
    DROPOUT,
    INITIALISATION,
    MASKING,
    apply_gradients,
    autocast,
    derived_seed,
    device,
    linear_rate,
    optimiser,
    seed_torch,
)

VALIDATION_SEED = 0  # one masking of the validation sequences for all runs, so that losses can be compared
VALIDATION_BATCH = 64  # sequences
COMPILED_MULTIPLE = 64  # on a GPU, masked tokens are padded to a multiple of this, for aligned matrix products
RECOMPILATIONS = 128  # compiled models of one process; torch counts them together, because one code serves all


class Update(NamedTuple):
    """The measurements of an update.

    Attributes:
        loss: Loss before the update, in nats, summed over this process's masked tokens.
        masked: Number of masked tokens of the whole batch, over all processes.
        gradient_norm: Norm of the gradient before clipping.
        rate: Learning rate.
    """

    loss: float
    masked: int
    gradient_norm: float
    rate: float


def build_model(run: PretrainingRun, vocabulary_size: int) -> OperatorBertForMaskedLM:
    """Builds the model of a run on the CPU, with weights drawn from the run's seed. vocabulary_size: word pieces."""
    seed_torch(run.seed, INITIALISATION)
    config = configuration(
        **run.variant,
        **run.model.model_dump(),
        vocab_size=vocabulary_size,
        initializer_range=run.training.initializer_range,
        hidden_dropout_prob=run.training.hidden_dropout,
        attention_probs_dropout_prob=run.training.attention_dropout,
    )
    return OperatorBertForMaskedLM(config)


class Trainer:
    """The model, the optimiser and the updates of a run, in this process.

    Args:
        run: The run.
        corpus: The data.
        checkpoint: File of the run's state. The trainer neither reads nor writes the file; errors name the file.

    Attributes:
        content: The settings that a checkpoint must agree with: the content of the run, and the number of processes,
            which decides the result, too, because each process draws separate dropout.
        steps: Number of updates of the run.

    Raises:
        ValueError: The warm-up of the learning rate takes all steps.
    """

    def __init__(self, run: PretrainingRun, corpus: Corpus, checkpoint: Path):
        recipe = run.training
        self.run = run
        self.corpus = corpus
        self.checkpoint = checkpoint
        self.content = {**run.content, "processes": processes()}
        self.steps = count_steps(recipe, len(corpus.train))
        self.model = build_model(run, corpus.vocabulary_size).to(device())
        self.adamw = optimiser(self.model, recipe.betas, recipe.epsilon, recipe.weight_decay)

    def advance(self, step: int) -> Update:
        """Makes the update whose number, from 0, is `step`.

        Raises:
            ValueError: No token is masked, or the gradient is not finite.
        """
        recipe = self.run.training
        # 1. Draw the sequences of the batch and hide some of their tokens.
        indices = batch_indices(self.run.seed, step, recipe.batch_size, len(self.corpus.train))
        packed = torch.from_numpy(self.corpus.train[indices])
        # Short sequences are blocks of the packed ones: at every length an update sees the same number of tokens.
        length = choose_length(recipe, step, self.steps, packed.shape[1])
        sequences = packed.view(-1, length)
        generator = torch.Generator().manual_seed(derived_seed(self.run.seed, MASKING, step))
        inputs, chosen = mask_tokens(sequences, self.corpus, recipe.mask_probability, generator)
        masked = int(chosen.sum())
        _require_masked(masked, f"step {step + 1}", "pretraining.batch_size")
        # 2. Compute the gradient. Each process has its own seed of dropout, because parts of a batch differ.
        seed_torch(self.run.seed, DROPOUT, step * processes() + rank())
        self.model.train()
        share = [distributed.take_share(tensor) for tensor in (inputs, sequences, chosen)]
        loss = self._add_gradients(*share, masked)
        # 3. Update the weights.
        rate = linear_rate(step, self.steps, recipe.warmup_steps, recipe.learning_rate)
        where = self._describe_update(step, indices, loss / masked)
        norm = apply_gradients(self.model, self.adamw, rate, recipe.gradient_clipping, where)
        return Update(loss, masked, norm, rate)

    def _add_gradients(self, inputs: Tensor, sequences: Tensor, chosen: Tensor, masked: int) -> float:
        """Adds the gradient of a batch's mean loss to `grad`, by micro-batches.

        Args:
            inputs: Token ids after masking [batch, n]; this process's share of the batch.
            sequences: Token ids before masking [batch, n].
            chosen: Tokens to predict [batch, n], boolean.
            masked: Number of masked tokens of the whole batch, over all processes.

        Returns:
            The loss in nats, summed over this process's masked tokens.
        """
        recipe = self.run.training
        # A small batch may leave a process no row, but a part has at least one.
        rows = max(len(inputs), 1)
        if recipe.micro_batch_size:
            # The setting counts packed sequences; of shorter blocks, a part takes as many as have the same tokens.
            rows = recipe.micro_batch_size * self.corpus.train.sequence_length // inputs.shape[1]
        multiple = COMPILED_MULTIPLE if device().type == "cuda" else 1
        parts = list(zip(inputs.split(rows), sequences.split(rows), chosen.split(rows), strict=True))
        total = torch.zeros((), device=device())
        for number, (seen, originals, chosen_part) in enumerate(parts, start=1):
            positions, targets = sparse_targets(originals, chosen_part, multiple)
            # Processes exchange their gradients once, after the last part.
            last = number == len(parts)
            exchange = nullcontext() if last else distributed.keep_gradients(self._loss_of)
            with exchange:
                loss = self._compute_loss(seen, positions, targets)
                # Processes average their gradients, so the factor turns the average into the sum.
                (loss * (processes() / masked)).backward()
            total += loss.detach()
        return total.item()

    def _compute_loss(self, inputs: Tensor, positions: Tensor, targets: Tensor) -> Tensor:
        """Returns the summed loss of a part of a batch, with the arguments of `MaskedLMLoss`, on the device."""
        batch = [tensor.to(device(), non_blocking=True) for tensor in (inputs, positions, targets)]
        # One compiled form serves all numbers of masked tokens.
        for tensor in batch[1:]:
            torch._dynamo.maybe_mark_dynamic(tensor, 0)
        with autocast(self.run.training.precision):
            return self._loss_of(*batch)

    @cached_property
    def _loss_of(self) -> nn.Module:
        """The MaskedLMLoss of the model, compiled only on a GPU, where that pays; processes average the gradients."""
        loss_of = MaskedLMLoss(self.model)
        if device().type == "cuda":
            torch._dynamo.config.recompile_limit = RECOMPILATIONS
            # An error is better than a run that goes on uncompiled.
            torch._dynamo.config.fail_on_recompile_limit_hit = True
            loss_of = torch.compile(loss_of)
        return distributed.replicate(loss_of)

    def _describe_update(self, step: int, indices: np.ndarray, loss: float) -> str:
        """Returns the name of an update in errors, with the data and the checkpoint to study the update by."""
        # `step` updates were made before this update.
        last = step - step % self.run.training.checkpoint_interval
        saved = f"step {last} in {self.checkpoint}" if last else "none"
        listed = ", ".join(map(str, indices))
        return (
            f"pre-training {self.run.name}, step {step + 1} (training sequences {listed}; "
            f"last good checkpoint: {saved}): loss {loss}"
        )


@torch.no_grad()
def validate(model: nn.Module, corpus: Corpus, recipe: Pretraining) -> dict:
    """Evaluates a model on the validation sequences, whose masking is the same for every run and step.

    Processes divide the batches. The losses are then added in the order of the batches, so the sum is equal
    to the sum of a single process.

    Args:
        model: The model, which is set to evaluation mode.
        corpus: The corpus, of which the validation split is used.
        recipe: Recipe of pre-training, of which `mask_probability` and `precision` are used.

    Returns:
        validation_loss: mean over the masked tokens, in nats. masked_tokens: number of these. Both over all processes.

    Raises:
        ValueError: No token is masked.
    """
    model.eval()
    loss_of = MaskedLMLoss(model)
    generator = torch.Generator().manual_seed(VALIDATION_SEED)
    batches = torch.from_numpy(corpus.validation[range(len(corpus.validation))]).split(VALIDATION_BATCH)
    losses = torch.zeros(len(batches), dtype=torch.float64)
    masked = 0
    for number, sequences in enumerate(batches):
        # Every process draws all masks, so the masks are equal to those of a single process.
        inputs, chosen = mask_tokens(sequences, corpus, recipe.mask_probability, generator)
        masked += int(chosen.sum())
        if number % processes() != rank():
            continue
        positions, targets = sparse_targets(sequences, chosen)
        batch = [tensor.to(device()) for tensor in (inputs, positions, targets)]
        with autocast(recipe.precision):
            losses[number] = loss_of(*batch).double()
    _require_masked(masked, "validation", "tokenization.validation_documents")
    total = distributed.sum_on_all(losses).sum().item()
    return {"validation_loss": total / masked, "masked_tokens": masked}


def _require_masked(masked: int, where: str, key: str) -> None:
    """Raises ValueError, with the name of the step and a key of params.yaml to raise, where no token is masked."""
    if not masked:
        raise ValueError(f"pre-training, {where}: no token is masked; raise pretraining.mask_probability or {key}")
