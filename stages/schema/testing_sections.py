"""The sections of params.yaml on the tests of trained models, as frozen records; see sections.py."""

from typing import Literal

from pydantic import model_validator

from stages.schema.sections import Count, Level, Possibly, Protocol, Record, Seed, Several, Task


class Noise(Record):
    """Tests of fine-tuned models under noise on embeddings."""

    tasks: Possibly[Task]
    levels: Several[Level]
    kind: Literal["expected_norm", "exact_norm", "unit"]
    place: Literal["word_embeddings", "embedding_output"]
    special_tokens: bool
    seeds: Several[Seed]

    @model_validator(mode="after")
    def _check_levels(self):
        if self.levels[0] != 0.0 or list(self.levels) != sorted(self.levels):
            raise ValueError("levels: must rise from 0.0, the level without noise; sort the levels and begin with 0.0")
        return self


class CrossDomain(Record):
    """Tests of models on tasks that the models were not fine-tuned on."""

    tasks: Possibly[Task]
    positive_labels: dict[Task, Several[str]]

    @model_validator(mode="after")
    def _check_labels(self):
        # Stage `settings` checks that the tasks have these labels.
        for task in self.tasks:
            if task not in self.positive_labels:
                raise ValueError(
                    f"positive_labels: `{task}` is missing; say which labels of the task count as the same meaning"
                )
        return self


class Convergence(Record):
    """Fine-tuning from intermediate models of pre-training."""

    protocol: Protocol
    steps: Several[Count]
    tasks: Possibly[Task]
    seeds: Several[Seed]


class Timing(Record):
    """Measurements of time."""

    protocol: Protocol
    tasks: Possibly[Task]
    repeats: Count
    steps: Count
