"""What the stage analysis reads: observations, predictions and labels of what params.yaml asks for, no others."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from stages.analysis import multibootstrap
from stages.evidence import scores
from stages.files import observations
from stages.files.paths import PREDICTIONS, STATISTICS
from stages.runner import handover
from stages.schema.settings import Settings

ONE_PROTOCOL = ("question_answering", "convergence")  # stages with a protocol of their own, whatever `protocols` names
TUNED = "finetuning"
APART = ("parameters", "pretraining", "baselines", TUNED, "translation")  # stages that are read by rules of their own
FIRST = (*ONE_PROTOCOL, "noise", "cross_domain", "timing")  # read in this order, then what else dvc.yaml names


def observed(settings: Settings) -> pd.DataFrame:
    """Reads all observations of what params.yaml asks for, and the sizes of the tasks, as a frame of their COLUMNS.

    Fine-tuning may be left out with its baselines, as to study pre-training; so may translation and what `further`
    names. ValueError where other observations are missing, or a model that is asked for was not fine-tuned.
    """
    pretraining = _asked(observations.read(_paths(["pretraining"])), settings)
    parts = [observations.read(_paths(["parameters"])), pretraining]
    if (path := observations.FOLDER / f"{TUNED}.csv").exists():
        tuned = _asked(observations.read([path]), settings)
        models = set(tuned[["protocol", "operator", "size"]].itertuples(index=False, name=None))
        for model in settings.finetuned():
            if model not in models:
                raise ValueError(f"{path}: nothing of {'-'.join(model)}; run `dvc repro {TUNED}`")
        parts += [observations.read(_paths(["baselines"])), tuned]
    rest = observations.read(path for path in _paths(further()) if path.exists())
    order = {"by": "operator", "key": lambda names: names.map(settings.operators.index), "kind": "stable"}
    # translation, and its times by `timing`, for its own operators and protocols; `sequences` are its generated tasks
    translated = observations.read(path for path in _paths(("translation", "timing")) if path.exists())
    translated = translated[translated["protocol"].isin((*settings.translation.protocols, "sequences"))]
    translated = translated[translated["operator"].isin(settings.translation.operators)]
    parts += [_asked(rest, settings).sort_values(**order), translated, task_sizes()]  # operators as in params.yaml
    return pd.concat([part for part in parts if len(part)], ignore_index=True)


def further() -> tuple[str, ...]:
    """Names the stages that write data/observations/STAGE.csv, without APART: FIRST, then the rest as in dvc.yaml."""
    outs = [out for stage in handover.pipeline() for out in handover.list_outputs(stage)]
    named = [out.stem for out in outs if out.parent == observations.FOLDER]
    return tuple(name for name in dict.fromkeys((*FIRST, *named)) if name in named and name not in APART)


def _paths(names: Iterable[str]) -> list[Path]:
    return [observations.FOLDER / f"{name}.csv" for name in names]


def _asked(rows: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """The rows of operators (or baselines), sizes and protocols (or none, or ONE_PROTOCOL) that params.yaml names."""
    asked = rows["operator"].isin(settings.operators) | (rows["stage"] == "baselines")
    asked &= rows["size"].isin(settings.sizes)
    return rows[
        asked & (rows["protocol"].isin(settings.protocols) | rows["protocol"].isna() | rows["stage"].isin(ONE_PROTOCOL))
    ]


def task_sizes() -> pd.DataFrame:
    """The number of examples that the data source holds, as observations: by task, with the split as condition.

    Without tasks, as in a study of pre-training, there are no rows.
    """
    if not STATISTICS.exists():
        return pd.DataFrame(columns=list(observations.COLUMNS)).astype(observations.TYPES)
    frame = pd.read_csv(STATISTICS)
    split = frame["split"].replace("validation_matched", "validation")  # of MNLI, which has two; as other tasks call it
    rows = pd.DataFrame({"stage": "tasks", "task": frame["task"], "condition": split, "metric": "examples"})
    rows["value"] = frame["available"].astype(float)
    return rows.reindex(columns=list(observations.COLUMNS)).astype(observations.TYPES)


def predictions(settings: Settings) -> pd.DataFrame:
    """Reads the kept predictions for `multibootstrap.against_original`; without any, a frame of its keys alone."""
    frames = []
    for protocol, operator, size in settings.finetuned():
        path = PREDICTIONS / f"{protocol}-{operator}-{size}.parquet"
        if path.exists():
            frame = pd.read_parquet(path)
            frame = frame[frame["evaluated_on"].isin(scores.COLUMNS)]
            frames.append(frame.assign(protocol=protocol, operator=operator, size=size))
    if not frames:
        return pd.DataFrame(columns=["evaluated_on", *multibootstrap.KEYS, "operator", "pretraining_seed"])
    return pd.concat(frames, ignore_index=True)
