"""A user's own operators: classes in one Python file, which params.yaml names as `operators_file`.

A model's configuration holds the SHA-256 of the file and not the path, so that no model folder can name code for this
process to run.
"""

import hashlib
import importlib.util
from functools import cache
from pathlib import Path

from .base import SelfAttention

# by the SHA-256 of a file: the file's operators by name
_imported: dict[str, dict[str, type[SelfAttention]]] = {}


def find_imported_operators(sha256: str, name: str) -> dict[str, type[SelfAttention]]:
    """Returns, by name, the operators of the imported file of this SHA-256; ValueError, with `name`, for any other."""
    if sha256 not in _imported:
        raise ValueError(
            f"the operator `{name}` is a user's own, and a configuration cannot name its code: only a run does, by "
            "`operators_file` of its params.yaml; in Python, where you trust FILE, "
            f'stages.attention.own.import_own_operators(FILE, "{sha256}") imports it, in a checkout, for whatever is '
            "imported from stages.attention"
        )
    return _imported[sha256]


@cache
def import_own_operators(path: str, sha256: str) -> dict[str, type[SelfAttention]]:
    """Imports a file, once per process, and returns the operators that the file itself defines, by name.

    Args:
        path: of the file; a relative path starts at the folder of params.yaml, in which every stage runs.
        sha256: hexadecimal hash that the file must have, from the settings or a trained model's configuration.

    Raises:
        ValueError: the file is missing, has another hash, or cannot be imported.
    """
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"{path}: no such file; a model's operator is defined there")
    if hashlib.sha256(file.read_bytes()).hexdigest() != sha256:
        raise ValueError(f"{path} has changed since the model was trained; `dvc repro` trains it again")
    specification = importlib.util.spec_from_file_location("own_operators", file)
    module = importlib.util.module_from_spec(specification)
    # A user's file may do anything at import, exit included.
    try:
        specification.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise ValueError(f"{path}: cannot be imported ({type(error).__name__}: {error}); correct the file") from error
    operators = {}
    for value in vars(module).values():
        # Classes that the file imports are left out, and so are base classes without a name, which are no operators.
        defined_here = isinstance(value, type) and value.__module__ == module.__name__
        if defined_here and issubclass(value, SelfAttention) and "name" in vars(value):
            operators[value.name] = value
    _imported[sha256] = operators
    return operators
