"""The fingerprint of a job: a hash over everything that decides the result of the job.

A fingerprint covers the job's content, the input files, the versions of the libraries that compute, and the code: the
job function's file, the files of this repository that the file imports, and so on. Comments and docstrings do not
count. The packages `schema`, `runner` and `files`, which decide no value in a result, are left out.
"""

import ast
import hashlib
import inspect
import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import metadata
from importlib.util import resolve_name
from pathlib import Path

from stages.files.storage import compute_sha256, compute_source_digest, read_once, read_states
from stages.runner.job import Job

# without links, as files of the closure are
ROOT = Path(__file__).resolve().parents[2]
# packages that decide no value in a result
LEFT_OUT = tuple(ROOT / "stages" / package for package in ("schema", "runner", "files"))
# NumPy draws the order of batches; the last three compute scores inside jobs. An upgrade of any may move the last bit.
LIBRARIES = ("tokenizers", "torch", "transformers", "numpy", "scikit-learn", "scipy", "sacrebleu")

# At this import, which in every process that does jobs comes before the import of the jobs' modules. The times are only
# compared with later times of the same files, because the clocks of a machine and of its file server may differ.
STATES = read_states(ROOT / "stages")


def find_closure(source: Path) -> frozenset[Path]:
    """Finds a Python file and all files of this repository that the file needs: imports, their imports, and so on.

    A YAML file beside a module of the same name is part of the module, such as glue.yaml beside glue.py.
    """
    files = set()
    waiting = [source.resolve()]
    while waiting:
        file = waiting.pop()
        if file not in files:
            files.add(file)
            waiting += find_imported_files(file)
    yaml_files = [file.with_suffix(".yaml") for file in files]
    return frozenset(files.union(file for file in yaml_files if file.exists()))


@cache
def find_imported_files(source: Path) -> frozenset[Path]:
    """Finds the files of this repository that a Python file itself imports, at the top or inside functions."""
    files = set()
    for module in list_imports(source):
        parts = module.split(".")
        # stages.runner.job -> ROOT/stages/runner/job.py
        file = ROOT.joinpath(*parts).with_suffix(".py")
        # imported functions, classes and packages have no such file; LEFT_OUT are packages that decide no result
        if parts[0] == "stages" and file.exists() and file.parent not in LEFT_OUT:
            files.add(file)
    return frozenset(files)


def list_imports(source: Path) -> Iterator[str]:
    """Yields the dotted names of all modules, functions and classes that a Python file imports, as absolute names."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # `from . import NAME` has no module
            module = node.module or ""
            # level is the number of dots of a relative import
            if node.level:
                package = ".".join(source.parent.relative_to(ROOT).parts)
                module = resolve_name("." * node.level + module, package)
            # `from a import b` may import `a` or the module `a.b`
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def list_modules(source: Path) -> list[str]:
    """Lists the dotted names, sorted, of a Python file and of all modules of this repository that the file needs."""
    names = []
    for file in sorted(find_closure(source)):
        # tests have code outside this repository
        if file.suffix == ".py" and file.is_relative_to(ROOT):
            names.append(".".join(file.relative_to(ROOT).with_suffix("").parts))
    return names


def compute_code_digest(source: Path, as_loaded: bool = False) -> str:
    """Computes a SHA-256 over the names and code of all files of `find_closure`.

    `as_loaded` asks for the code that this process has imported: if a file has changed since, the digest is that of no
    version.
    """
    digest_of = _digest_loaded_file if as_loaded else _digest_file
    hashed = hashlib.sha256()
    for file in sorted(find_closure(source)):
        # tests have code outside this repository
        name = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file.name
        hashed.update(f"{name} {digest_of(file)}\n".encode())
    return hashed.hexdigest()


# the functions of several stages share most files
_digest_file = read_once(512)(compute_source_digest)


@cache
def _digest_loaded_file(file: Path) -> str:
    # STATES has size and time of every file when this process started. If a file has changed since, nobody knows which
    # version the process has imported, so the mark makes the digest differ from the digest of any version. Cached,
    # because changes after the first call do not concern the process.
    now = read_states(file)[file]
    mark = "" if STATES.get(file, now) == now else " changed"
    return compute_source_digest(file) + mark


def compute_fingerprints(identity: list, jobs: list[Job]) -> list[str]:
    """Computes the fingerprints of jobs: 32 hexadecimal digits of a SHA-256 each, in order.

    `identity` is `describe_identity` of the job function. FileNotFoundError names a missing input.
    """
    # jobs share inputs, and each input is hashed once
    inputs = {path for job in jobs for path in job.inputs}
    for path in sorted(inputs):
        if not path.exists():
            raise FileNotFoundError(f"{path}: not made with these settings; run `dvc repro` to make the missing files")
    with ThreadPoolExecutor() as threads:
        digest_of = dict(zip(inputs, threads.map(compute_sha256, inputs), strict=True))
    fingerprints = []
    for job in jobs:
        input_digests = [[os.path.relpath(path), digest_of[path]] for path in job.inputs]
        text = json.dumps([identity, job.content, input_digests], sort_keys=True)
        fingerprints.append(hashlib.sha256(text.encode()).hexdigest()[:32])
    return fingerprints


def describe_identity(function: Callable, as_loaded: bool = False) -> list:
    """Returns name, code digest (`compute_code_digest`) and library versions of a job function."""
    versions = {library: metadata.version(library) for library in LIBRARIES}
    return [function.__qualname__, compute_code_digest(Path(inspect.getfile(function)), as_loaded), versions]
