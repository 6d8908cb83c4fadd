"""What code a module runs: the files of this repository that it imports, and those that they import.

The fingerprint of a job covers this closure, and a test derives the folders that dvc.yaml names from it. The plumbing
is left out: it checks, schedules and writes, and no value in a result comes from it.
"""

import ast
import hashlib
from functools import cache
from pathlib import Path

from stages.plumbing.files import sha256

ROOT = Path(__file__).parents[2]
PLUMBING = Path(__file__).parent


def closure(source: Path) -> frozenset[Path]:
    """Finds every file of this repository that `source` runs, itself included.

    Args:
        source: a Python file of this repository.

    Returns:
        Python files, and the YAML files that lie beside a module under its name and are part of it.
    """
    files, added = set(), {source.resolve()}
    while added:
        files |= added
        added = {file for python in added for file in imported(python)} - files
    data = {file.with_suffix(".yaml") for file in files}
    return frozenset(files | {file for file in data if file.exists()})


@cache
def imported(source: Path) -> frozenset[Path]:
    """Finds the files of this repository that `source` imports itself, at its top or inside its functions."""
    modules = set()
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            above = source.relative_to(ROOT).parts[: -node.level] if node.level else ()
            module = ".".join((*above, node.module))
            modules |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    names = (module.split(".") for module in modules)
    files = (ROOT.joinpath(*name).with_suffix(".py") for name in names if name[0] == "stages")
    return frozenset(file for file in files if file.exists() and file.parent != PLUMBING)  # no file: no module


def modules(source: Path) -> list[str]:
    """Names the modules of this repository that `source` runs, as `import` takes them, itself included."""
    files = sorted(file for file in closure(source) if file.suffix == ".py" and file.is_relative_to(ROOT))
    return [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files]


def digest(source: Path, as_loaded: bool = False) -> str:
    """Computes one SHA-256 over the names and contents of the closure of `source`.

    Args:
        source: a Python file of this repository.
        as_loaded: take every file as this process first met it, which is about when it imported it.
    """
    content = _first_digest if as_loaded else sha256
    hashed = hashlib.sha256()
    for file in sorted(closure(source)):
        name = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file.name
        hashed.update(f"{name} {content(file)}\n".encode())
    return hashed.hexdigest()


_first_digest = cache(sha256)
