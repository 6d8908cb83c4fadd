"""The state of a run in one safetensors file, written whole or not at all.

Parameters and both AdamW moments are tensors; the run's settings, the step and everything logged so far stand in
the file's metadata, with a SHA-256 of all tensors and of this state. With randomness drawn by step (optimisation.py),
that is the whole state: a resumed run goes on bit for bit.
"""

import hashlib
import json
import shutil
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from stages.plumbing.files import temporary_sibling


def save(path: Path, model: torch.nn.Module, adamw: torch.optim.AdamW, run: dict, progress: dict) -> None:
    """Replaces `path` atomically. run: the settings, JSON. progress: JSON, `step` among it. OSError: no space left."""
    tensors = {}
    for name, parameter in model.named_parameters():
        tensors[f"parameter.{name}"] = parameter.detach()
        for key, value in adamw.state[parameter].items():
            tensors[f"optimiser.{name}.{key}"] = value
    state = {"run": json.dumps(run), "progress": json.dumps(progress)}
    with temporary_sibling(path) as temporary:
        try:
            contiguous = {name: tensor.contiguous() for name, tensor in tensors.items()}
            save_file(contiguous, temporary, state | {"sha256": _digest(contiguous, state)})
        except SafetensorError as error:  # which is how the library reports a full disk
            raise OSError(f"{path}: cannot be written ({error})") from None


def load(path: Path, model: torch.nn.Module, adamw: torch.optim.AdamW, run: dict) -> dict | None:
    """Sets model and optimiser to the saved state and gives its progress; of a damaged file None, and says so.

    ValueError for the checkpoint of another run, with both settings.
    """
    try:
        with safe_open(path, framework="pt") as file, torch.no_grad():
            state, tensors = file.metadata(), {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
            if state.pop("sha256") != _digest(tensors, state):
                raise KeyError("its content is not what was saved")
            _refuse_another(path, json.loads(state["run"]), json.loads(json.dumps(run)))
            for name, parameter in model.named_parameters():
                parameter.copy_(tensors[f"parameter.{name}"])
                prefix = f"optimiser.{name}."
                adamw.state[parameter] = {
                    key.removeprefix(prefix): _placed(tensor, parameter)
                    for key, tensor in tensors.items()
                    if key.startswith(prefix)
                }
            return json.loads(state["progress"])
    except (SafetensorError, KeyError, TypeError, AttributeError) as error:
        print(f"{path}: damaged, not a checkpoint of this run ({error}); the run begins anew", flush=True)
        return None


def _digest(tensors: dict[str, torch.Tensor], state: dict[str, str]) -> str:
    """SHA-256 of names, types, shapes and bytes of all tensors, and of the state."""
    hashed = hashlib.sha256(json.dumps(state, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        hashed.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        hashed.update(tensor.cpu().reshape(-1).view(torch.uint8).numpy())
    return hashed.hexdigest()


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
