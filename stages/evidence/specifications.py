"""tables.yaml as frozen records: what every table and figure is, and which measurements fill its cells."""

import re
from dataclasses import dataclass, field
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
class Table:
    """row_key and row_label are patterns over measurement fields, such as `{size}.{operator}`.

    rows: those of the paper that the pattern does not read, by key. released: fields that the released results have
    otherwise. edition: the same table in the paper's other edition. entries: the measured cells of a list, a table
    whose cells have no common rows and columns, by row and column as published, and with the published label where they
    have none; None for others.
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
        return self.entries is not None


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
    sources = content["sources"] | {None: None}
    tables, figures, entries = {}, {}, {}
    for name, entry in content["tables"].items():
        entries[name] = entry = entries.get(entry.pop("like", None), {}) | entry
        try:
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
    rows: dict | None = None,
    columns: list[dict] = (),
    cells: dict[str, dict] | None = None,
    notes: list[str] = (),
    scale: float = Column.scale,
    decimals: int = Column.decimals,
    **others,
) -> Table:
    """One table. Arguments: the keys of its entry; scale and decimals are those of its columns and cells by default."""
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
    """`{size}.{operator}` and `base.shared` -> size base, operator shared; None where the key is another."""
    expression = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^.]+)", re.escape(pattern))
    match = re.fullmatch(expression, key)
    return match.groupdict() if match else None


def names(pattern: str) -> list[str]:
    """The fields in a pattern, in order."""
    return re.findall(r"\{(\w+)\}", pattern)
