"""The form of observations: an observation is a measured number, a row of data/observations/STAGE.csv.

The rows of models without pre-training, whose stage is `baselines`, are in finetuning.csv. Times of stages are no
observations, and are in data/runs/*.json.
"""

import math
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from gzip import BadGzipFile
from pathlib import Path

import pandas as pd

from stages.files.quoting import quote_value
from stages.files.storage import write_atomically

FOLDER = Path("data/observations")
# `operator` of a baseline: `original`, fine-tuned from untrained weights
NOT_PRETRAINED = "not_pretrained"


@dataclass(frozen=True, kw_only=True)
class Observation:
    """A measured number. A column that does not apply stays `None`."""

    stage: str
    metric: str
    # scores as fractions in [-1, 1], but BLEU from 0 to 100; losses in nats per masked token, or per sub-word of a
    # translation; times in seconds; parameters as counts; every other metric in the unit that name or stage states
    value: float
    # names in params.yaml; a baseline has its name as operator, and may have no size
    operator: str
    size: str | None
    # the recipe of fine-tuning or translation
    protocol: str | None = None
    task: str | None = None
    # the column of the papers' tables: `mnli_m`, `mnli_mm`, or the task's name
    evaluated_on: str | None = None
    # a factor that was varied in addition to the seeds, such as `step=250`
    condition: str | None = None
    # for a model that translates, the seed of the training
    pretraining_seed: int | None = None
    finetuning_seed: int | None = None
    # the number of examples (or masked tokens, or sub-words) behind the value
    n: int | None = None


COLUMNS = [field.name for field in fields(Observation)]
# types of pandas; Int64 holds missing values. Every other column is text.
TYPES = {"value": "float64", "pretraining_seed": "Int64", "finetuning_seed": "Int64", "n": "Int64"}


def find_file(stage: str) -> Path:
    """Finds the file of observations of a stage: `noise` gives `data/observations/noise.csv`."""
    return FOLDER / f"{stage}.csv"


def write(path: Path, rows: Iterable[Observation]) -> None:
    """Writes observations as CSV in the given order; floats with all digits, so that equal runs give equal bytes.

    Raises:
        ValueError: a value is not finite.
    """
    rows = list(rows)
    for row in rows:
        if not math.isfinite(row.value):
            raise ValueError(f"{path}: {row} is not finite; if the training diverged, lower the learning rate")
    frame = pd.DataFrame([asdict(row) for row in rows], columns=COLUMNS).astype(TYPES)
    write_atomically(path, frame.to_csv(index=False, lineterminator="\n"))


def read(paths: Iterable[Path]) -> pd.DataFrame:
    """Reads all observations of the given files, in order, as a single frame; empty cells are NaN or NA.

    Raises:
        ValueError: a file is missing, damaged or has other columns.
    """
    frames = [_read_file(path) for path in paths]
    # pandas raises an error for an empty list
    if not frames:
        return pd.DataFrame(columns=COLUMNS)
    return pd.concat(frames, ignore_index=True)


def _read_file(path: Path) -> pd.DataFrame:
    if not path.exists():
        raise ValueError(f"{path}: no such file of observations; run `dvc repro` to make the file")
    remedy = "delete the file, and run `dvc repro` to make the file again"
    types = dict.fromkeys(COLUMNS, "str") | TYPES
    try:
        frame = pd.read_csv(path, dtype=types)
    except (ValueError, EOFError, BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path}: damaged ({quote_value(error)}); {remedy}") from None
    if list(frame) != COLUMNS:
        raise ValueError(f"{path}: columns {quote_value(list(frame))}, expected {COLUMNS}; {remedy}")
    return frame
