"""The sections of params.yaml on the tests of trained models, as frozen records; sections.py explains their form."""

from typing import ClassVar, Literal

from pydantic import model_validator

from stages.schema.keys import OPEN, Key, Stated, count, key
from stages.schema.sections import GLUE, Count, Level, Protocol, Record, Seed, Several, Task


class Noise(Record):
    inherited: ClassVar[dict[str, Key]] = {"*": Key("Noise, {name}", K=OPEN)}
    tasks: Several[Task] = key("Tasks under noise", K=Stated("noise.tasks", ["mnli", "qqp", "sst2"]))
    levels: Several[Level] = key(
        "Levels of noise", K=Stated("noise.levels_percent", [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4])
    )
    kind: Literal["expected_norm", "exact_norm", "unit"]
    place: Literal["word_embeddings", "embedding_output"]
    special_tokens: bool
    seeds: Several[Seed] = key("Seeds of noise", K=OPEN)
    text: Several[Literal["typos", "dropped_words", "swapped_words"]] = key("Noise in the words")
    probes: bool = key("Probes of the tested models")

    @model_validator(mode="after")
    def _clean_first(self):
        if self.levels[0] != 0.0 or list(self.levels) != sorted(self.levels):
            raise ValueError("levels: must rise from 0.0, the clean score, that the others are compared with")
        return self


class CrossDomain(Record):
    tasks: Several[Task] = key("Tasks of transfer", K=Stated("cross_domain.tasks", ["mnli", "qnli", "qqp", "mrpc"]))
    positive_labels: dict[Task, Several[str]] = key("Labels that count as yes in transfer", K=OPEN)

    @model_validator(mode="after")
    def _every_task_mapped(self):
        """Checks that every task has its positive labels; stage `settings` checks that these are labels of the task."""
        for task in self.tasks:
            if task not in self.positive_labels:
                raise ValueError(
                    f"positive_labels: `{task}` is missing; say which of its labels count as the same meaning"
                )
        return self


class Convergence(Record):
    protocol: Protocol = key(
        "Recipe at intermediate checkpoints", C=Stated("checkpoint_benchmark.value", "courtois2024")
    )
    steps: Several[Count] = key("Intermediate checkpoints", CC="checkpoint_benchmark.steps")
    tasks: Several[Task] = key("Tasks at intermediate checkpoints", C=Stated("finetuning.benchmark", GLUE))
    seeds: Several[Seed] = key(
        "Fine-tuning seeds at intermediate checkpoints", CC=Stated("checkpoint_benchmark.seeds", 1, count)
    )


class Timing(Record):
    protocol: Protocol = key("Recipe of the timed epochs", K=Stated("training_time.batch_size", "kowsher2025"))
    tasks: Several[Task] = key(
        "Timed tasks", K=Stated("training_time.tasks", ["cola", "mnli", "mrpc", "qnli", "rte", "qqp"])
    )
    repeats: Count = key("Rounds of timing", K=OPEN)
    steps: Count = key("Timed steps of pre-training and of translation a round")
