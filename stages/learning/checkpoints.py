"""The state of a run in one safetensors file, written whole or not at all.

Parameters and both AdamW moments are tensors; the step and everything logged so far stand in the file's metadata. With
randomness drawn by step (learning/optimisation.py), that is the whole state: a resumed run goes on bit for bit.
"""

import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from stages.files import temporary_sibling


def save(path: Path, model: torch.nn.Module, adamw: torch.optim.AdamW, progress: dict) -> None:
    """Replaces `path` atomically. progress: JSON, `step` among it."""
    tensors = {}
    for name, parameter in model.named_parameters():
        tensors[f"parameter.{name}"] = parameter.detach()
        for key, value in adamw.state[parameter].items():
            tensors[f"optimiser.{name}.{key}"] = value
    with temporary_sibling(path) as temporary:
        save_file(
            {name: tensor.contiguous() for name, tensor in tensors.items()},
            temporary,
            {"progress": json.dumps(progress)},
        )


def load(path: Path, model: torch.nn.Module, adamw: torch.optim.AdamW) -> dict:
    """Sets model and optimiser to the saved state and gives its progress. ValueError for a damaged file."""
    try:
        with safe_open(path, framework="pt") as file, torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(file.get_tensor(f"parameter.{name}"))
                keys = [key for key in file.keys() if key.startswith(f"optimiser.{name}.")]  # noqa: SIM118
                adamw.state[parameter] = {
                    key.removeprefix(f"optimiser.{name}."): _placed(file.get_tensor(key), parameter) for key in keys
                }
            return json.loads(file.metadata()["progress"])
    except SafetensorError as error:
        raise ValueError(f"{path}: not a checkpoint of this run ({error}); delete it to begin anew") from None


def _placed(tensor: torch.Tensor, parameter: torch.Tensor) -> torch.Tensor:
    """Fused AdamW wants its step count where the parameter is."""
    return tensor.to(parameter.device)
