"""Weights for the tests of the package `fewer_attention`, which need no package of the pipeline."""

import torch


def move_parameters(module: torch.nn.Module, by: float) -> torch.nn.Module:
    """Moves the parameters of a module away from the initial values, so that no term vanishes."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(by * torch.randn_like(parameter))
    return module
