"""Runs a list of independent jobs on all cores, each at most once.

A finished job leaves `result.json` in data/jobs/STAGE/FINGERPRINT/. The fingerprint covers the job's settings, its
input files and the source code that computes it, so a killed or edited stage redoes only what changed. The folder is
the job's own: it may keep checkpoints there and go on from them. data/jobs can be deleted at any time.
"""

import hashlib
import json
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import joblib
from tqdm import tqdm

from stages.files import sha256, write_atomically

FOLDER = Path("data/jobs")


@dataclass(frozen=True)
class Job:
    """name: what progress and errors call it. settings: JSON; all that decides the result beside the inputs.

    inputs: files and folders whose content decides the result, the job's source code among them.
    """

    name: str
    settings: dict
    inputs: tuple[Path, ...]


def run(
    function: Callable[[dict, Path], dict], jobs: list[Job], stage: str, workers: int | None = None
) -> list[tuple[Path, dict]]:
    """Calls `function(settings, folder)` for every job that has no result yet; gives (folder, result) for all.

    `function` returns JSON; it imports heavy libraries in its own body, so that only the workers pay for them. Every
    worker computes with one thread, so a result does not depend on how many run beside it. workers: None takes every
    core.
    RuntimeError when jobs fail: raised at the end, with all failures, after the others are done.
    """
    fingerprints = _fingerprints(function, jobs)
    folders = [FOLDER / stage / fingerprint for fingerprint in fingerprints]
    missing = [i for i, folder in enumerate(folders) if not (folder / "result.json").exists()]
    print(f"{stage}: {len(jobs)} jobs, {len(jobs) - len(missing)} of them done before", flush=True)
    with tqdm(total=len(jobs), initial=len(jobs) - len(missing), desc=stage, unit="job", disable=None) as bar:
        failures = []
        for name, error in _compute(function, [(jobs[i], folders[i]) for i in missing], workers):
            bar.update()
            bar.set_postfix_str(name)
            if error:
                failures.append(f"{name}\n{error}")
    if failures:
        raise RuntimeError(
            f"{stage}: {len(failures)} of {len(jobs)} jobs failed; the others are done and kept.\n"
            + "\n".join(failures)
        )
    return [(folder, json.loads((folder / "result.json").read_text())) for folder in folders]


def _compute(function: Callable, work: list[tuple[Job, Path]], workers: int | None):
    """Yields (name, error or None) as jobs end, in any order."""
    if not work:
        return
    count = min(workers or joblib.cpu_count(), len(work))
    with joblib.parallel_config(backend="loky", n_jobs=count, inner_max_num_threads=1):
        parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1)
        yield from parallel(joblib.delayed(_one)(function, job, folder.resolve(), Path.cwd()) for job, folder in work)


def _one(function: Callable, job: Job, folder: Path, directory: Path) -> tuple[str, str | None]:
    os.chdir(directory)  # worker processes outlive a run and stay where they were started
    folder.mkdir(parents=True, exist_ok=True)
    try:
        result = function(job.settings, folder)
    except (ValueError, OSError) as error:  # what the user can mend; reported with all the others by `run`
        return job.name, f"  {error}"
    except Exception:
        return job.name, traceback.format_exc()
    description = {"name": job.name, "settings": job.settings}
    write_atomically(folder / "job.json", json.dumps(description, indent=1, sort_keys=True))
    write_atomically(folder / "result.json", json.dumps(result, sort_keys=True))
    return job.name, None


def _fingerprints(function: Callable, jobs: list[Job]) -> list[str]:
    digest = cache(sha256)  # jobs share inputs
    source = Path(sys.modules[function.__module__].__file__)
    identity = f"{source.stem}.{function.__qualname__} {digest(source)}"
    return [
        hashlib.sha256(
            json.dumps(
                [identity, job.settings, [[os.path.relpath(path), digest(path)] for path in job.inputs]],
                sort_keys=True,
            ).encode()
        ).hexdigest()[:32]
        for job in jobs
    ]
