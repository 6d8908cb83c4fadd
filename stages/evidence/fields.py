"""The form of measurements: their fields, and how rows are selected and stacked.

Measurements have the form of observations (files/observations.py) and the columns FIELDS. `value` is the number, for
one run; the other fields say which number, or are missing.
"""

import pandas as pd

TEXTS = [
    "stage",
    "protocol",
    "operator",
    "size",
    "task",
    "evaluated_on",
    "condition",
    "metric",
]
FIELDS = [*TEXTS, "pretraining_seed", "finetuning_seed", "value"]


def select_rows(rows: pd.DataFrame, /, **fields: object) -> pd.DataFrame:
    """Selects rows by the values of fields.

    Args:
        rows: any frame; a frame without rows may lack the fields.
        fields: by field the value (not NaN), a list of allowed values, or `None` for rows whose field is missing.
    """
    if rows.empty:
        return rows
    for field, value in fields.items():
        if value is None:
            rows = rows[rows[field].isna()]
        else:
            allowed = value if isinstance(value, (list, tuple)) else [value]
            rows = rows[rows[field].isin(allowed)]
    return rows


def list_other_fields(*names: str) -> list[str]:
    """Lists all fields of a measurement except the given fields."""
    return [field for field in FIELDS if field not in names]


def stack_frames(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """Stacks the frames that have rows; an empty frame would decide the types of columns."""
    filled = [part for part in parts if len(part)]
    return pd.concat(filled or parts[:1])
