"""The fingerprint of a job: what decides its result, in one number.

It covers the job's settings, its input files, all code that its function imports (imports.py) and the versions of the
libraries that compute.
"""

import hashlib
import inspect
import json
import os
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path

from stages.plumbing import imports
from stages.plumbing.files import digests

# NumPy draws the order of batches; the last three compute scores inside jobs. An upgrade of any may move the last bit.
LIBRARIES = ("tokenizers", "torch", "transformers", "numpy", "scikit-learn", "scipy", "sacrebleu")


def of_jobs(function: Callable, jobs: Sequence[tuple[dict, tuple[Path, ...]]]) -> list[str]:
    """Computes the fingerprints of jobs that call one function.

    Args:
        function: what the jobs call.
        jobs: the settings (JSON) and the input files and folders of each.

    Returns:
        32 hexadecimal digits for each job.

    Raises:
        FileNotFoundError: an input is not there; the message names it.
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
    """Names what decides the result of a function beside its arguments: its code and the libraries' versions.

    Args:
        function: a function of this repository.
        as_loaded: take every file of its code as this process first met it.
    """
    versions = {library: metadata.version(library) for library in LIBRARIES}
    return [function.__qualname__, imports.digest(Path(inspect.getfile(function)), as_loaded), versions]
