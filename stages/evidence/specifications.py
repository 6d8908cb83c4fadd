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

    scale: from a measurement to the printed unit. decimals: of measured values.
    """

    key: str
    label: str
    meaning: str
    select: dict[str, str] | None
    scale: float
    decimals: int


@dataclass(frozen=True, kw_only=True)
class Table:
    """row_key and row_label are patterns over measurement fields, such as `{size}.{operator}`."""

    name: str
    source: str
    number: str
    title: str
    stage: str
    row_key: str
    row_label: str
    select: dict[str, str]
    columns: tuple[Column, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """kind: `curves` (loss by step) or `dots` (one a run). source and number are None for figures of our own.

    released: sizes of the released results that are drawn beside this run's.
    """

    name: str
    source: str | None
    number: str | None
    title: str
    stage: str
    kind: str
    released: tuple[str, ...]


@cache
def load(path: Path = PATH) -> tuple[dict[str, Table], dict[str, Figure]]:
    """All tables and figures by name, in the order of the file. ValueError that names a wrong entry."""
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    sources = content["sources"]
    tables, figures = {}, {}
    for name, entry in content["tables"].items():
        try:
            tables[name] = _table(name, entry, sources)
        except (KeyError, TypeError) as error:
            raise ValueError(f"{path}: table {name}: {error!r}; the entry above it shows every key") from None
    for name, entry in content["figures"].items():
        source = sources[entry["source"]] if entry["source"] else None
        entry = {**entry, "source": source, "released": tuple(entry["released"])}
        figures[name] = Figure(name=name, **entry)
    return tables, figures


def _table(name: str, entry: dict, sources: dict) -> Table:
    defaults = {"scale": entry.get("scale", 1), "decimals": entry.get("decimals", 0), "select": None}
    return Table(
        name=name,
        source=sources[entry["source"]],
        number=entry["number"],
        title=entry["title"],
        stage=entry["stage"],
        row_key=entry["rows"]["key"],
        row_label=entry["rows"]["label"],
        select=entry["select"],
        columns=tuple(Column(**{**defaults, **column}) for column in entry["columns"]),
        notes=tuple(entry.get("notes", ())),
    )


def fields(pattern: str, key: str) -> dict[str, str] | None:
    """`{size}.{operator}` and `base.shared` -> size base, operator shared; None where the key is another."""
    expression = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^.]+)", re.escape(pattern))
    match = re.fullmatch(expression, key)
    return match.groupdict() if match else None


def names(pattern: str) -> list[str]:
    """The fields in a pattern, in order."""
    return re.findall(r"\{(\w+)\}", pattern)
