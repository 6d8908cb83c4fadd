"""Counts what a run would compute anew, by the plans of the stages that train or test models.

A job is new if no result exists for its settings, inputs and code, or if an input will be made anew. A job that `dvc
pull` has brought is restored in data/jobs, as the stage would do.
"""

import gc
import shutil
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

from stages.files.yaml_files import list_values, read_yaml
from stages.runner import gpus, jobs, pipeline
from stages.runner.fingerprints import describe_identity
from stages.runner.job import Job
from stages.runner.results import RESULT
from stages.schema.settings import PATH, Settings
from stages.settings.sources import read_lock

# Stages without and with models, in the order of the pipeline.
DATA_STAGES = ("corpus", "filtering", "tokenization", "tasks", "sentence_pairs")
MODEL_STAGES = (
    "pretraining",
    "finetuning",
    "question_answering",
    "noise",
    "cross_domain",
    "convergence",
    "translation",
)
# A weight is a float32. A model is in data/jobs, in the output of the stage and in DVC's cache.
BYTES_PER_WEIGHT = 4 * 3


class Counter:
    """Counts new jobs in place of workers, which would do the jobs (`jobs.run`).

    Attributes:
        counts: numbers of new jobs and of all jobs, by stage.
        bytes: the disk space of the models that new jobs make.
    """

    def __init__(self, settings: Settings):
        self.counts = {}
        self.bytes = 0
        self._settings = settings
        # paths that will be made anew
        self._stale = find_edited_outputs()

    def __call__(self, function: Callable, planned: list[Job], stage: str) -> jobs.Results:
        """Counts the new jobs of a stage; returns folders, without results."""
        ready = [job for job in planned if self._is_ready(job)]
        # without a ready job, the function's code would be read for nothing
        found = jobs.find_folders(function, describe_identity(function), ready) if ready else []
        # as the stage would, because a model in the folder is an input of other jobs
        for job, folder in zip(ready, found, strict=True):
            jobs.restore(job, folder)
        folders = dict(zip(map(id, ready), found, strict=True))
        new = 0
        for job in planned:
            folder = folders.setdefault(id(job), Path("none"))
            if not all((folder / name).exists() for name in (RESULT, *job.required)):
                new += 1
                self._stale.update(job.external_files.values())
                self.bytes += self._estimate_bytes(job)
        self.counts[stage] = (new, len(planned))
        return [(folders[id(job)], {}) for job in planned]

    def _is_ready(self, job: Job) -> bool:
        places = {place for path in job.inputs for place in (path, *path.parents)}
        return self._stale.isdisjoint(places) and all(path.exists() for path in job.inputs)

    def _estimate_bytes(self, job: Job) -> int:
        """Estimates the size of the models that a job leaves, as models of the reference, the largest operator."""
        if not job.external_files:
            return 0
        model = self._settings.models[job.argument.size]
        rows = self._settings.tokenization.vocabulary_size + model.positions
        weights = model.layers * model.hidden * (4 * model.hidden + 2 * model.intermediate) + rows * model.hidden
        return weights * BYTES_PER_WEIGHT * len({"model", *job.required})


def find_edited_outputs() -> set[Path]:
    """Finds outdated outputs of data stages: the settings differ from dvc.lock, or an input is an outdated output."""
    locked = read_lock()
    params = read_yaml(PATH)
    stale = set()
    for name in DATA_STAGES:
        locked_values = list_values(locked.get(name, {}).get("params", {}).get(str(PATH), {}))
        inputs = map(Path, pipeline.read_pipeline()[name]["deps"])
        if pipeline.select_values(name, params) != locked_values or not stale.isdisjoint(inputs):
            stale.update(pipeline.list_outputs(name))
    return stale


def describe_costs(settings: Settings) -> Iterator[str]:
    """Describes the new jobs of each stage, and warns of too little disk space or a missing GPU."""
    # garbage collections, which many syntax trees trigger, need not visit the libraries
    gc.freeze()
    counter = Counter(settings)
    for stage in MODEL_STAGES:
        import_module(f"stages.{stage}.stage").main(settings.model_copy(update={"workers": counter}))
        new, planned = counter.counts[stage]
        yield f"{stage}: {new} new of {planned} jobs"
    free = shutil.disk_usage(".").free
    if counter.bytes > free:
        yield (
            f"warning: the models of new jobs take about {counter.bytes / 1e9:.0f} GB, {free / 1e9:.0f} GB are free; "
            "free some space, or name fewer operators, seeds or steps"
        )
    if settings.pretraining.precision == "bfloat16" and not gpus.list_visible_gpus():
        yield (
            f"warning: no GPU found here, but scale {settings.scale} computes in bfloat16, which a CPU does slowly; "
            "use a machine with a GPU, or `python -m stages scale laptop`"
        )
