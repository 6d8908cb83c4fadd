"""What the stage analysis reads: observations, predictions and labels of what params.yaml asks for, no others."""

from itertools import chain

import pandas as pd

from stages.analysis import multibootstrap
from stages.common.benchmarks.glue import TASKS, validation_tables
from stages.common.evidence import scores
from stages.plumbing import observations
from stages.plumbing.files import PREDICTIONS, STATISTICS
from stages.plumbing.settings import Settings

ONE_PROTOCOL = ("question_answering", "convergence")  # of their own, whatever `protocols` names
BY_PROTOCOL = ("noise", "cross_domain")


def observed(settings: Settings) -> pd.DataFrame:
    """All observations of the stages that params.yaml asks for, in its order, and the sizes of the tasks.

    Fine-tuning may be left out as a whole, as for a study of pre-training, and the baselines of its tasks with it.
    """
    tuned = [f"finetuning-{'-'.join(model)}" for model in _models(settings)]
    names = ["parameters"]
    names += [f"pretraining-{operator}-{size}" for size in settings.sizes for operator in settings.operators]
    if any((observations.FOLDER / f"{name}.csv").exists() for name in tuned):
        names += ["baselines", *tuned]
    rows = observations.read(observations.FOLDER / f"{name}.csv" for name in names)
    more = observations.read(
        path for name in further(settings) if (path := observations.FOLDER / f"{name}.csv").exists()
    )
    asked = more["operator"].isin(settings.operators) & more["size"].isin(settings.sizes)
    asked &= more["protocol"].isin(settings.protocols) | more["protocol"].isna() | more["stage"].isin(ONE_PROTOCOL)
    more = more[asked].sort_values("operator", key=lambda names: names.map(settings.operators.index), kind="stable")
    parts = [rows, more, translated(settings), task_sizes()]
    return pd.concat([part for part in parts if len(part)], ignore_index=True)


def further(settings: Settings) -> list[str]:
    """Names of the observations of stages that a pipeline may leave out. A file of another name counts for nothing."""
    models = _models(settings)
    names = [sorted({f"{stage}-{operator}-{size}" for _, operator, size in models}) for stage in ONE_PROTOCOL]
    names += [sorted(f"{stage}-{'-'.join(model)}" for model in models) for stage in BY_PROTOCOL]
    return [*chain.from_iterable(names), "timing"]


def translated(settings: Settings) -> pd.DataFrame:
    """Observations of translation, of its own operators and protocols; none where it was left out.

    The stage `timing` has the times of its steps.
    """
    names = [*(f"translation-{operator}.csv" for operator in settings.translation.operators), "timing.csv"]
    rows = observations.read(path for name in names if (path := observations.FOLDER / name).exists())
    return rows[rows["protocol"].isin((*settings.translation.protocols, "sequences"))]


def _models(settings: Settings) -> list[tuple[str, str, str]]:
    """Protocol, operator and size of every fine-tuning stage."""
    return [
        (protocol, operator, size)
        for protocol in settings.protocols
        for size in settings.sizes
        for operator in settings.operators
    ]


def task_sizes() -> pd.DataFrame:
    """Examples of every task and split that the data source holds, as observations."""
    frame = pd.read_csv(STATISTICS)
    split = frame["split"].replace("validation_matched", "validation")
    rows = pd.DataFrame({"stage": "tasks", "task": frame["task"], "condition": split, "metric": "examples"})
    rows["value"] = frame["available"].astype(float)
    return rows.reindex(columns=list(observations.COLUMNS)).astype(observations.TYPES)


def predictions(settings: Settings) -> pd.DataFrame:
    """Saved predictions of the GLUE tasks, with protocol, operator and size; empty where none are kept."""
    frames = []
    for protocol, operator, size in _models(settings):
        path = PREDICTIONS / f"{protocol}-{operator}-{size}.parquet"
        if path.exists():
            frame = pd.read_parquet(path)
            frame = frame[frame["evaluated_on"].isin(scores.COLUMNS)]
            frames.append(frame.assign(protocol=protocol, operator=operator, size=size))
    return (
        pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=["evaluated_on", *multibootstrap.KEYS])
    )


def labels(columns: list[str]) -> dict[str, pd.Series]:
    """The true label of every example, by column of the papers' tables."""
    tables = {column: table for task in TASKS for column, table in validation_tables(task).items()}
    return {column: pd.read_parquet(tables[column]).set_index("example_id")["label"] for column in columns}
