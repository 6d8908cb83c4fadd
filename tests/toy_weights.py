"""Weights for the tests of the package `fewer_attention`, which need no package of the pipeline."""

from typing import TypeVar

import torch

Module = TypeVar("Module", bound=torch.nn.Module)


def move_parameters(module: Module, by: float) -> Module:
    """Moves the parameters of a module away from the initial values, so that no term vanishes."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(by * torch.randn_like(parameter))
    return module
