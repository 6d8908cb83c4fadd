"""A user's own operators: classes in one Python file, which params.yaml names as `operators_file`.

A model's configuration has its SHA-256 and not its path, so that no model folder can name code for this process to run.
"""

import hashlib
import importlib.util
from functools import cache
from pathlib import Path

from .base import SelfAttention

_imported: dict[str, dict[str, type[SelfAttention]]] = {}  # by the SHA-256 of a file: its operators by name


def imported(sha256: str, name: str) -> dict[str, type[SelfAttention]]:
    """Returns, by name, the operators of the imported file of this SHA-256; ValueError, with `name`, for any other."""
    if sha256 not in _imported:
        raise ValueError(
            f"the operator `{name}` is a user's own, and a configuration cannot name its code: only a run does, by "
            "`operators_file` of its params.yaml; in Python, where you trust FILE, "
            f'stages.attention.own.own_operators(FILE, "{sha256}") imports it, in a checkout, for whatever is '
            "imported from stages.attention"
        )
    return _imported[sha256]


@cache
def own_operators(path: str, sha256: str) -> dict[str, type[SelfAttention]]:
    """Imports a file, once per process, and returns its operators by name.

    These are the classes derived from SelfAttention that the file itself defines, and that have a `name` of their own.
    path: a relative one starts at the folder of params.yaml, in which every stage runs. sha256: that the file must
    have, hexadecimal, from the settings or a trained model's configuration. ValueError: there is no such file, its
    content is another, or it cannot be imported.
    """
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"{path}: no such file; a model's operator is defined there")
    if hashlib.sha256(file.read_bytes()).hexdigest() != sha256:
        raise ValueError(f"{path} has changed since the model was trained; `dvc repro` trains it again")
    specification = importlib.util.spec_from_file_location("own_operators", file)
    module = importlib.util.module_from_spec(specification)
    try:
        specification.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # the file may do anything when it is imported
        raise ValueError(f"{path}: cannot be imported ({type(error).__name__}: {error}); mend it") from error
    classes = (value for value in vars(module).values() if isinstance(value, type))
    # not classes that the file imports, nor, below, base classes without a name, which are no operators
    operators = [kind for kind in classes if issubclass(kind, SelfAttention) and kind.__module__ == module.__name__]
    _imported[sha256] = {kind.name: kind for kind in operators if "name" in vars(kind)}
    return _imported[sha256]
