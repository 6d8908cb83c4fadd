"""Input of the stage analysis: the observations (a row per measured number) of the runs that params.yaml asks for."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from stages.evidence.fields import select_rows, stack_frames
from stages.files import observations
from stages.files.observations import find_file
from stages.files.paths import STATISTICS
from stages.runner.pipeline import list_outputs, read_pipeline
from stages.schema.settings import Settings

TUNED = "finetuning"


def read_observations(settings: Settings) -> pd.DataFrame:
    """Reads the observations of all runs that params.yaml asks for, and the sizes of the tasks.

    Fine-tuning, baselines, translation and the stages of `list_further_stages` may be missing, as in a study of
    pre-training.

    Raises:
        ValueError: other observations are missing, or there is no fine-tuning of a model that params.yaml asks for.
    """
    parts = [
        observations.read([find_file("parameters")]),
        _read_models("pretraining", ["operator", "size"], settings.list_pretrained(), settings),
    ]
    # Without tasks, the file has no rows.
    if settings.tasks.names and find_file(TUNED).exists():
        parts.append(observations.read([find_file("baselines")]))
        parts.append(_read_models(TUNED, ["protocol", "operator", "size"], settings.list_finetuned(), settings))
    further = _select_asked(_read_existing(list_further_stages()), settings)
    # A stable sort keeps the rows of an operator in the order of the files.
    parts.append(further.sort_values("operator", key=lambda names: names.map(settings.operators.index), kind="stable"))
    # The times of training steps of translation models are observations of `timing`.
    translated = _read_existing(["translation", "timing"])
    protocols = [*settings.translation.protocols, "sequences"]
    parts.append(select_rows(translated, protocol=protocols, operator=settings.translation.operators))
    # Without tasks, as in a study of pre-training, there is no file.
    if STATISTICS.exists():
        parts.append(read_task_sizes())
    return stack_frames(parts).reset_index(drop=True)


def list_further_stages() -> list[str]:
    """Lists the stages, in the order of dvc.yaml, whose observations `read_observations` reads by a common rule."""
    # `read_observations` has a separate rule for each of these.
    apart = (
        "parameters",
        "pretraining",
        "baselines",
        TUNED,
        "translation",
    )
    further = []
    for stage in read_pipeline():
        for out in list_outputs(stage):
            # `data/observations/noise.csv` belongs to stage `noise`.
            if out.parent == observations.FOLDER and out.stem not in apart:
                further.append(out.stem)
    return further


def read_task_sizes() -> pd.DataFrame:
    """Reads how many examples the data source holds, as observations: by task, with the split as condition."""
    frame = pd.read_csv(STATISTICS)
    rows = frame.assign(
        stage="tasks",
        # MNLI has two validation splits. The matched split stands for the validation split of the other tasks.
        condition=frame["split"].replace("validation_matched", "validation"),
        metric="examples",
        value=frame["available"],
    )
    return rows.reindex(columns=observations.COLUMNS).astype(observations.TYPES)


def _read_existing(names: Iterable[str]) -> pd.DataFrame:
    files = map(find_file, names)
    return observations.read(filter(Path.exists, files))


def _read_models(stage: str, fields: list[str], models: list[tuple[str, ...]], settings: Settings) -> pd.DataFrame:
    """Reads the observations of a stage; ValueError if one of the `models` has none.

    A model has a value for each of the `fields`, such as `("original", "base")` for operator and size.
    """
    path = find_file(stage)
    rows = _select_asked(observations.read([path]), settings)
    found = set(rows[fields].itertuples(index=False, name=None))
    for model in models:
        if model not in found:
            raise ValueError(f"{path}: no rows of model {'-'.join(model)}; run `dvc repro {stage}`")
    return rows


def _select_asked(rows: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """Selects the rows of operators (or baselines), sizes and protocols (or of no protocol) that params.yaml names."""
    stage = rows["stage"]
    protocol = rows["protocol"]
    operator_asked = rows["operator"].isin(settings.operators) | (stage == "baselines")
    # These stages follow one fixed protocol, whatever `protocols` of params.yaml lists.
    fixed = stage.isin(["question_answering", "convergence"])
    protocol_asked = protocol.isin(settings.protocols) | protocol.isna() | fixed
    return select_rows(rows[operator_asked & protocol_asked], size=settings.sizes)
