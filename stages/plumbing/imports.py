"""What code a module runs: the files of this repository that it imports, and those that they import.

The fingerprint of a job covers this closure, and a test derives the folders that dvc.yaml names from it. The plumbing
is left out: it checks, schedules and writes, and no value in a result comes from it.
"""

import ast
import hashlib
from functools import cache
from pathlib import Path

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
    for node in ast.walk(_tree(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            above = source.relative_to(ROOT).parts[: -node.level] if node.level else ()
            module = ".".join((*above, node.module))
            modules |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    files = {file for module in modules if module.split(".")[0] == "stages" and (file := _file_of(module))}
    return frozenset(file for file in files if file.parent != PLUMBING)


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
    content = _first_content if as_loaded else _content
    hashed = hashlib.sha256()
    for file in sorted(closure(source)):
        name = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file.name
        hashed.update(f"{name} {content(file)}\n".encode())
    return hashed.hexdigest()


def _content(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


_first_content = cache(_content)


@cache
def _tree(source: Path) -> ast.Module:
    return ast.parse(source.read_text(encoding="utf-8"))


def _file_of(module: str) -> Path | None:
    """The file of a module of this repository; None for a name that is no module, or a package."""
    path = ROOT.joinpath(*module.split(".")).with_suffix(".py")
    return path if path.exists() else None
