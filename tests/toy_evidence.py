"""Made-up measurements, for the tests of tables and claims."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pandas as pd

from stages.audit import stage as audit
from stages.evidence import cells, measurements, released, specifications
from stages.evidence.fields import FIELDS
from stages.schema.settings import load_settings

ROOT = Path(__file__).parents[1]
OPTIONS = load_settings(ROOT / "stages/scales/laptop.yaml").analysis


def make_row(**fields) -> dict:
    """A measurement of `original` at the size `tiny`; `fields` replace the default values."""
    empty = dict.fromkeys(["protocol", "task", "evaluated_on", "condition", "pretraining_seed", "finetuning_seed"])
    return empty | {"stage": "finetuning", "protocol": "courtois2024", "operator": "original", "size": "tiny"} | fields


@cache
def select_released() -> pd.DataFrame:
    """The measurements of all that Courtois et al. released."""
    return measurements.compute_measurements(released.read_observations())


@cache
def read_audit() -> pd.DataFrame:
    """Every check of the published numbers."""
    return audit.make_checks(select_released())


def make_cell_sources(run: list[dict]) -> cells.CellSources:
    """The sources of a table after a run of three operators at the size `tiny`, with the measurements `run`."""
    frame = pd.DataFrame(run, columns=FIELDS).astype({"value": float})
    operators = ("original", "pairwise", "shared")
    return cells.CellSources(frame, frame.iloc[:0], operators, ("tiny",), OPTIONS, comparable=True, without_model={})


def fill_table(name: str, run: list[dict], **changes) -> pd.DataFrame:
    """The cells of a published table after such a run. changes: of its `evidence`."""
    return cells.fill_cells(specifications.load()[name], replace(make_cell_sources(run), **changes))


def list_texts(grid) -> list[list[str]]:
    """Lists the texts of the first line of every row of a table."""
    texts = []
    for group in grid.groups:
        line = group.lines[0]
        texts.append([value.text for value in line.values])
    return texts
