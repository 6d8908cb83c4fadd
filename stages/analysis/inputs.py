"""Input of the stage analysis: the observations of the runs that params.yaml asks for."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from stages.evidence.fields import stack_frames
from stages.files import observations
from stages.files.paths import STATISTICS
from stages.runner import handover
from stages.schema.settings import Settings

TUNED = "finetuning"
# stages with a protocol of their own, which `protocols` of params.yaml does not name
ONE_PROTOCOL = (
    "question_answering",
    "convergence",
)
# stages that `read_observations` reads by rules of their own
APART = (
    "parameters",
    "pretraining",
    "baselines",
    TUNED,
    "translation",
)
# stages that are read first, in this order, before the other stages of dvc.yaml
FIRST = (
    *ONE_PROTOCOL,
    "noise",
    "cross_domain",
    "timing",
)


def read_observations(settings: Settings) -> pd.DataFrame:
    """Reads the observations of all runs that params.yaml asks for, and the sizes of the tasks.

    Fine-tuning and its baselines may be missing, as in a study of pre-training, and so may translation and the stages
    of `list_further_stages`.

    Returns:
        A frame with the columns of observations. Operators have the order of params.yaml within each part.

    Raises:
        ValueError: other observations are missing, or there is no fine-tuning of a model that params.yaml asks for.
    """
    parts = [
        _read_files(["parameters"]),
        _read_models("pretraining", ["operator", "size"], settings.list_pretrained(), settings),
    ]
    tuned = observations.FOLDER / f"{TUNED}.csv"
    # without tasks, the file has no rows
    if settings.tasks.names and tuned.exists():
        parts.append(_read_files(["baselines"]))
        models = settings.list_finetuned()
        parts.append(_read_models(TUNED, ["protocol", "operator", "size"], models, settings))
    further = _select_asked(_read_existing(list_further_stages()), settings)
    # A stable sort keeps the rows of an operator in the order of the files.
    ranks = further["operator"].map(settings.operators.index)
    parts.append(further.loc[ranks.sort_values(kind="stable").index])
    parts.append(_read_translation(settings))
    parts.append(read_task_sizes())
    return stack_frames(parts).reset_index(drop=True)


def list_further_stages() -> list[str]:
    """Lists the stages that write data/observations/STAGE.csv, in the order in which the analysis reads the files."""
    written = []
    for stage in handover.read_pipeline():
        for out in handover.list_outputs(stage):
            if out.parent == observations.FOLDER:
                written.append(out.stem)
    ordered = [name for name in FIRST if name in written]
    ordered += [name for name in written if name not in (*FIRST, *APART)]
    return ordered


def list_files(names: Iterable[str]) -> list[Path]:
    """Lists the files of observations with these names, such as `data/observations/noise.csv`."""
    return [observations.FOLDER / f"{name}.csv" for name in names]


def read_task_sizes() -> pd.DataFrame:
    """Reads how many examples the data source holds, as observations: by task, with the split as condition.

    Without tasks there are no rows, and a study of pre-training has no file.
    """
    columns = list(observations.COLUMNS)
    if not STATISTICS.exists():
        return pd.DataFrame(columns=columns).astype(observations.TYPES)
    frame = pd.read_csv(STATISTICS)
    rows = frame.assign(
        stage="tasks",
        # MNLI has two validation splits. The matched split stands for the validation split of the other tasks.
        condition=frame["split"].replace("validation_matched", "validation"),
        metric="examples",
        value=frame["available"],
    )
    return rows.reindex(columns=columns).astype(observations.TYPES)


def _read_files(names: Iterable[str]) -> pd.DataFrame:
    """Reads the observations with these names; ValueError for a missing file."""
    return observations.read(list_files(names))


def _read_existing(names: Iterable[str]) -> pd.DataFrame:
    """Reads the observations with these names, as far as the files exist."""
    return observations.read(path for path in list_files(names) if path.exists())


def _read_models(stage: str, fields: list[str], models: list[tuple[str, ...]], settings: Settings) -> pd.DataFrame:
    """Reads the observations of a stage.

    Args:
        stage: the stage.
        fields: the columns that name a model.
        models: the values of `fields` of every model that params.yaml asks for.
        settings: all of params.yaml.

    Raises:
        ValueError: there is no observation of a model.
    """
    [path] = list_files([stage])
    rows = _select_asked(observations.read([path]), settings)
    found = set(rows[fields].itertuples(index=False, name=None))
    for model in models:
        if model not in found:
            raise ValueError(f"{path}: nothing of {'-'.join(model)}; run `dvc repro {stage}`")
    return rows


def _read_translation(settings: Settings) -> pd.DataFrame:
    """Reads the stage translation, and the times of its steps by the stage timing.

    Both have separate operators and protocols; the protocol `sequences` has the generated sequence tasks.
    """
    options = settings.translation
    rows = _read_existing(["translation", "timing"])
    rows = rows[rows["protocol"].isin([*options.protocols, "sequences"])]
    return rows[rows["operator"].isin(options.operators)]


def _select_asked(rows: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """Selects the rows of operators (or baselines), sizes and protocols (or of no protocol) that params.yaml names."""
    stage = rows["stage"]
    protocol = rows["protocol"]
    operator_asked = rows["operator"].isin(settings.operators) | (stage == "baselines")
    protocol_asked = protocol.isin(settings.protocols) | protocol.isna() | stage.isin(ONE_PROTOCOL)
    size_asked = rows["size"].isin(settings.sizes)
    return rows[operator_asked & protocol_asked & size_asked]
