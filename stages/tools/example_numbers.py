"""Computes numbers of the published pages that no table of the example reports has in that form."""

from pathlib import Path

import pandas as pd

from stages.evidence import convergence, scores
from stages.evidence.estimate import Estimate, compare_arms
from stages.files import observations
from stages.files.paths import REPORTS
from stages.report import names

EXAMPLES = REPORTS / "examples"


def read_glue_scores(example: str) -> pd.DataFrame:
    """Reads the GLUE score of every run of an example report: `value`, a fraction, with columns that name the run.

    Runs that were fine-tuned from untrained weights have the operator `not_pretrained`.
    """
    files = _find_observations(example, "finetuning")
    rows = observations.read(files)
    # Runs from untrained weights are observations of the stage `baselines`.
    columns = scores.compute_column_scores(rows.assign(stage="finetuning"))
    means = scores.compute_mean_scores(columns)
    return means[means["evaluated_on"] == scores.GLUE_SCORE]


def list_glue_scores(example: str, operator: str) -> list[float]:
    """Lists the GLUE scores of an operator, in points (0 to 100), sorted by pre-training seed."""
    runs = read_glue_scores(example)
    runs = runs[runs["operator"] == operator].sort_values("pretraining_seed")
    return (100 * runs["value"]).tolist()


def compare_glue_scores(example: str, arm: str, reference: str) -> Estimate:
    """Compares the GLUE scores of two operators, as fractions, with a 95 % interval of this single comparison."""
    runs = read_glue_scores(example).set_index("operator")
    return compare_arms(runs.loc[arm], runs.loc[reference], confidence=0.95)


def find_loss_range(example: str, *operators: str) -> tuple[float, float]:
    """Finds the lowest and the highest final validation loss, in nats, over the runs of some operators, or of all."""
    rows = observations.read(_find_observations(example, "pretraining"))
    losses = convergence.select_validation_loss(rows)
    final = losses[losses["step"] == losses["step"].max()]
    if operators:
        final = final[final["operator"].isin(operators)]
    return final["value"].min(), final["value"].max()


def list_columns_below(example: str, model: str, baseline: str) -> list[str]:
    """Lists the GLUE columns in which the mean of a model is below a baseline, such as `["MNLI-mm", "QQP"]`.

    Args:
        example: the folder of the report, such as `laptop`.
        model: a row of the reproduced Table 3, such as `tiny.original`.
        baseline: a column of the table of baselines, such as `best_rule`.
    """
    tables = EXAMPLES / example / "tables"
    cells = pd.read_csv(tables / "courtois2024_table3_glue.csv").set_index(["row", "column"])["reproduced_mean"]
    baselines = pd.read_csv(tables / "baselines.csv").set_index("evaluated_on")[baseline]
    below = []
    for column in scores.COLUMNS:
        if cells[model, column] < baselines[column]:
            below.append(names.name_task(column))
    return below


def count_claims(paper: str) -> dict[str, int]:
    """Counts the claims of a paper by the verdict of the audit, such as `{"holds": 24, "fails": 9}`.

    Args:
        paper: the source, such as `courtois2024`.
    """
    # The table has several rows for a claim that several ledgers judge; the verdict of the audit is the same in all.
    claims = pd.read_csv(EXAMPLES / "laptop/tables/claims.csv").drop_duplicates("id")
    verdicts = claims.loc[claims["paper"] == paper, "numbers"]
    return verdicts.value_counts().to_dict()


def _find_observations(example: str, stage: str) -> list[Path]:
    return sorted((EXAMPLES / example / "observations").glob(f"{stage}*.csv.gz"))
