"""The masked-LM loss, compiled for a GPU."""

from typing import Any

import torch
from torch import nn

from stages.masked_lm.loss import MaskedLMLoss


def compile_loss(loss_of: MaskedLMLoss) -> nn.Module:
    """Compiles the loss of a model, without the embeddings: the encoder, and the head with the cross-entropy.

    A process can compile at most 128 models; PyTorch raises an error beyond.
    """
    # PyTorch counts the compilations of a function, and all models share the code of `forward`. An error is better than
    # a run that goes on uncompiled.
    torch._dynamo.config.recompile_limit = 128
    torch._dynamo.config.fail_on_recompile_limit_hit = True
    # Compiled, the gradient of the embeddings would be an accumulating `index_put_`, which with deterministic kernels
    # adds the gradients of equal tokens, such as all token types, one after another: a fifth of BERT-base's time on an
    # H100 (reports/examples/h100). So the embeddings of this model stay uncompiled. With several processes, PyTorch
    # splits the parts further, at the points where gradients are exchanged.
    embeddings = loss_of.model.bert.embeddings
    embeddings.forward = torch.compiler.disable(embeddings.forward)
    # Sizes are constants. PyTorch's default turns sizes that change into variables, so that the compiled code, and its
    # rounding, would depend on the runs that the process has trained before.
    compiled: Any = torch.compile(loss_of, dynamic=False)
    return compiled
