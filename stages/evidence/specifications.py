"""tables.yaml as frozen records: what every table and figure is, and which measurements fill its cells."""

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import yaml

PATH = Path(__file__).with_name("tables.yaml")


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table, or a cell of a list. key: the published column key, or a pattern that `fields` reads.

    label: its heading, or the cell's text. meaning: what it holds. select: fields of measurements and their values;
    None if nothing measures it. scale: to the printed unit. decimals: of measured values. tested: whether a test
    compares it with the published number; otherwise it is compared exactly or not at all.
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
    """A row of a table. key: as published; select: as in Column; scale, decimals: in place of a column's if given."""

    key: str
    label: str
    select: dict[str, str] | None = None
    scale: float | None = None
    decimals: int | None = None


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of the papers. source, number, title: its paper and name; stage: what measures it; notes: below it.

    row_key, row_label: patterns over measurement fields, such as `{size}.{operator}`; first: the rows' heading. rows:
    those of the paper whose key the pattern does not read, by key. select: fields of the measurements of all cells;
    released: those that released results have otherwise. edition: the same table in the paper's other edition. entries:
    None but for a list, a table whose cells have no common rows and columns: by row key and column key, its cells that
    are measured or labelled here; others have the published label.
    """

    name: str
    source: str
    number: str
    title: str
    stage: str
    select: dict[str, str]
    first: str = "Model"
    row_key: str = ""
    row_label: str = ""
    rows: dict[str, Row]
    released: dict[str, str] = field(default_factory=dict)
    columns: tuple[Column, ...]
    entries: dict[tuple[str, ...], Column] | None
    edition: str | None = None
    notes: tuple[str, ...]

    @property
    def is_list(self) -> bool:
        """Whether the table is a list, whose cells have no common rows and columns."""
        return self.entries is not None


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure. kind: `curves` (mean by step), `dots` (one per run) or `bars`. source, number: None for our own ones.

    stage: what measures it; notes: below it. quantity: rows with this value in the column `quantity` are drawn; axis:
    their label. beside: panels beside those of this run, as (source, size). operators: those drawn, empty for all.
    """

    name: str
    source: str | None
    number: str | None
    title: str
    stage: str
    kind: str
    quantity: str
    axis: str
    beside: tuple[tuple[str, str], ...]
    operators: tuple[str, ...]
    notes: tuple[str, ...]


@cache
def load() -> tuple[dict[str, Table], dict[str, Figure]]:
    """Loads all tables and all figures, by name, in the order of the file; ValueError for a wrong entry of a table."""
    content = yaml.safe_load(PATH.read_text(encoding="utf-8"))
    sources = content["sources"] | {None: None}
    tables, figures, entries = {}, {}, {}
    for name, entry in content["tables"].items():
        try:
            # `like` names an entry above, whose keys this one takes over where it has none of its own
            entries[name] = entry = (entries[entry.pop("like")] if "like" in entry else {}) | entry
            tables[name] = _table(name, **entry | {"source": sources[entry["source"]]})
        except (KeyError, TypeError) as error:
            raise ValueError(f"{PATH}: table {name}: {error!r}; the entry above it shows every key") from None
    for name, entry in content["figures"].items():
        beside = tuple((group, size) for group, sizes in entry["beside"].items() for size in sizes)
        lists = {key: tuple(entry.get(key, ())) for key in ("operators", "notes")}
        figures[name] = Figure(name=name, **entry | lists | {"source": sources[entry["source"]], "beside": beside})
    return tables, figures


def _table(
    name: str,
    rows: dict | None = None,  # the patterns `key` and `label`, and rows by their keys as `printed`
    columns: list[dict] = (),
    cells: dict[str, dict] | None = None,  # by `ROW KEY / COLUMN KEY`
    notes: list[str] = (),
    scale: float = Column.scale,
    decimals: int = Column.decimals,
    **others,
) -> Table:
    """Builds a table from the keys of its entry; `scale` and `decimals` are defaults of its columns and cells."""
    patterns, defaults = dict(rows or {}), {"scale": scale, "decimals": decimals}
    printed = patterns.pop("printed", {})
    entries = {
        (*place.split(" / "),): Column(key=place.split(" / ")[1], **defaults | cell)
        for place, cell in (cells or {}).items()
    }
    return Table(
        name=name,
        rows={key: Row(key=key, **row) for key, row in printed.items()},
        columns=tuple(Column(**defaults | column) for column in columns),
        entries=None if cells is None else entries,
        notes=tuple(notes),
        **{f"row_{part}": pattern for part, pattern in patterns.items()},
        **others,
    )


def fields(pattern: str, key: str) -> dict[str, str] | None:
    """Reads `base.shared` by `{size}.{operator}` as size base, operator shared; None where the pattern does not fit."""
    # each field, escaped to `\{size\}`, becomes a group of that name, which takes a text without dots
    expression = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^.]+)", re.escape(pattern))
    match = re.fullmatch(expression, key)
    return match.groupdict() if match else None


def names(pattern: str) -> list[str]:
    """The names of the fields in a pattern, in order."""
    return re.findall(r"\{(\w+)\}", pattern)
