"""Counts what a run would compute anew, by the plans of the stages that train or test models.

A job is new if no result exists for its settings, inputs and code, or if an input will be made anew.
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
# A weight is a float32, 4 bytes, in three copies: in data/jobs, in the output of the stage and in DVC's cache.
BYTES_PER_WEIGHT = 12


class Counter:
    """Counts new jobs: `jobs.run` calls the counter in place of workers, so that no job is done.

    Attributes:
        counts: numbers of new jobs and of all jobs, by stage.
        bytes: the disk space of the models that new jobs make.
    """

    def __init__(self, settings: Settings):
        self.counts = {}
        self.bytes = 0
        self._settings = settings
        # paths that will be made anew
        self._outdated = find_outdated_outputs()

    def __call__(self, function: Callable, planned: list[Job], stage: str) -> jobs.Results:
        """Counts the new jobs of a stage; returns the folder of each planned job, and an empty result."""
        ready = [job for job in planned if self._is_ready(job)]
        # `describe_identity` reads all code of the job function, which takes time
        found = jobs.find_folders(function, describe_identity(function), ready) if ready else []
        folders = {}
        for job, folder in zip(ready, found, strict=True):
            # as the stage would: a result that `dvc pull` has brought is no new job, and later jobs read its models
            jobs.restore(job, folder)
            folders[id(job)] = folder
        new = 0
        outcomes = []
        for job in planned:
            # a job that is not ready gets a path that does not exist, so the job is new
            folder = folders.get(id(job), Path("none"))
            outcomes.append((folder, {}))
            if not all((folder / name).exists() for name in (RESULT, *job.required)):
                new += 1
                self._outdated.update(job.external_files.values())
                self.bytes += self._estimate_bytes(job)
        self.counts[stage] = (new, len(planned))
        return outcomes

    def _is_ready(self, job: Job) -> bool:
        """Returns whether all inputs of a job exist, and none will be made anew."""
        # an input is outdated, too, if a folder around the input is
        paths = {path for file in job.inputs for path in (file, *file.parents)}
        return self._outdated.isdisjoint(paths) and all(file.exists() for file in job.inputs)

    def _estimate_bytes(self, job: Job) -> int:
        """Estimates the size of the models that a job leaves, as if the operator were `original`."""
        if not job.external_files:
            return 0
        model = self._settings.models[job.argument.size]
        # four projections of the attention, and two linear maps of the feed-forward network
        layer = model.hidden * (4 * model.hidden + 2 * model.intermediate)
        embeddings = model.hidden * (self._settings.tokenization.vocabulary_size + model.positions)
        # the final model, and models after certain steps
        models = {"model", *job.required}
        return len(models) * (model.layers * layer + embeddings) * BYTES_PER_WEIGHT


def find_outdated_outputs() -> set[Path]:
    """Finds outdated outputs of data stages: the settings differ from dvc.lock, or an input is an outdated output."""
    locked = read_lock()
    params = read_yaml(PATH)
    outdated = set()
    for name in DATA_STAGES:
        # the settings of the stage's last run; {} before the first run
        locked_values = list_values(locked.get(name, {}).get("params", {}).get(str(PATH), {}))
        inputs = map(Path, pipeline.read_pipeline()[name]["deps"])
        if pipeline.select_values(name, params) != locked_values or not outdated.isdisjoint(inputs):
            outdated.update(pipeline.list_outputs(name))
    return outdated


def describe_costs(settings: Settings) -> Iterator[str]:
    """Describes the new jobs of each stage, and warns of too little disk space or a missing GPU."""
    # Counting parses much code, which triggers garbage collections. Frozen objects, as of libraries, are skipped there.
    gc.freeze()
    counter = Counter(settings)
    counting = settings.model_copy(update={"workers": counter})
    for stage in MODEL_STAGES:
        # the stage plans the jobs, and `jobs.run` hands the jobs to the counter
        import_module(f"stages.{stage}.stage").main(counting)
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
