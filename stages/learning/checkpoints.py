"""The state of a run in one safetensors file, written whole or not at all.

Parameters and both AdamW moments are tensors; the run's settings, the step and everything logged so far stand in
the file's metadata. With randomness drawn by step (learning/optimisation.py), that is the whole state: a resumed run
goes on bit for bit.
"""

import json
import shutil
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from stages.files import temporary_sibling


def save(path: Path, model: torch.nn.Module, adamw: torch.optim.AdamW, run: dict, progress: dict) -> None:
    """Replaces `path` atomically. run: the settings, JSON. progress: JSON, `step` among it."""
    tensors = {}
    for name, parameter in model.named_parameters():
        tensors[f"parameter.{name}"] = parameter.detach()
        for key, value in adamw.state[parameter].items():
            tensors[f"optimiser.{name}.{key}"] = value
    with temporary_sibling(path) as temporary:
        save_file(
            {name: tensor.contiguous() for name, tensor in tensors.items()},
            temporary,
            {"run": json.dumps(run), "progress": json.dumps(progress)},
        )


def load(path: Path, model: torch.nn.Module, adamw: torch.optim.AdamW, run: dict) -> dict:
    """Sets model and optimiser to the saved state and gives its progress.

    ValueError for a damaged file, and for the checkpoint of another run, with both settings.
    """
    try:
        with safe_open(path, framework="pt") as file, torch.no_grad():
            metadata = file.metadata()
            _refuse_another(path, json.loads(metadata["run"]), json.loads(json.dumps(run)))
            for name, parameter in model.named_parameters():
                parameter.copy_(file.get_tensor(f"parameter.{name}"))
                keys = [key for key in file.keys() if key.startswith(f"optimiser.{name}.")]  # noqa: SIM118
                adamw.state[parameter] = {
                    key.removeprefix(f"optimiser.{name}."): _placed(file.get_tensor(key), parameter) for key in keys
                }
            return json.loads(metadata["progress"])
    except (SafetensorError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: not a checkpoint of this run ({error}); delete it to begin anew") from None


def clear(folder: Path) -> None:
    """Deletes what a process has left below `folder` that was killed while it wrote there."""
    for temporary in (*folder.glob(".*"), *folder.glob("checkpoints/.*")):
        if temporary.is_dir():
            shutil.rmtree(temporary)
        else:
            temporary.unlink()


def _refuse_another(path: Path, saved: dict, run: dict) -> None:
    saved, run = dict(_flat(saved)), dict(_flat(run))
    differing = [key for key in sorted(saved | run) if saved.get(key) != run.get(key)]
    if differing:
        lines = "\n".join(f"  {key}: {saved.get(key)} there, {run.get(key)} here" for key in differing)
        raise ValueError(f"{path}: the checkpoint of a run with other settings; delete it to begin anew\n{lines}")


def _flat(settings: dict, prefix: str = ""):
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _placed(tensor: torch.Tensor, parameter: torch.Tensor) -> torch.Tensor:
    """Fused AdamW wants its step count where the parameter is."""
    return tensor.to(parameter.device)
