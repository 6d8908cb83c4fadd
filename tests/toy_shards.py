"""Toy shards in the folder `corpus`, filtered into the folder `filtered` of the working directory."""

import subprocess
import sys
from pathlib import Path

import pandas as pd

from stages.filtering import stage as filtering
from stages.records import reading
from stages.records.ledger import TOTAL, read_ledger
from stages.schema.sections import Filtering
from stages.schema.settings import load_settings
from tests.places import ROOT
from tests.toy_settings import LAPTOP

SECTION = load_settings(LAPTOP).filtering
EXCLUDED = SECTION.excluded_categories
FILTERED = Path("filtered")
PEAK = """
status = dict(line.split(":") for line in open("/proc/self/status"))
print(int(status["VmHWM"].split()[0]) * 1024)
"""


def make_settings(**changes) -> Filtering:
    """Returns the settings of scale laptop with changes; malformed lines hardly ever stop the stage."""
    return Filtering.model_validate(SECTION.model_dump() | {"malformed_share": 0.99} | changes)


def build(folder: Path = FILTERED, workers: int = 1, **changes) -> dict:
    """Filters `corpus` into a folder, by `settings` with changes."""
    folder.mkdir(exist_ok=True)
    return filtering.build_filtered(Path("corpus"), folder, make_settings(**changes), workers)


def write_shard(lines: list[bytes], name: str = "part_1") -> Path:
    path = Path("corpus") / f"{name}.jsonl.zst"
    path.parent.mkdir(exist_ok=True)
    with reading.open_zstd_writer(path) as file:
        file.write(b"\n".join(lines))
    return path


def read_totals() -> pd.DataFrame:
    ledger = read_ledger(FILTERED / "ledger.csv")
    return ledger[ledger["shard"] == TOTAL]


def read_kept_lines() -> list[bytes]:
    lines = []
    for shard in reading.list_shards(FILTERED):
        lines += reading.read_lines(shard)
    return lines


def measure_memory(program: str, path: Path) -> list[int]:
    """Runs a program in a new process; returns the numbers that it prints, and the peak of memory in bytes."""
    command = [sys.executable, "-c", program + PEAK, str(path)]
    done = subprocess.run(command, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True)
    return [int(number) for number in done.stdout.split()]
