"""A user's own operators: classes in one Python file, which params.yaml names as `operators_file`.

A model's configuration holds a SHA-256 of the file's code (source.py) and not the path: no model folder can name
code for this process to run.
"""

import runpy
from functools import cache
from pathlib import Path

from .base import SelfAttention
from .source import compute_source_digest

# by the SHA-256 of a file: the file's operators by name
_imported: dict[str, dict[str, type[SelfAttention]]] = {}


def find_imported_operators(sha256: str, name: str) -> dict[str, type[SelfAttention]]:
    """Returns the operator classes, by name, of the file with this SHA-256.

    Raises:
        ValueError: this process has not imported such a file; the message has the operator's `name`.
    """
    if sha256 not in _imported:
        raise ValueError(
            f"the operator `{name}` is a user's own, and a configuration cannot name code to run: only "
            "`operators_file` of a params.yaml does; if you trust the code in FILE, call "
            f'stages.attention.own.import_own_operators(FILE, "{sha256}") in a checkout, then load the model by '
            "stages.attention"
        )
    return _imported[sha256]


@cache
def import_own_operators(path: str, sha256: str) -> dict[str, type[SelfAttention]]:
    """Imports a user's Python file, once per process, and returns the operator classes defined there, by name.

    Args:
        path: relative to the folder of params.yaml, or absolute.
        sha256: hexadecimal SHA-256 that the file's code must have, from the settings or from a model's configuration.

    Raises:
        ValueError: the file is missing, has other code, or cannot be imported.
    """
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"{path}: no such file; put the file that defines the model's operator there")
    if compute_source_digest(file) != sha256:
        raise ValueError(f"{path} has changed since the model was trained; `dvc repro` trains the model again")
    # A user's file may do anything at import, exit included.
    try:
        content = runpy.run_path(str(file), run_name="own_operators")
    except (Exception, SystemExit) as error:
        raise ValueError(f"{path}: cannot be imported ({type(error).__name__}: {error}); correct the file") from error
    operators = {}
    for value in content.values():
        # Classes that the file imports are left out, and so are base classes without a name, which are no operators.
        defined_here = isinstance(value, type) and value.__module__ == "own_operators"
        if defined_here and issubclass(value, SelfAttention) and "name" in vars(value):
            operators[value.name] = value
    _imported[sha256] = operators
    return operators
