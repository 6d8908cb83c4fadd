"""Runs on a pre-trained or fine-tuned model as records, without torch. Equal runs share a job."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import SkipValidation

from stages.benchmarks.glue import TASKS
from stages.files.observations import Observation
from stages.files.paths import TASK_FOLDER, TOKENIZER
from stages.runner.job import Job, Run
from stages.schema.training_sections import Finetuning

# Names of a fine-tuned model in params.yaml: protocol, operator and size.
ModelNames = tuple[str, str, str]


class ModelRun(Run):
    """A run on a model and a task."""

    # `seed` is the seed of the fine-tuning. The columns are no part of the content, so two stages that ask for the same
    # training share a job.
    beside = Run.beside | {"columns": True}
    task: str
    # Seed of the model's pre-training.
    pretraining_seed: int
    # Columns of all observations of the run, in this order: stage, protocol, operator, size and, for some stages,
    # condition.
    columns: dict[str, str]

    @property
    def operator(self) -> str:
        """The name of the operator in params.yaml."""
        return self.columns["operator"]

    @property
    def size(self) -> str:
        """The name of the model's size in params.yaml."""
        return self.columns["size"]

    @property
    def model_name(self) -> str:
        """The name of the model, such as `courtois2024-shared-tiny`, or `courtois2024-shared-tiny-step=4`."""
        return "-".join(value for name, value in self.columns.items() if name != "stage")

    @property
    def name(self) -> str:
        """Name of the run in progress and errors."""
        return f"{self.model_name} {self.task}, pre-training seed {self.pretraining_seed}, seed {self.seed}"

    def make_observations(
        self, evaluated_on: str, metrics: dict[str, float], n: int, **columns: str
    ) -> Iterator[Observation]:
        """Makes an observation from each metric of the run, measured on `n` examples.

        `evaluated_on` is the papers' name of a validation split (`mnli_m`; usually the name of the task); `columns` are
        further columns, such as `condition`.
        """
        for metric, value in metrics.items():
            yield Observation(
                task=self.task,
                evaluated_on=evaluated_on,
                metric=metric,
                value=float(value),
                n=n,
                pretraining_seed=self.pretraining_seed,
                finetuning_seed=self.seed,
                **self.columns,
                **columns,
            )


class TunedRun(ModelRun):
    """A run that trains the pre-trained model of folder `weights` further by the recipe `training`."""

    weights: str
    # The recipe was validated with params.yaml.
    training: SkipValidation[Finetuning]


class FinetuningRun(TunedRun):
    """A run on a task of GLUE. keep: the folder in which stage finetuning keeps the fine-tuned model, if any."""

    beside = TunedRun.beside | {"keep": True}
    keep: Path | None = None

    @property
    def content(self) -> dict[str, Any]:
        """The settings that decide the result, as JSON, with `labels`, the number of outputs of the head."""
        return {**super().content, "labels": TASKS[self.task].outputs}

    @property
    def job(self) -> Job:
        """The run as a job of `finetune`."""
        inputs = (Path(self.weights), TASK_FOLDER / self.task, TOKENIZER)
        # A run with `keep` must leave the folder `model`, which the stage then links as `keep`.
        external = {"model": self.keep} if self.keep else {}
        return Job(self.name, self, inputs, required=tuple(external), external_files=external)


class EvaluationRun(ModelRun):
    """An evaluation of the fine-tuned model in `folder` on the validation splits of the GLUE tasks `evaluated_on`.

    `maximum_length` (tokens) and `precision` (float32 or bfloat16) are as in the fine-tuning.
    """

    folder: str
    evaluated_on: tuple[str, ...]
    maximum_length: int
    precision: str

    @property
    def job(self) -> Job:
        """The run as a job, computed again when the model, a table or the tokenizer changes."""
        tables = [TASK_FOLDER / task for task in self.evaluated_on]
        return Job(self.name, self, (Path(self.folder), *tables, TOKENIZER))
