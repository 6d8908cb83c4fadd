"""tables.yaml as frozen records: what every table and figure is, and which measurements fill its cells."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

PATH = Path(__file__).with_name("tables.yaml")


@dataclass(frozen=True, kw_only=True)
class Column:
    """key: the published column key. select: measurement fields and values; None where nothing measures it.

    scale: from a measurement to the printed unit. decimals: of measured values. margin: the name of the margin of
    equivalence in params.yaml; None for quantities that are compared exactly or not at all.
    """

    key: str = ""
    label: str = ""
    meaning: str = ""
    select: dict[str, str] | None = None
    scale: float = 1
    decimals: int = 0
    margin: str | None = None


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of the paper whose key is no pattern. select as in Column; scale and decimals overrule those of columns."""

    key: str
    label: str
    select: dict[str, str] | None = None
    scale: float | None = None
    decimals: int | None = None


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One cell of a list: row and column as published. label None: as published."""

    row: str
    column: str
    label: str | None
    measure: Column


@dataclass(frozen=True, kw_only=True)
class Table:
    """row_key and row_label are patterns over measurement fields, such as `{size}.{operator}`.

    rows: those of the paper that the pattern does not read, by key. released: fields that the released results have
    otherwise. edition: the same table in the paper's other edition. entries: the measured cells of a list, a table
    whose cells have no common rows and columns; empty for others.
    """

    name: str
    source: str
    number: str
    title: str
    stage: str
    first: str
    row_key: str
    row_label: str
    rows: dict[str, Row]
    select: dict[str, str]
    released: dict[str, str]
    columns: tuple[Column, ...]
    entries: tuple[Entry, ...]
    is_list: bool
    edition: str | None
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """kind: `curves` (mean by step), `dots` (one a run) or `bars`. source and number are None for figures of our own.

    quantity: what the vertical axis shows, with its label. beside: panels beside this run's, as (source, size).
    operators: those that are drawn; empty for all.
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
    """All tables and figures by name, in the order of the file. ValueError that names a wrong entry."""
    content = yaml.safe_load(PATH.read_text(encoding="utf-8"))
    sources = content["sources"]
    tables, figures, entries = {}, {}, {}
    for name, entry in content["tables"].items():
        entries[name] = entry = entries.get(entry.get("like"), {}) | entry
        try:
            tables[name] = _table(name, entry, sources)
        except (KeyError, TypeError) as error:
            raise ValueError(f"{PATH}: table {name}: {error!r}; the entry above it shows every key") from None
    for name, entry in content["figures"].items():
        source = sources[entry["source"]] if entry["source"] else None
        beside = tuple((group, size) for group, sizes in entry["beside"].items() for size in sizes)
        lists = {key: tuple(entry.get(key, ())) for key in ("operators", "notes")}
        figures[name] = Figure(name=name, **{**entry, "source": source, "beside": beside, **lists})
    return tables, figures


def _table(name: str, entry: dict, sources: dict) -> Table:
    defaults = {key: entry[key] for key in ("scale", "decimals") if key in entry}
    rows = entry.get("rows", {})
    cells = entry.get("cells", {})
    return Table(
        name=name,
        source=sources[entry["source"]],
        number=entry["number"],
        title=entry["title"],
        stage=entry["stage"],
        first=entry.get("first", "Model"),
        row_key=rows.get("key", ""),
        row_label=rows.get("label", ""),
        rows={key: Row(key=key, **row) for key, row in rows.get("printed", {}).items()},
        select=entry["select"],
        released=entry.get("released", {}),
        columns=tuple(Column(**{**defaults, **column}) for column in entry.get("columns", ())),
        entries=tuple(_entry(place, cell, defaults) for place, cell in cells.items()),
        is_list="cells" in entry,
        edition=entry.get("edition"),
        notes=tuple(entry.get("notes", ())),
    )


def _entry(place: str, cell: dict, defaults: dict) -> Entry:
    row, column = place.split(" / ")
    measure = {key: value for key, value in cell.items() if key != "label"}
    return Entry(row=row, column=column, label=cell.get("label"), measure=Column(**defaults | measure, key=column))


def fields(pattern: str, key: str) -> dict[str, str] | None:
    """`{size}.{operator}` and `base.shared` -> size base, operator shared; None where the key is another."""
    expression = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^.]+)", re.escape(pattern))
    match = re.fullmatch(expression, key)
    return match.groupdict() if match else None


def names(pattern: str) -> list[str]:
    """The fields in a pattern, in order."""
    return re.findall(r"\{(\w+)\}", pattern)
