"""The masked-LM loss, compiled for a GPU."""

import torch
from torch import nn

from stages.masked_lm.loss import MaskedLMLoss

RECOMPILATIONS = 128  # compiled models of one process; torch counts them together, because one code serves all


def compile_loss(loss_of: MaskedLMLoss) -> nn.Module:
    """Compiles the loss of a model as two graphs: the encoder, and the head with the cross-entropy.

    With several processes, PyTorch cuts these graphs further, at the groups of gradients that are exchanged together.

    The embeddings stay outside. Inside a graph, their gradient would be an accumulating `index_put_`, which with
    deterministic kernels adds the gradients of equal tokens, such as all token types, one after another: a fifth of the
    time of BERT-base on an H100 (reports/examples/h100).

    All sizes are compiled as constants. With PyTorch's default, sizes that have changed become variables, so that the
    graph of a run, and its rounding, would depend on the runs that the process has trained before.
    """
    torch._dynamo.config.recompile_limit = RECOMPILATIONS
    # An error is better than a run that goes on uncompiled.
    torch._dynamo.config.fail_on_recompile_limit_hit = True
    embeddings = loss_of.model.bert.embeddings
    embeddings.forward = torch.compiler.disable(embeddings.forward)
    return torch.compile(loss_of, dynamic=False)
