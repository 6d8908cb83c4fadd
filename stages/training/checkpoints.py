"""The state of a run in one safetensors file, which is replaced atomically.

Parameters and the state of AdamW (both moments and the number of updates) are tensors; the file's metadata has the
run's settings, its progress with all that it has logged, and a SHA-256 of all tensors and of these two. As randomness
is drawn by step (optimisation.py), that is the entire state: a resumed run continues bit for bit.
"""

import hashlib
import json
from pathlib import Path

import pandas as pd
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from stages.files.storage import delete, temporary_sibling


def save(path: Path, model: torch.nn.Module, adamw: torch.optim.AdamW, run: dict, progress: dict) -> None:
    """Replaces the file of a checkpoint.

    Args:
        path: the file.
        model, adamw: a model, whose parameters are saved, and its optimiser, whose state is saved.
        run, progress: what decides the result; how far the run is and what it has logged. JSON can hold both.

    Raises:
        OSError: the file cannot be written, as on a full disk.
    """
    tensors = {}
    for name, parameter in model.named_parameters():
        tensors[f"parameter.{name}"] = parameter.detach()
        for key, value in adamw.state[parameter].items():
            tensors[f"optimiser.{name}.{key}"] = value
    state = {"run": json.dumps(run), "progress": json.dumps(progress)}
    with temporary_sibling(path) as temporary:
        try:
            contiguous = {name: tensor.contiguous() for name, tensor in tensors.items()}  # the library takes no other
            save_file(contiguous, temporary, state | {"sha256": _digest(contiguous, state)})
        except SafetensorError as error:  # as which the library reports a full disk
            raise OSError(f"{path}: cannot be written ({error})") from None


def load(path: Path, model: torch.nn.Module, adamw: torch.optim.AdamW, run: dict) -> dict | None:
    """Restores model and optimiser.

    Args:
        path: the file, which must exist.
        model, adamw: a model and its optimiser; parameters and state are set to the saved ones.
        run: the settings that the checkpoint must agree with, which JSON can hold.

    Returns:
        The saved progress; None for a damaged file, which is reported on the terminal.

    Raises:
        ValueError: the checkpoint is of a run with other settings; the message lists those that differ.
    """
    try:
        with safe_open(path, framework="pt") as file, torch.no_grad():
            state, tensors = file.metadata(), {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
            if state.pop("sha256") != _digest(tensors, state):
                raise KeyError("its content is not what was saved")
            there, here = json.loads(state["run"]), json.loads(json.dumps(run))  # JSON has lists for tuples
            there, here = (pd.json_normalize(settings).to_dict("records")[0] for settings in (there, here))  # keys a.b
            if differing := [key for key in sorted(there | here) if there.get(key) != here.get(key)]:
                lines = "\n".join(f"  {key}: {there.get(key)} there, {here.get(key)} here" for key in differing)
                raise ValueError(
                    f"{path}: the checkpoint of a run with other settings; delete it to begin anew\n{lines}"
                )
            saved = {name: tensors[f"parameter.{name}"] for name, _ in model.named_parameters()}  # all, or none is set
            for name, parameter in model.named_parameters():
                parameter.copy_(saved[name])
                prefix = f"optimiser.{name}."
                adamw.state[parameter] = {
                    key.removeprefix(prefix): tensor.to(parameter.device)  # the step count, too: AdamW is fused
                    for key, tensor in tensors.items()
                    if key.startswith(prefix)
                }
            return json.loads(state["progress"])
    except (SafetensorError, KeyError, TypeError, AttributeError) as error:
        print(f"{path}: damaged, not a checkpoint of this run ({error}); the run begins anew", flush=True)
        return None


def _digest(tensors: dict[str, torch.Tensor], state: dict[str, str]) -> str:
    """Returns the hexadecimal SHA-256 of the state and of the names, types, shapes and bytes of all tensors."""
    hashed = hashlib.sha256(json.dumps(state, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        hashed.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        hashed.update(tensor.cpu().reshape(-1).view(torch.uint8).numpy())
    return hashed.hexdigest()


def clear(folder: Path) -> None:
    """Deletes what a killed process left half-written in a job's folder and its checkpoints/: names with a dot before.

    The caller holds the lock of the job, so that nobody is writing them.
    """
    for temporary in (*folder.glob(".*"), *folder.glob("checkpoints/.*")):
        delete(temporary)
