"""Judges the studies in reports/examples by the ordinary analysis; pages.py writes the results and renders the pages.

A study is a folder below reports/examples with `params.yaml` (the settings of training), `analysis.yaml` (the section
`analysis` that judges the study) and `observations`.
"""

from pathlib import Path

import pandas as pd

from stages.analysis import contrasts
from stages.evidence import convergence, measurements, released, survival
from stages.evidence.statistics import summarise_groups
from stages.files import observations
from stages.files.documents import read_yaml
from stages.schema import scales
from stages.tools.example_numbers import EXAMPLES

MEANS = ["arm", "at", "mean", "sd", "low", "high", "runs", "never"]


def find_studies() -> list[Path]:
    """Returns the folders below reports/examples that have an `analysis.yaml`, sorted."""
    return sorted(path.parent for path in EXAMPLES.rglob("analysis.yaml"))


def read_observations(folder: Path) -> pd.DataFrame:
    """Reads all observations of a study, a folder below reports/examples."""
    files = sorted((folder / "observations").iterdir())
    return observations.read(files)


def compute_study(folder: Path) -> dict[str, pd.DataFrame]:
    """Computes the comparisons and the means of a study of pre-training.

    Returns:
        Two tables:
        - `contrasts`: a row for each comparison of two operators
        - `means`: a row per operator (`arm`) and quantity (`at`): the final validation loss, in nats, or the steps to a
          level of the loss; without a mean if a run never reaches the level, or some runs stay above the first level
    """
    options = read_options(folder)
    confidence = options["confidence"]
    rows = read_in_order(folder)
    measured = measurements.compute_measurements(rows, options["levels"])
    quantities = contrasts.collect_quantities(rows, measured, {})
    # no study planned to compare speed or transfer
    quantities = quantities[~quantities["quantity"].isin((contrasts.SPEED, contrasts.TRANSFER))]
    compared = contrasts.make_contrasts(
        {contrasts.THIS_RUN: quantities},
        confidence,
        options["alpha"],
        options["pairs"],
    )
    final = convergence.select_final_losses(measured)
    losses = summarise_groups(final, ["operator"], confidence).assign(milestone=contrasts.FINAL_LOSS)
    losses["never"] = losses["operator"].map((~final["reached"]).groupby(final["operator"]).sum())
    # Runs on both sides of the first level are two groups.
    mixed = losses["never"].between(0, losses["runs"], inclusive="neither")
    losses.loc[mixed, ["mean", "sd", "low", "high"]] = None
    steps = survival.estimate_mean_times(convergence.select_milestone_events(measured), ["milestone"], confidence)
    means = pd.concat([losses, steps]).rename(columns={"operator": "arm", "milestone": "at"})[MEANS]
    return {"contrasts": compared, "means": means}


def read_options(folder: Path) -> dict:
    """Reads analysis.yaml of a study, the section `analysis` of params.yaml; a ValueError names a missing key."""
    path = folder / "analysis.yaml"
    options = read_yaml(path)
    for key in ("confidence", "alpha", "levels", "pairs"):
        if key not in options:
            raise ValueError(f"{path}: no {key}; the file has the lines below `analysis:` of params.yaml, not indented")
    return options


def read_in_order(folder: Path) -> pd.DataFrame:
    """Reads the observations of a study, of the operators that params.yaml lists and in this order."""
    operators = read_yaml(folder / "params.yaml")["operators"]
    rows = read_observations(folder)
    rows = rows[rows["operator"].isin(operators)]
    return rows.sort_values(
        "operator",
        key=lambda names: names.map(operators.index),
        kind="stable",
    )


def judge_released() -> pd.DataFrame:
    """Compares the operators in the results of Courtois et al., with alpha and confidence of scale `laptop`."""
    options = read_yaml(scales.FOLDER / "laptop.yaml")["analysis"]
    rows = released.read_observations()
    quantities = contrasts.collect_quantities(rows, measurements.compute_measurements(rows), {})
    return contrasts.make_contrasts({contrasts.RELEASED: quantities}, options["confidence"], options["alpha"])


def read_first_level(folder: Path) -> float:
    """Reads the first level of the validation loss, in nats, in analysis.yaml of a study."""
    return read_options(folder)["levels"][0]
