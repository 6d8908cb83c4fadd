"""The state of a run in a safetensors file, the checkpoint, which is replaced atomically.

The tensors of the file are the parameters and the state of AdamW (both moments and the number of updates). The metadata
holds the settings of the run, the progress with all that was logged, and a SHA-256 of everything. Randomness is drawn
by step (optimisation.py), so a resumed run continues bit for bit. The settings and the progress are JSON.
"""

import hashlib
import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.optim import AdamW

from stages.files.storage import delete_path, make_temporary_sibling
from stages.files.yaml_files import list_values


def save(
    path: Path,
    model: nn.Module,
    adamw: AdamW,
    settings: dict,
    progress: dict,
) -> None:
    """Replaces the file of a checkpoint; OSError if the file cannot be written, as on a full disk.

    `settings` decide the result of the run; `progress` has the step and the log.
    """
    tensors = {}
    for name, parameter in model.named_parameters():
        # The library saves contiguous tensors only.
        tensors[f"parameter.{name}"] = parameter.detach().contiguous()
        for key, value in adamw.state[parameter].items():
            tensors[f"optimiser.{name}.{key}"] = value.contiguous()
    state = {"run": json.dumps(settings), "progress": json.dumps(progress)}
    metadata = {**state, "sha256": _compute_digest(tensors, state)}
    with make_temporary_sibling(path) as temporary:
        try:
            save_file(tensors, temporary, metadata)
        except SafetensorError as error:
            # The library reports a full disk as its own error.
            raise OSError(f"{path}: cannot be written ({error})") from None


def load(
    path: Path,
    model: nn.Module,
    adamw: AdamW,
    settings: dict,
) -> dict | None:
    """Restores model and optimiser from an existing file.

    Returns:
        The saved progress; None for a damaged file, which is reported on the terminal.

    Raises:
        ValueError: The checkpoint belongs to a run with other settings; the message lists the differences.
    """
    try:
        tensors, state = _read_checkpoint(path)
        _require_equal_settings(path, json.loads(state["run"]), settings)
        _restore_state(model, adamw, tensors)
        return json.loads(state["progress"])
    except (SafetensorError, KeyError) as error:
        print(f"{path}: damaged, not a checkpoint of this run ({error}); the run begins anew", flush=True)
        return None


def _read_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Reads the tensors and the JSON texts `run` and `progress`; KeyError if the SHA-256 is another or missing."""
    with safe_open(path, framework="pt") as file:
        state = file.metadata() or {}
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    if state.pop("sha256") != _compute_digest(tensors, state):
        raise KeyError("the content differs from the saved content")
    return tensors, state


def _compute_digest(tensors: dict[str, Tensor], state: dict[str, str]) -> str:
    """Computes the SHA-256 of the content of a checkpoint: the texts `state` and all tensors by name."""
    hashed = hashlib.sha256(json.dumps(state, sort_keys=True).encode())
    # One tensor at a time, because the bytes of all tensors would double the memory.
    for name, tensor in sorted(tensors.items()):
        description = f"{name} {tensor.dtype} {list(tensor.shape)}"
        hashed.update(description.encode())
        # Flat, because a scalar cannot be viewed as bytes.
        flat = tensor.cpu().reshape(-1)
        hashed.update(flat.view(torch.uint8).numpy())
    return hashed.hexdigest()


def _require_equal_settings(path: Path, saved: dict, settings: dict) -> None:
    # by dotted key, such as "training.batch_size"
    there, here = list_values(saved), list_values(settings)
    lines = []
    # every key once, in order
    for key in dict.fromkeys([*here, *there]):
        if there.get(key) != here.get(key):
            lines.append(f"  {key}: {there.get(key)} there, {here.get(key)} here")
    if lines:
        differences = "\n".join(lines)
        raise ValueError(
            f"{path}: the checkpoint belongs to a run with other settings; "
            f"delete the file to begin again\n{differences}"
        )


@torch.no_grad()
def _restore_state(model: nn.Module, adamw: AdamW, tensors: dict[str, Tensor]) -> None:
    """Sets parameters and optimiser to saved tensors; KeyError, with nothing set, if a parameter is missing."""
    saved = {name: tensors[f"parameter.{name}"] for name, _ in model.named_parameters()}
    for name, parameter in model.named_parameters():
        parameter.copy_(saved[name])
        prefix = f"optimiser.{name}."
        state = adamw.state[parameter]
        for key, tensor in tensors.items():
            if key.startswith(prefix):
                # The number of updates, too, goes to the device, because AdamW is fused.
                state[key.removeprefix(prefix)] = tensor.to(parameter.device)


def clear_temporary_files(folder: Path) -> None:
    """Deletes temporary files that a killed process left in the folder of a job whose lock the caller holds."""
    # The names of these files begin with a dot. Because of the lock, no other process is writing the files.
    for temporary in (*folder.glob(".*"), *folder.glob("intermediate_models/.*")):
        delete_path(temporary)
