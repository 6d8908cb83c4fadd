"""Judges the studies in reports/examples by the ordinary analysis; pages.py writes the results and renders the pages.

A study is a folder below reports/examples with `params.yaml` (the settings of training), `analysis.yaml` (the section
`analysis` that judges the study) and `observations`.
"""

from math import exp
from pathlib import Path

import numpy as np
import pandas as pd

from stages.analysis import contrasts
from stages.evidence import convergence, measurements, released, survival
from stages.evidence.estimate import compare_by_welch
from stages.evidence.statistics import compute_mean_interval, summarise_groups
from stages.files import observations
from stages.files.documents import read_yaml
from stages.schema import scales
from stages.tools.example_numbers import EXAMPLES

ENGLISH = EXAMPLES / "english"
SELF_SCORE = EXAMPLES / "self_score"
MEANS = ["arm", "at", "mean", "sd", "low", "high", "runs", "never"]
RUNS = ["learning_rate", "arm", "seed", "step", "reached", "final_loss"]
STEP_RATIOS = ["tokens", "ratio", "low", "high", "p", "seeds"]


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
          level of the loss, without a mean if a run never reaches the level
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
    # The final loss has no censored runs; steps to a level have.
    final = measured[measured["metric"] == "final_validation_loss"]
    losses = summarise_groups(final, ["operator"], confidence).assign(milestone=contrasts.FINAL_LOSS, never=0)
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


def list_english_runs() -> pd.DataFrame:
    """Lists all runs of the study of English text, at every learning rate.

    Returns:
        A row per run, with `learning_rate`, the operator (`arm`), `seed`, and
        - `step`: the first step below the first level of the study, or the last step
        - `reached`: whether the run fell below the level
        - `final_loss`, in nats
    """
    level = read_first_level(ENGLISH)
    lists = []
    for folder in (
        ENGLISH,
        *sorted((ENGLISH / "rates").iterdir()),
        SELF_SCORE / "rate_1e-3",
    ):
        learning_rate = read_yaml(folder / "params.yaml")["pretraining"]["learning_rate"]
        runs = convergence.find_crossings(read_observations(folder), level)
        lists.append(runs.assign(learning_rate=learning_rate))
    runs = pd.concat(lists).rename(columns={"operator": "arm", "pretraining_seed": "seed"})[RUNS]
    keys = ["learning_rate", "arm", "seed"]
    # Part 2 of the study of self-scores repeats the runs of original and symmetric at 1e-3.
    return runs.drop_duplicates(keys).sort_values(keys)


def read_first_level(folder: Path) -> float:
    """Reads the first level of the validation loss, in nats, in analysis.yaml of a study."""
    return read_options(folder)["levels"][0]


def compute_step_ratios(folder: Path) -> np.ndarray:
    """Computes the relative delay of the symmetric operator for every seed of a study, as scale `self_score` plans.

    The ratio is the step at which the symmetric run falls below the first level, divided by the step of the original
    run. A run that never falls below the level counts with the last step.
    """
    runs = convergence.find_crossings(read_observations(folder), read_first_level(folder))
    steps = runs.pivot(index="pretraining_seed", columns="operator", values="step")
    return (steps["symmetric"] / steps["original"]).to_numpy()


def compare_step_ratios() -> pd.DataFrame:
    """Compares the ratio of steps, symmetric to original, with 8 and with 16 tokens.

    Welch's test compares the logarithms of the ratios over seeds.

    Returns:
        Rows with `tokens` of `8` and `16` for the geometric means, and of `16 / 8` for the ratio of these two means,
        with the p-value `p`; `low` and `high` are intervals of a single comparison.
    """
    confidence = read_yaml(SELF_SCORE / "16_tokens/analysis.yaml")["confidence"]
    logarithms = {}
    rows = []
    for tokens in ("8", "16"):
        values = np.log(compute_step_ratios(SELF_SCORE / f"{tokens}_tokens"))
        mean, _, low, high = compute_mean_interval(values, confidence)
        rows.append((tokens, exp(mean), exp(low), exp(high), None, len(values)))
        logarithms[tokens] = values
    change = compare_by_welch(logarithms["16"], logarithms["8"], confidence)
    rows.append(("16 / 8", exp(change.value), exp(change.low), exp(change.high), change.p, None))
    return pd.DataFrame(rows, columns=STEP_RATIOS).astype({"seeds": "Int64"})
