"""The numbers that the papers print: data/published/, one CSV file a table, and their protocols.

Every cell has labels, `row` and `column`, as printed, and our own keys for them; `printed`, its characters; and `value`
and `std`, its numbers (NaN for formulas and labels). data/published/README.md describes all columns.
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
FIGURES = "kowsher2025_naacl_text_and_figure_numbers"  # of Kowsher et al.; the same in both editions
NUMBERS = ("value", "std")
COLUMNS = ("cell_id", "source", "table", "row", "row_key", "column", "column_key", "printed", *NUMBERS, "unit", "bold")


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


def shared_curve() -> pd.DataFrame:
    """Both ends of the loss curve of `shared` in Figure 2 of Kowsher et al., in the form of `convergence.curves`."""
    numbers = table(FIGURES).set_index(["row_key", "column_key"])["value"]
    loss = [numbers["pretrain", "initial_loss"], numbers["pretrain", "final_loss"]]
    steps = [0, int(numbers["pretrain", "steps"])]
    frame = pd.DataFrame({"step": steps, "mean": loss, "minimum": loss, "maximum": loss})
    return frame.assign(source="published", quantity="loss", operator="shared", size="base", n=1)


def times_saved(run: pd.DataFrame) -> pd.DataFrame:
    """Per cent of an epoch's time that an operator saves against the original, by task.

    As Figure 3 of Kowsher et al. prints it, and as this run's measurements have it. Columns: source (`published`,
    `reproduced`), quantity, operator, size, label (the task), value and n, the rounds behind a measured mean, or NaN.
    """
    numbers = table(FIGURES)
    printed = numbers[numbers["column_key"] == "time_reduction"]
    tasks = printed["row_key"].str.removeprefix("time.")
    printed = printed.assign(label=tasks, operator="shared", size="base", source="published")
    timed = run[run["metric"] == "time_saved_percent"].rename(columns={"task": "label"})
    rounds = timed.groupby(["operator", "size", "label"], sort=False)["value"]
    means = rounds.agg(value="mean", n="size").reset_index().assign(source="reproduced")
    frames = [printed, means] if len(means) else [printed]
    columns = ["source", "quantity", "operator", "size", "label", "value", "n"]
    return pd.concat(frames).assign(quantity="time_saved_percent").reindex(columns=columns)
