"""Checks the rule of inference by simulation, and what a number of seeds can find: `python -m stages.tools.inference`.

Writes error_rates.csv and detectable.csv to reports/examples/statistics. The page there shows both tables.
"""

from math import sqrt

import numpy as np
import pandas as pd
from scipy import optimize, stats

from stages.evidence import power
from stages.evidence.fields import select_rows
from stages.evidence.statistics import compute_critical_value
from stages.files.storage import write_atomically
from stages.report.tables import write_csv
from stages.runner.errors import clear_errors
from stages.tools.pages import EXAMPLES

FOLDER = EXAMPLES / "statistics"
ALPHA = 0.05
REPETITIONS = 40_000
# Arms (the original included), seeds, the arm of another spread, and whether the runs of this arm fall into two groups.
SCENARIOS = (
    (4, 3, "none", False),
    (4, 3, "operator", False),
    (4, 3, "original", False),
    (7, 6, "operator", False),
    (7, 6, "original", False),
    (4, 6, "operator", True),
    (4, 3, "operator", True),
)
# The other spread, as a multiple of the spread of all other arms.
WIDER = 4.0
# By label: the file of comparisons, the column `at`, and the arm whose spread of paired differences is used.
SPREADS = {
    "final loss, 8 tokens, identity_query": ("own_score/8_tokens", "validation_loss", "identity_query"),
    "final loss, 8 tokens, symmetric": ("own_score/8_tokens", "validation_loss", "symmetric"),
    "GLUE score, scale files, symmetric": ("files", "glue_score", "symmetric"),
    "GLUE score, scale files, tied_qkv": ("files", "glue_score", "tied_qkv"),
}
SEEDS = (3, 4, 6)
# Comparisons that are simultaneous in the table of detectable differences.
OPERATORS = 3


def draw_runs(arms: int, seeds: int, wider: str, bimodal: bool, rng: np.random.Generator) -> np.ndarray:
    """Draws runs of arms with equal means [repetitions, arms, seeds]; arm 0 is the original, arm 1 an operator."""
    runs = rng.normal(size=(REPETITIONS, arms, seeds))
    place = 0 if wider == "original" else 1
    if wider == "none":
        return runs
    if bimodal:
        # Two groups of equal probability, each WIDER from the mean.
        runs[:, place] += WIDER * rng.choice((-1.0, 1.0), size=(REPETITIONS, seeds))
    else:
        runs[:, place] *= WIDER
    return runs


def find_false_differences(runs: np.ndarray) -> tuple[float, float]:
    """Finds how often any operator differs from the original, although all means are equal [repetitions, arms, seeds].

    Returns the shares by pooled errors (Dunnett's critical value), and by paired t intervals with Bonferroni's
    correction.
    """
    _, arms, seeds = runs.shape
    differences = runs[:, 1:] - runs[:, :1]
    means = np.abs(differences.mean(axis=2))
    # Paired: each operator has its own error.
    errors = differences.std(axis=2, ddof=1) / sqrt(seeds)
    paired = means > compute_critical_value(ALPHA, arms - 1, seeds - 1) * errors
    # Pooled: one residual error of all arms, after the effects of arms and of seeds.
    residuals = runs - runs.mean(axis=2, keepdims=True) - runs.mean(axis=1, keepdims=True)
    residuals += runs.mean(axis=(1, 2), keepdims=True)
    freedom = (arms - 1) * (seeds - 1)
    pooled_error = np.sqrt((residuals**2).sum(axis=(1, 2)) / freedom * 2 / seeds)
    pooled = means > compute_dunnett_value(arms - 1, freedom) * pooled_error[:, None]
    return float(pooled.any(axis=1).mean()), float(paired.any(axis=1).mean())


def compute_dunnett_value(operators: int, freedom: int) -> float:
    """Computes Dunnett's two-sided critical value for comparisons of several operators with one original."""
    correlation = np.full((operators, operators), 0.5)
    np.fill_diagonal(correlation, 1.0)
    joint = stats.multivariate_t(shape=correlation, df=freedom, seed=0)

    def compute_excess(value: float) -> float:
        ends = np.full(operators, value)
        return float(joint.cdf(ends, lower_limit=-ends)) - (1 - ALPHA)

    return optimize.brentq(compute_excess, 1.5, 20.0, xtol=1e-3)


def simulate_error_rates() -> pd.DataFrame:
    """Simulates every scenario; columns: arms, seeds, wider (an arm), bimodal, pooled and paired (shares)."""
    rng = np.random.default_rng(0)
    rows = []
    for scenario in SCENARIOS:
        rows.append((*scenario, *find_false_differences(draw_runs(*scenario, rng))))
    return pd.DataFrame(rows, columns=["arms", "seeds", "wider", "bimodal", "pooled", "paired"])


def list_detectable() -> pd.DataFrame:
    """Lists the smallest differences that seeds find with 80 % power; columns: quantity, spread, and `seeds_N`."""
    rows = []
    for quantity, (folder, at, arm) in SPREADS.items():
        contrasts = pd.read_csv(EXAMPLES / folder / "contrasts.csv")
        [row] = select_rows(contrasts, at=at, arm=arm, reference="original").to_dict("records")
        spread = row["error"] * sqrt(row["n"])
        found = {"quantity": quantity, "spread": spread}
        for seeds in SEEDS:
            error = spread / sqrt(seeds)
            found[f"seeds_{seeds}"] = power.compute_smallest_effect(error, seeds - 1, ALPHA / OPERATORS)
        rows.append(found)
    return pd.DataFrame(rows)


def main() -> None:
    """Writes both tables."""
    write_atomically(FOLDER / "error_rates.csv", write_csv(simulate_error_rates()))
    write_atomically(FOLDER / "detectable.csv", write_csv(list_detectable()))


if __name__ == "__main__":
    with clear_errors():
        main()
