"""The parts of masked-LM training: the model, one update, and the validation loss.

Batches, their order and their masks are functions of the seed and the step alone, so every operator sees the same data.
"""

from contextlib import nullcontext
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from stages.attention.bert import OperatorBertForMaskedLM
from stages.attention.configuration import configuration
from stages.masked_lm.corpus import Corpus, batch_indices
from stages.masked_lm.masking import MaskedLMLoss, sparse_targets
from stages.masked_lm.run import PretrainingRun, length, sequence_length
from stages.runner.jobs import processes, rank
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

VALIDATION_SEED = 0  # one masking of the validation sequences for every run, so that their losses can be compared
VALIDATION_BATCH = 64  # sequences
COMPILED_MULTIPLE = 64  # on a GPU, masked tokens are padded to a multiple of this, for aligned matrix products
RECOMPILATIONS = 128  # models that one process may compile; torch counts them together, as one code serves all


def built(run: PretrainingRun, vocabulary_size: int) -> OperatorBertForMaskedLM:
    """Builds the model of a run on the CPU, with weights drawn from the run's seed. vocabulary_size: word pieces."""
    seed_torch(run.seed, INITIALISATION)
    return OperatorBertForMaskedLM(
        configuration(
            **run.variant,
            **run.model.model_dump(),
            vocab_size=vocabulary_size,
            initializer_range=run.training.initializer_range,
            hidden_dropout_prob=run.training.hidden_dropout,
            attention_probs_dropout_prob=run.training.attention_dropout,
        )
    )


class Trainer:
    """The model of a run, its optimiser and its updates, in this process.

    settings: what a checkpoint must agree with: the content of the run, and the number of processes. Each process draws
    dropout of its own, so that their number decides the result, too.

    Args:
        run, corpus: what is trained, and the data. ValueError if the warm-up of the learning rate takes all steps.
        checkpoint: the file of the run's state. It is neither read nor written here; errors name it.
    """

    def __init__(self, run: PretrainingRun, corpus: Corpus, checkpoint: Path):
        recipe = run.training
        self.run, self.corpus, self.checkpoint = run, corpus, checkpoint
        self.settings = run.content | {"processes": processes()}
        self.steps = length(recipe, len(corpus.train))
        self.model = built(run, corpus.vocabulary_size).to(device())
        self.adamw = optimiser(self.model, recipe.betas, recipe.epsilon, recipe.weight_decay)

    @cached_property
    def _loss_of(self) -> nn.Module:
        """The MaskedLMLoss of the model: compiled on a GPU alone, where that pays; processes average its gradients."""
        loss_of = MaskedLMLoss(self.model)
        if device().type == "cuda":
            torch._dynamo.config.recompile_limit = RECOMPILATIONS
            torch._dynamo.config.fail_on_recompile_limit_hit = True  # rather than go on uncompiled
            loss_of = torch.compile(loss_of)
        return distributed.replicated(loss_of)

    def advance(self, step: int) -> tuple[float, int, float, float]:
        """Makes the update whose number, from 0, is `step`.

        Returns:
            The loss summed over this process's masked tokens, in nats; the number of masked tokens of the whole batch,
            over all processes; the norm of the gradient before clipping; and the learning rate.

        Raises:
            ValueError: no token is masked, or the gradient is not finite.
        """
        recipe, seed, corpus = self.run.training, self.run.seed, self.corpus
        indices = batch_indices(seed, step, recipe.batch_size, len(corpus.train))
        sequences = torch.from_numpy(corpus.train[indices])
        # blocks of a packed sequence in place of the sequence: at every length an update sees the same number of tokens
        sequences = sequences.view(-1, sequence_length(recipe, step, self.steps, sequences.shape[1]))
        generator = torch.Generator().manual_seed(derived_seed(seed, MASKING, step))
        inputs, chosen = corpus.masked(sequences, recipe.mask_probability, generator)
        count = _at_least_one(int(chosen.sum()), f"step {step + 1}", "pretraining.batch_size")
        seed_torch(seed, DROPOUT, step * processes() + rank())  # one for every process, as parts of a batch differ
        self.model.train()
        total = self._backward(*(distributed.share(T) for T in (inputs, sequences, chosen)), count)
        rate = linear_rate(step, self.steps, recipe.warmup_steps, recipe.learning_rate)
        last = step - step % recipe.checkpoint_interval  # `step` updates were made before this one
        saved = f"step {last} in {self.checkpoint}" if last else "none"
        where = (
            f"pre-training {self.run.name}, step {step + 1} (training sequences {', '.join(map(str, indices))}; "
            f"last good checkpoint: {saved}): loss {total / count}"
        )
        return total, count, apply_gradients(self.model, self.adamw, rate, recipe.gradient_clipping, where), rate

    def _backward(self, inputs: Tensor, sequences: Tensor, chosen: Tensor, count: int) -> float:
        """Adds the gradient of a batch's mean loss to `grad`, by micro-batches; returns the loss as `advance` does.

        Args:
            inputs, sequences: token ids after and before masking, each [batch, n]; this process's share of the batch.
            chosen: which of them are predicted [batch, n], boolean.
            count: number of masked tokens of the whole batch, over all processes.
        """
        recipe, size = self.run.training, max(len(inputs), 1)  # a small batch may leave a process no row
        if recipe.micro_batch_size:  # it counts packed sequences; of shorter blocks, as many as have the same tokens
            size = recipe.micro_batch_size * self.corpus.train.sequence_length // inputs.shape[1]
        multiple = COMPILED_MULTIPLE if device().type == "cuda" else 1
        parts = list(zip(*(T.split(size) for T in (inputs, sequences, chosen)), strict=True))
        total = torch.zeros((), device=device())
        for i, (part, originals, hidden) in enumerate(parts):
            batch = (part, *sparse_targets(originals, hidden, multiple))
            with distributed.alone(self._loss_of) if i + 1 < len(parts) else nullcontext():  # one exchange of gradients
                batch = [T.to(device(), non_blocking=True) for T in batch]
                for T in batch[1:]:
                    torch._dynamo.maybe_mark_dynamic(T, 0)  # one compiled form for all numbers of masked tokens
                with autocast(recipe.precision):
                    loss = self._loss_of(*batch)
                (loss * (processes() / count)).backward()  # `processes`, because gradients are averaged over them
            total += loss.detach()
        return total.item()


