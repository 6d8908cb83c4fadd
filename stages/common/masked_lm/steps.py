"""One run of masked-LM training in its parts: the model, the loss, one update, the validation loss.

The batches, their order and their masks follow from the seed alone, so every operator sees the same data.
"""

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from stages.common.attention.bert import OperatorBertForMaskedLM
from stages.common.attention.configuration import configuration
from stages.common.masked_lm.corpus import Corpus, batch_indices
from stages.common.masked_lm.masking import MaskedLMLoss, sparse_targets
from stages.common.training import distributed
from stages.common.training.optimisation import (
    DROPOUT,
    INITIALISATION,
    MASKING,
    apply_gradients,
    autocast,
    derived_seed,
    device,
    linear_rate,
    seed_torch,
)
from stages.plumbing.jobs import processes, rank

VALIDATION_SEED = 0  # one masking of the validation sequences for every run, so that losses compare
VALIDATION_BATCH = 64  # sequences
COMPILED_MULTIPLE = 64  # to which masked tokens are padded on a GPU, for products of aligned sizes
RECOMPILATIONS = 128  # models that one process may compile: all operators at all sizes share the code of the loss


def length(settings: dict, sequences: int) -> int:
    """Updates of a run. ValueError where its warm-up is longer."""
    steps = settings["steps"] or -(-settings["epochs"] * sequences // settings["batch_size"])
    if settings["warmup_steps"] >= steps:
        raise ValueError(
            f"pretraining.warmup_steps: {settings['warmup_steps']} leaves nothing of the {steps} steps that "
            f"{settings['epochs']} epochs of {sequences} sequences are"
        )
    return steps


def sequence_length(settings: dict, step: int, steps: int, longest: int) -> int:
    """Tokens of the sequences that an update trains on: short ones first, where the recipe has a warm-up of the length.

    Attention over n tokens that is still uniform dilutes what one neighbour tells to one part in n, so that a model
    learns to attend sooner from short sequences. Devlin et al. 2018 (appendix A.2) trained nine tenths of the steps on
    128 tokens, the rest on 512; Nagatsuka et al. 2021 made the length a curriculum.

    Args:
        settings: a record of `pretraining`.
        step: of the update, from 0.
        steps: of the whole run.
        longest: tokens of a packed sequence, a multiple of the length of the warm-up.
    """
    warmup = settings["sequence_length_warmup"]
    return warmup["length"] if warmup and step < round(warmup["share"] * steps) else longest


def built(run: dict, vocabulary_size: int) -> OperatorBertForMaskedLM:
    """The model of a pre-training job, with new weights drawn from its seed.

    Args:
        run: the settings of the job: variant, model, training and seed.
        vocabulary_size: word pieces.
    """
    seed_torch(run["seed"], INITIALISATION)
    return OperatorBertForMaskedLM(
        configuration(
            **run["variant"],
            **run["model"],
            vocab_size=vocabulary_size,
            initializer_range=run["training"]["initializer_range"],
            hidden_dropout_prob=run["training"]["hidden_dropout"],
            attention_probs_dropout_prob=run["training"]["attention_dropout"],
        )
    )


def ready(model: nn.Module) -> nn.Module:
    """The loss of the model, compiled where that pays (on a GPU), its gradients averaged over the processes."""
    loss_of = MaskedLMLoss(model)
    if device().type == "cuda":
        torch._dynamo.config.recompile_limit = RECOMPILATIONS
        torch._dynamo.config.fail_on_recompile_limit_hit = True  # rather than go on uncompiled
        loss_of = torch.compile(loss_of)
    return distributed.replicated(loss_of)


def advance(
    loss_of: nn.Module, model: nn.Module, adamw, step: int, steps: int, run: dict, corpus: Corpus, path: Path
) -> tuple[float, int, float, float]:
    """One update; gives this process's summed loss, the masked tokens of the whole batch, gradient norm and rate."""
    settings, seed = run["training"], run["seed"]
    indices = batch_indices(seed, step, settings["batch_size"], len(corpus.train))
    sequences = torch.from_numpy(corpus.train[indices])
    longest = sequences.shape[1]
    # blocks of a packed sequence in place of the sequence: at every length an update sees the same number of tokens
    sequences = sequences.view(-1, sequence_length(settings, step, steps, longest))
    generator = torch.Generator().manual_seed(derived_seed(seed, MASKING, step))
    inputs, chosen = corpus.masked(sequences, settings["mask_probability"], generator)
    count = _at_least_one(int(chosen.sum()), f"step {step + 1}", "pretraining.batch_size")
    seed_torch(seed, DROPOUT, step * processes() + rank())
    model.train()
    parts = (distributed.share(T) for T in (inputs, sequences, chosen))
    total = _backward(loss_of, *parts, count, settings, longest)
    rate = linear_rate(step, steps, settings["warmup_steps"], settings["learning_rate"])
    last = step - step % settings["checkpoint_interval"]
    saved = f"step {last} in {path}" if last else "none"
    where = (
        f"pre-training {run['operator']} seed {seed}, step {step + 1} (training sequences {_listed(indices)}; last "
        f"good checkpoint: {saved}): loss {total / count}"
    )
    norm = apply_gradients(model, adamw, rate, settings["gradient_clipping"], where)
    return total, count, norm, rate


def _backward(
    loss_of, inputs: Tensor, sequences: Tensor, chosen: Tensor, count: int, settings: dict, longest: int
) -> float:
    """Adds the gradient of the loss a token of the whole batch, one micro-batch after another; gives the summed loss.

    count: masked tokens of the whole batch, over all processes. longest: tokens of a packed sequence. Gradients are
    averaged over processes, hence the factor; only the last micro-batch exchanges them.
    """
    size = max(len(inputs), 1)
    if settings["micro_batch_size"]:  # counts packed sequences: of their blocks, a device takes as many tokens
        size = settings["micro_batch_size"] * longest // inputs.shape[1]
    multiple = COMPILED_MULTIPLE if device().type == "cuda" else 1
    parts = list(zip(*(T.split(size) for T in (inputs, sequences, chosen)), strict=True))
    total = torch.zeros((), device=device())
    for i, (part, originals, hidden) in enumerate(parts):
        batch = (part, *sparse_targets(originals, hidden, multiple))
        with distributed.alone(loss_of) if i + 1 < len(parts) else nullcontext():
            batch = [T.to(device(), non_blocking=True) for T in batch]
            for T in batch[1:]:
                torch._dynamo.maybe_mark_dynamic(T, 0)  # one compiled form for all numbers of masked tokens
            with autocast(settings["precision"]):
                loss = loss_of(*batch)
            (loss * (processes() / count)).backward()
        total += loss.detach()
    return total.item()


@torch.no_grad()
def validate(model: nn.Module, corpus: Corpus, settings: dict) -> dict:
    """Mean loss over all masked tokens of the validation sequences, under their one fixed masking.

    Processes share the batches; their losses are added in one order, so that their number does not change the sum.
    """
    model.eval()
    loss_of = MaskedLMLoss(model)
    generator = torch.Generator().manual_seed(VALIDATION_SEED)
    starts = range(0, len(corpus.validation), VALIDATION_BATCH)
    totals, count = torch.zeros(len(starts), dtype=torch.float64), 0
    for i, start in enumerate(starts):
        indices = np.arange(start, min(start + VALIDATION_BATCH, len(corpus.validation)))
        sequences = torch.from_numpy(corpus.validation[indices])
        inputs, chosen = corpus.masked(sequences, settings["mask_probability"], generator)
        count += int(chosen.sum())
        if i % processes() == rank():
            with autocast(settings["precision"]):
                batch = (inputs, *sparse_targets(sequences, chosen))
                totals[i] = loss_of(*(T.to(device()) for T in batch)).double()
    count = _at_least_one(count, "validation", "tokenization.validation_documents")
    return {"validation_loss": distributed.added(totals).sum().item() / count, "masked_tokens": count}


def _at_least_one(masked: int, where: str, more: str) -> int:
    """The number of masked tokens. ValueError when there is none, for a loss has no mean then. more: a key to raise."""
    if not masked:
        raise ValueError(f"pre-training, {where}: no token is masked; raise pretraining.mask_probability or {more}")
    return masked


def _listed(indices: np.ndarray) -> str:
    return ", ".join(map(str, indices))
