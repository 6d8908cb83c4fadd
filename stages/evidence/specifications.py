"""tables.yaml as frozen records: every table of the papers, and the measurements that fill the cells."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from stages.files.yaml_files import read_yaml


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table, or a cell of a list.

    Attributes:
        key: the published column key, or a pattern over measurement fields, such as `counted.{size}`.
        label: heading of the column, or text of the cell.
        meaning: the quantity in the column.
        select: the fields of the measurements in the column, such as `{"metric": "score"}`; None without measurements.
        scale: factor to the printed unit.
        decimals: of measured values.
        tested: whether a test compares measured values with the published numbers.
    """

    key: str = ""
    label: str = ""
    meaning: str = ""
    select: dict[str, str] | None = None
    scale: float = 1
    decimals: int = 0
    tested: bool = False


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row, with attributes as in Column; scale and decimals, if given, override the column's."""

    key: str
    label: str
    select: dict[str, str] | None = None
    scale: float | None = None
    decimals: int | None = None


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of the papers, as in tables.yaml.

    Attributes:
        name: of the file in data/published.
        stage: the stage that measures the cells.
        select: fields that all measured cells have.
        released: fields that differ in the released results.
        first: heading of the rows.
        row_key: pattern for the keys of rows, such as `{size}.{operator}`.
        row_label: pattern for the labels of rows.
        rows: rows whose key does not fit the pattern, by key.
        columns: of a table with common columns.
        cells: of a list, by `ROW KEY / COLUMN KEY`; empty for a table with columns.
        edition: the same table in the paper's other edition.
        notes: below the table.
    """

    name: str
    source: str
    number: str
    title: str
    stage: str
    select: dict[str, str]
    released: dict[str, str] = field(default_factory=dict)
    first: str = "Model"
    row_key: str = ""
    row_label: str = ""
    rows: dict[str, Row]
    columns: list[Column]
    cells: dict[str, Column]
    edition: str | None = None
    notes: Sequence[str] = ()

    @property
    def is_list(self) -> bool:
        """Whether the table is a list of single numbers, without common rows and columns."""
        return not self.columns


@cache
def load() -> dict[str, Table]:
    """Loads all tables of tables.yaml, by name, in the order of the file."""
    tables = {}
    for name, entry in read_yaml(Path(__file__).with_name("tables.yaml"))["tables"].items():
        # Most tables have one unit for all cells. Columns and cells may have a separate factor and separate decimals.
        unit = {key: entry.pop(key) for key in ("scale", "decimals") if key in entry}
        rows = {key: Row(key=key, **row) for key, row in entry.pop("rows", {}).items()}
        columns = [Column(**unit | column) for column in entry.pop("columns", ())]
        cells = {place: Column(**unit | cell) for place, cell in entry.pop("cells", {}).items()}
        tables[name] = Table(name=name, rows=rows, columns=columns, cells=cells, **entry)
    return tables


def match_fields(pattern: str, key: str) -> dict[str, str] | None:
    """Reads the fields in a key: `base.shared` with the pattern `{size}.{operator}` gives `base` and `shared`.

    Values have no dot. Returns None if the pattern does not fit.
    """
    # Each field, escaped to `\{size\}`, becomes a group that takes a text without dots.
    expression = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^.]+)", re.escape(pattern))
    match = re.fullmatch(expression, key)
    return match.groupdict() if match else None


def list_field_names(pattern: str) -> list[str]:
    """Lists the names of the fields in a pattern, in order: `{size}.{operator}` gives size and operator."""
    return re.findall(r"\{(\w+)\}", pattern)
