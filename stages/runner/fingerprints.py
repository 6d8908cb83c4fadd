"""The fingerprint of a job: one hash over everything that decides its result.

It covers the job's settings, its input files, the versions of the libraries that compute, and the closure of its code:
the files of this repository that the function's module imports, those that they import, and so on. A test derives the
folders that dvc.yaml names from the same closure. The packages `schema`, `runner` and `files` are
left out: they check, schedule and write, and no value in a result comes from them.
"""

import ast
import hashlib
import inspect
import json
import os
from collections.abc import Callable, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path

from stages.files.storage import digests, sha256

ROOT = Path(__file__).parents[2]
LEFT_OUT = tuple(ROOT / "stages" / room for room in ("schema", "runner", "files"))
# NumPy draws the order of batches; the last three compute scores inside jobs. An upgrade of any may move the last bit.
LIBRARIES = ("tokenizers", "torch", "transformers", "numpy", "scikit-learn", "scipy", "sacrebleu")


def closure(source: Path) -> frozenset[Path]:
    """Finds the files of this repository that `source` imports, directly or through others, itself included.

    A YAML file that lies next to a module and has its name counts as a part of the module.
    """
    files, added = set(), {source.resolve()}
    while added:
        files |= added
        added = {file for python in added for file in imported(python)} - files
    data = {file.with_suffix(".yaml") for file in files}
    return frozenset(files | {file for file in data if file.exists()})


@cache
def imported(source: Path) -> frozenset[Path]:
    """Finds the files of this repository that `source` itself imports, at its top or inside its functions.

    LEFT_OUT and the `__init__.py` of packages are left out; a test sees to it that nobody takes a name from these.
    """
    modules = set()
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            above = source.relative_to(ROOT).parts[: -node.level] if node.level else ()  # level: number of dots
            module = ".".join(filter(None, (*above, node.module)))  # `from . import NAME` has none
            modules |= {module, *(f"{module}.{alias.name}" for alias in node.names)}  # the name may be a module
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    names = (module.split(".") for module in modules)
    files = (ROOT.joinpath(*name).with_suffix(".py") for name in names if name[0] == "stages")
    return frozenset(file for file in files if file.exists() and file.parent not in LEFT_OUT)  # no file: not a module


def modules(source: Path) -> list[str]:
    """Returns the dotted names, sorted, of this repository's modules in the closure of `source`, itself among them."""
    files = sorted(file for file in closure(source) if file.suffix == ".py" and file.is_relative_to(ROOT))
    return [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files]


def code_digest(source: Path, as_loaded: bool = False) -> str:
    """Computes one SHA-256 over the names and contents of the closure of `source`.

    as_loaded: take every file as this process first hashed it, about when it imported it, and not as it is now.
    """
    content = _first_digest if as_loaded else sha256
    hashed = hashlib.sha256()
    for file in sorted(closure(source)):
        name = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file.name  # code from elsewhere, as of tests
        hashed.update(f"{name} {content(file)}\n".encode())
    return hashed.hexdigest()


_first_digest = cache(sha256)


def of_jobs(function: Callable, jobs: Sequence[tuple[dict, tuple[Path, ...]]]) -> list[str]:
    """Computes the fingerprints of jobs that call `function`: 32 hexadecimal digits of a SHA-256 each, in their order.

    jobs: for each its settings (JSON), and its input files and folders, which count by their content and by their path
    relative to the working directory. FileNotFoundError, with its name, for an input that is not there.
    """
    digest_of = digests({path for _, inputs in jobs for path in inputs})  # jobs share inputs
    if missing := sorted(path for path, digest in digest_of.items() if digest is None):
        raise FileNotFoundError(f"{missing[0]}: not made with these settings; `dvc repro` makes what is missing")
    computed_by = identity(function)

    def fingerprint(settings: dict, inputs: tuple[Path, ...]) -> str:
        content = [computed_by, settings, [[os.path.relpath(path), digest_of[path]] for path in inputs]]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]

    return [fingerprint(settings, inputs) for settings, inputs in jobs]


def identity(function: Callable, as_loaded: bool = False) -> list:
    """Returns what decides the result of a function in addition to its arguments.

    In order: its qualified name, its `code_digest`, which takes `as_loaded`, and the versions of LIBRARIES by name.
    """
    versions = {library: metadata.version(library) for library in LIBRARIES}
    return [function.__qualname__, code_digest(Path(inspect.getfile(function)), as_loaded), versions]
