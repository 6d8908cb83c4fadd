"""The numbers that the papers print: data/published/, one CSV file a table, and their protocols.

Every cell has an id, a row key and a column key; `printed` holds its characters, `value` and `std` its
numbers (empty for formulas and labels). data/published/README.md describes the columns.
"""

from pathlib import Path

import pandas as pd
import yaml

FOLDER = Path("data/published")
PAPERS = {  # by their keys in protocol.yaml
    "courtois2024": "Courtois et al. 2024",
    "kowsher": "Kowsher et al., both editions",
    "hadamard_blog": "Hadamard blog post",
    "aop": "Attention over parameters, draft section",
}
EDITIONS = {"kowsher2024_arxiv": "arXiv 2024", "kowsher2025_naacl": "NAACL 2025"}  # of Kowsher et al., by table prefix
PLACE, NUMBERS = ("row", "row_key", "column", "column_key"), ("value", "std")  # columns of a cell's place and numbers
COLUMNS = ("cell_id", "source", "table", *PLACE, "printed", *NUMBERS, "unit", "bold")


def table(name: str) -> pd.DataFrame:
    """Reads the cells of one table, in the order of the paper. Columns: COLUMNS.

    Raises ValueError for a file that is missing, has other columns, or names a cell twice.
    """
    path = FOLDER / f"{name}.csv"
    if not path.exists():
        raise ValueError(f"{path}: no such table; {FOLDER / 'INDEX.csv'} lists them")
    frame = pd.read_csv(path, dtype={column: "str" for column in COLUMNS if column not in NUMBERS})
    if tuple(frame.columns) != COLUMNS:
        raise ValueError(f"{path}: columns {list(frame.columns)}, expected {list(COLUMNS)}")
    double = frame.loc[frame.duplicated(["row_key", "column_key"]), "cell_id"]
    if len(double):
        raise ValueError(f"{path}: cell {double.iloc[0]} stands there twice")
    return frame


def texts(name: str) -> pd.DataFrame:
    """Reads a published table with every column as the text in the file; a field without one is an empty text."""
    return pd.read_csv(FOLDER / f"{name}.csv", dtype="str", keep_default_na=False)


def claims() -> list[dict]:
    """claims.yaml: every quantitative or directional claim, with its test and what its source's own numbers say."""
    return yaml.safe_load((FOLDER / "claims.yaml").read_text(encoding="utf-8"))["claims"]


def protocol() -> dict:
    """protocol.yaml: by source, what its text states and what it leaves open."""
    return yaml.safe_load((FOLDER / "protocol.yaml").read_text(encoding="utf-8"))
