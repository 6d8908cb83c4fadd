"""The validation loss of pre-training, on the same masked tokens for every run and step."""

import torch
from torch import nn

from stages.masked_lm.batches import require_masked
from stages.masked_lm.corpus import Corpus
from stages.masked_lm.loss import MaskedLMLoss
from stages.masked_lm.masking import list_sparse_targets, mask_tokens
from stages.runner.processes import count_processes, find_rank
from stages.schema.training_sections import Pretraining
from stages.training import distributed
from stages.training.machine import find_device, open_autocast

SEED = 0  # one masking for all runs, so that losses can be compared
BATCH = 64  # sequences


class Validation:
    """The validation sequences, masked and on the device; each process holds a share of the batches.

    `masked` is the number of masked tokens, over all processes. ValueError if no token is masked.
    """

    def __init__(self, corpus: Corpus, recipe: Pretraining):
        self._precision = recipe.precision
        # number of the batch -> arguments of `MaskedLMLoss`
        self._batches = {}
        self.masked = 0
        generator = torch.Generator().manual_seed(SEED)
        batches = torch.from_numpy(corpus.validation[range(len(corpus.validation))]).split(BATCH)
        self._number_of_batches = len(batches)
        for number, sequences in enumerate(batches):
            # Every process draws the masks of all batches, so the masks do not depend on the number of processes.
            inputs, chosen = mask_tokens(sequences, corpus, recipe.mask_probability, generator)
            self.masked += int(chosen.sum())
            if number % count_processes() == find_rank():
                arguments = (inputs, *list_sparse_targets(sequences, chosen))
                self._batches[number] = [tensor.to(find_device()) for tensor in arguments]
        require_masked(self.masked, "validation", "tokenization.validation_documents")

    @torch.no_grad()
    def measure(self, model: nn.Module) -> float:
        """Returns the mean loss over all masked validation tokens, in nats; the model is set to evaluation mode."""
        model.eval()
        loss_of = MaskedLMLoss(model)
        losses = torch.zeros(self._number_of_batches, dtype=torch.float64, device=find_device())
        for number, batch in self._batches.items():
            with open_autocast(self._precision):
                losses[number] = loss_of(*batch).double()
        # `losses` is 0 where another process has the batch. First each entry is summed over the processes, then every
        # process adds the entries in the same order, so the result has the same bits for any number of processes.
        return distributed.sum_on_all(losses).cpu().sum().item() / self.masked
