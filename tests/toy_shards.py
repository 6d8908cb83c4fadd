"""Shards of documents, the settings that filter them, and what is left of them, for the tests of filtering."""

from pathlib import Path

import pandas as pd

from stages.filtering import stage as filtering
from stages.records import reading
from stages.records.ledger import TOTAL, read_ledger
from stages.schema.sections import Filtering
from stages.schema.settings import load_settings

LAPTOP = load_settings(Path(__file__).parents[1] / "stages/scales/laptop.yaml").filtering
EXCLUDED = LAPTOP.excluded_categories


def settings(**changes) -> Filtering:
    """Those of laptop with others, under which hardly any number of malformed lines stops the stage."""
    return Filtering.model_validate(LAPTOP.model_dump() | {"malformed_share": 0.99} | changes)


def build(folder: Path, **changes) -> None:
    """Filters the folder `corpus` in one process, under `settings` with these changes."""
    filtering.build(Path("corpus"), folder, settings(**changes), workers=1)


def write_shard(path: Path, lines: list[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with reading.zstd_writer(path) as file:
        file.write(b"\n".join(lines))


def totals(folder: Path) -> pd.DataFrame:
    ledger = read_ledger(folder / "ledger.csv")
    return ledger[ledger["shard"] == TOTAL]


def kept_lines(folder: Path) -> list[bytes]:
    return [line for shard in reading.shards(folder) for line in reading.lines(shard)]
