"""The form of measurements: the fields, and how rows are selected and stacked.

A measurement is a quantity of the papers for a run: `value` is the number; the other columns of FIELDS say which
number, or are missing. Observations (files/observations.py) have the same form.
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
# The names of this run and of the released results in the column `source` of every CSV.
THIS_RUN = "reproduced"
RELEASED = "released"


def select_rows(rows: pd.DataFrame, /, **fields: object) -> pd.DataFrame:
    """Selects the rows whose fields have the given values: `select_rows(rows, size="base", task=["rte", "qqp"])`.

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


def select_numbered(rows: pd.DataFrame, name: str, kind: type) -> pd.DataFrame:
    """Selects the rows with a condition such as `step=250`, and adds the number, an int or a float, as a column `step`.

    `name` is the text before the number.
    """
    texts = rows["condition"].str.extract(rf"^{name}=([\d.]+)$", expand=False)
    numbered = texts.notna()
    return rows[numbered].assign(**{name: texts[numbered].astype(kind)})


def list_other_fields(*names: str) -> list[str]:
    """Lists all columns of measurements except the given names, as keys for joining or grouping."""
    return [field for field in FIELDS if field not in names]


def stack_frames(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """Stacks frames, without empty frames, which would decide the types of columns."""
    filled = [part for part in parts if len(part)]
    return pd.concat(filled or parts[:1])
