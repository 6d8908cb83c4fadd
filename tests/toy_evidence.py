"""Made-up measurements, for the tests of tables and claims."""

from dataclasses import replace
from functools import cache

import pandas as pd

from stages.analysis import contrasts
from stages.audit import stage as audit
from stages.evidence import baselines, cells, measurements, released, specifications
from stages.evidence.fields import FIELDS
from stages.evidence.verdicts import Statement
from stages.schema.settings import load_settings
from tests.places import ROOT

HOLDS, FAILS, TRUNCATED, UNDECIDED = Statement.HOLDS, Statement.FAILS, Statement.TRUNCATED, Statement.UNDECIDED
NOTHING = pd.DataFrame(columns=FIELDS).astype({"value": float})
OPTIONS = load_settings(ROOT / "stages/scales/laptop.yaml").analysis


def make_row(**fields) -> dict:
    """A measurement of `original` at the size `tiny`; `fields` replace the default values."""
    empty = dict.fromkeys(["protocol", "task", "evaluated_on", "condition", "pretraining_seed", "finetuning_seed"])
    return empty | {"stage": "finetuning", "protocol": "courtois2024", "operator": "original", "size": "tiny"} | fields


def make_baselines(*scores: tuple) -> pd.DataFrame:
    """Scores of baselines, each as operator, protocol (or None), evaluated_on, metric, value and upper end."""
    rows = pd.DataFrame(scores, columns=[*baselines.KEYS, "value", "high"])
    return rows.astype(dict.fromkeys(baselines.KEYS, "str"))


def compare(
    measured: pd.DataFrame = NOTHING, rows: pd.DataFrame = NOTHING, constants=None, source="reproduced", pairs=()
) -> pd.DataFrame:
    """The contrasts of the measurements and observations of a run, or of released results."""
    if constants is None:
        constants = make_baselines()
    quantities = contrasts.collect_quantities(rows, measured, constants)
    return contrasts.make_contrasts({source: quantities}, 0.95, 0.05, pairs)


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
    known = make_baselines()
    return cells.CellSources(frame, frame.iloc[:0], operators, ("tiny",), OPTIONS, comparable=True, baselines=known)


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
