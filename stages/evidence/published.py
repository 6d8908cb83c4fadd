"""The numbers that the papers print: data/published/, a CSV file for each table, and the papers' protocols.

A row is a cell: the labels `row` and `column` as printed, our keys `row_key` and `column_key`, the text `printed`, and
the numbers `value` and `std` (NaN for formulas and labels).
"""

from pathlib import Path
from typing import Any, TypedDict

import pandas as pd

from stages.evidence.data_files import check_table
from stages.evidence.fields import THIS_RUN, select_rows, stack_frames
from stages.evidence.verdicts import Statement
from stages.files.quoting import quote_value
from stages.files.yaml_files import read_yaml

FOLDER = Path("data/published")
# By the key in protocol.yaml.
PAPERS = {
    "courtois2024": "Courtois et al. 2024",
    "kowsher": "Kowsher et al., both editions",
    "hadamard_blog": "Hadamard blog post",
    "aop": "Attention over parameters, draft section",
}
# Sizes of BERT that the papers train.
PAPER_SIZES = ("small", "base")
# Editions of Kowsher et al., by the prefix of their tables.
EDITIONS = {"kowsher2024_arxiv": "arXiv 2024", "kowsher2025_naacl": "NAACL 2025"}
# The sources of claimed differences, by the prefix of their tables.
SOURCES = {
    "courtois2024": "Courtois et al. 2024",
    "kowsher2024_arxiv": "Kowsher et al. 2024",
    "kowsher2025_naacl": "Kowsher et al. 2025",
}
# Numbers of the figures of Kowsher et al.; equal in both editions.
FIGURES = "kowsher2025_naacl_text_and_figure_numbers"
TEXTS = ("cell_id", "source", "table", "row", "row_key", "column", "column_key", "printed", "unit", "bold")


class Audit(TypedDict):
    """What the printed numbers and the released results already show about a claim."""

    status: Statement
    checks: list[str]
    note: str


class Claim(TypedDict):
    """A quantitative or directional claim of a paper."""

    id: str
    source: dict[str, str]
    kind: str
    paraphrase: str
    published_audit: Audit


class Claims(TypedDict):
    """The file of the claims."""

    claims: list[Claim]


class Source(TypedDict):
    """What a source leaves open."""

    unspecified: list[dict[str, Any]]


class Sources(TypedDict):
    """The sources by the keys of PAPERS."""

    courtois2024: Source
    kowsher: Source
    hadamard_blog: Source
    aop: Source


def read_table(name: str) -> pd.DataFrame:
    """Reads and checks a table in data/published, in the order of the paper; errors as in `read_texts`."""
    read_texts(name)
    return pd.read_csv(FOLDER / f"{name}.csv", dtype=dict.fromkeys(TEXTS, "str"))


def read_texts(name: str) -> pd.DataFrame:
    """Reads and checks a table in data/published without parsing numbers; a missing value is an empty text.

    Raises:
        ValueError: the file has a fault; the message names the file.
    """
    path = FOLDER / f"{name}.csv"
    check_table(path)
    return pd.read_csv(path, dtype="str", keep_default_na=False)


def read_claims() -> list[Claim]:
    """Reads every quantitative or directional claim of the papers, with the test and the numbers of the source."""
    return read_yaml(FOLDER / "claims.yaml", Claims)["claims"]


def read_protocol() -> Sources:
    """Reads, for every source, the settings that the text leaves open."""
    return read_yaml(FOLDER / "protocol.yaml", Sources)


def read_claimed() -> pd.DataFrame:
    """Reads what each operator's source prints as the difference from its own original (claimed.yaml).

    The rows have the columns of contrasts.csv that apply, with `operator` for the arm, and `place` (table or section).
    """
    path = FOLDER / "claimed.yaml"
    rows = []
    for entry in read_yaml(path, list[dict[str, Any]]):
        try:
            rows.append(_compute_claimed(entry))
        except (KeyError, TypeError, IndexError) as error:
            raise ValueError(
                f"{path}: {quote_value(entry)} describes no number of data/published ({quote_value(error)}); correct "
                "the entry"
            ) from None
    return pd.DataFrame(rows)


def _compute_claimed(entry: dict[str, Any]) -> dict[str, Any]:
    """Computes the difference that an entry of claimed.yaml describes, mostly as a weighted sum of cells of a table."""
    cells = read_table(entry["table"]).set_index(["row_key", "column_key"])
    # `sum` is a list of [weight, row key, column key], such as [1, base.shared, average].
    terms = [weight * cells.loc[(row, column), "value"] for weight, row, column in entry.get("sum", ())]
    value = sum(terms, entry.get("value", 0)) / entry.get("count", 1)
    # In per cent of the cell `of`.
    if "of" in entry:
        value *= 100 / cells.loc[tuple(entry["of"]), "value"]
    place = entry.get("place")
    if place is None:
        _, row, column = entry["sum"][0]
        cell = cells.loc[(row, column)]
        # Numbers of the text have no table, but name their section.
        place = cell["column"] if cell["table"] == "text/figures" else cell["table"]
    source = SOURCES[entry["table"].partition("_t")[0]]
    return {
        "source": "published",
        "quantity": entry["quantity"],
        "at": entry.get("at", ""),
        "size": "base",
        "operator": entry["operator"],
        "estimate": round(value, 6),
        "place": f"{source}, {place}",
    }


def read_shared_curve() -> pd.DataFrame:
    """Reads both ends of the loss curve of operator `shared`, which Kowsher et al. print in Figure 2.

    The rows have the columns of our own loss curves.
    """
    numbers = read_table(FIGURES).set_index(["row_key", "column_key"])["value"].loc["pretrain"]
    loss = numbers[["initial_loss", "final_loss"]].to_numpy()
    return pd.DataFrame(
        {
            "step": [0, int(numbers["steps"])],
            "mean": loss,
            "minimum": loss,
            "maximum": loss,
            "source": "published",
            "quantity": "loss",
            "operator": "shared",
            "size": "base",
            "n": 1,
        }
    )


def read_times_saved(measured: pd.DataFrame) -> pd.DataFrame:
    """Collects the share, in per cent, of an epoch's time that an operator saves against the original, by task.

    `measured` are the measurements of this run.

    Returns:
        A row per operator, size and task (`label`): `source` (`published` for Figure 3 of Kowsher et al., or
        `reproduced` for this run), `quantity`, `operator`, `size`, `value`, and `n`, the number of rounds behind a
        measured mean, or NaN.
    """
    printed = select_rows(read_table(FIGURES), column_key="time_reduction")
    tasks = printed["row_key"].str.removeprefix("time.")
    printed = printed.assign(label=tasks, operator="shared", size="base", source="published")
    timed = select_rows(measured, metric="time_saved_percent").rename(columns={"task": "label"})
    rounds = timed.groupby(["operator", "size", "label"], sort=False)["value"]
    timed = rounds.agg(value="mean", n="size").reset_index().assign(source=THIS_RUN)
    bars = stack_frames([printed, timed]).assign(quantity="time_saved_percent")
    return bars.reindex(columns=["source", "quantity", "operator", "size", "label", "value", "n"])