@torch.no_grad()
def validate(model: nn.Module, corpus: Corpus, recipe: Pretraining) -> dict:
    """Evaluates a model on the validation sequences, whose masking is the same for every run and step.

    Processes divide the batches among them. The losses of batches are then added in the order of the batches, so that
    the sum is the one that a single process gets.

    Args:
        model, corpus: the model is set to evaluation mode; the validation split of the corpus is used.
        recipe: of pre-training; its `mask_probability` and `precision` are used.

    Returns:
        validation_loss: mean over the masked tokens, in nats. masked_tokens: their number. Both over all processes.

    Raises:
        ValueError: no token is masked.
    """
    model.eval()
    loss_of = MaskedLMLoss(model)
    generator = torch.Generator().manual_seed(VALIDATION_SEED)
    starts = range(0, len(corpus.validation), VALIDATION_BATCH)
    totals, count = torch.zeros(len(starts), dtype=torch.float64), 0
    for i, start in enumerate(starts):
        indices = np.arange(start, min(start + VALIDATION_BATCH, len(corpus.validation)))
        sequences = torch.from_numpy(corpus.validation[indices])
        inputs, chosen = corpus.masked(sequences, recipe.mask_probability, generator)
        count += int(chosen.sum())
        if i % processes() == rank():  # every process has drawn all masks, so that they are those of a single one
            with autocast(recipe.precision):
                batch = (inputs, *sparse_targets(sequences, chosen))
                totals[i] = loss_of(*(T.to(device()) for T in batch)).double()
    count = _at_least_one(count, "validation", "tokenization.validation_documents")
    return {"validation_loss": distributed.added(totals).sum().item() / count, "masked_tokens": count}


def _at_least_one(masked: int, where: str, more: str) -> int:
    """Returns `masked`. ValueError for 0, with the step's name `where` and `more`, a key of params.yaml to raise."""
    if not masked:
        raise ValueError(f"pre-training, {where}: no token is masked; raise pretraining.mask_probability or {more}")
    return masked
