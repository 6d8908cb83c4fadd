"""The raw results that Courtois et al. released, in the form of our own observations (files/observations.py).

Source: data/released/, from the authors' public repository (MIT licence).
"""

from pathlib import Path

import pandas as pd

from stages.evidence.data_files import REMEDY, check_table

FOLDER = Path("data/released")
METRICS = (
    "accuracy",
    "accuracy_mm",
    "f1",
    "matthews_correlation",
    "pearson",
    "spearmanr",
)
# Sizes and operators in the order of the paper's tables.
ORDER = ["small", "base", "original", "symmetric", "pairwise"]
# The authors' scripts pre-train every operator and size once.
PRETRAINING_SEED = 1


def read_glue() -> pd.DataFrame:
    """Reads metrics of models fine-tuned after all of pre-training: 2 sizes x 3 operators x 8 tasks x 5 seeds."""
    frame = _read_metrics("courtois2024_glue_by_seed.csv").rename(columns={"seed": "finetuning_seed"})
    return frame.assign(stage="finetuning", condition=None)


def read_checkpoints() -> pd.DataFrame:
    """Reads metrics of base models fine-tuned, with a single seed, from 18 checkpoints (Figure 3).

    The condition is the step of the checkpoint, such as `step=6000`.
    """
    frame = _read_metrics("courtois2024_glue_by_checkpoint.csv")
    return frame.assign(
        stage="convergence",
        condition="step=" + frame["step"].astype(str),
        finetuning_seed=1,
    )


def _read_metrics(name: str) -> pd.DataFrame:
    """Reads the metrics in a file of data/released as observations, without the task WNLI."""
    frame = _read_file(name)
    frame = frame[frame["metric"].isin(METRICS) & (frame["task"] != "wnli")]
    # A released accuracy `accuracy_mm` is of the mismatched split of MNLI.
    mismatched = frame["metric"] == "accuracy_mm"
    splits = frame["task"].replace("mnli", "mnli_m")
    return frame.assign(
        protocol="courtois2024",
        evaluated_on=splits.mask(mismatched, "mnli_mm"),
        metric=frame["metric"].replace("accuracy_mm", "accuracy"),
        pretraining_seed=PRETRAINING_SEED,
    )


def read_validation_loss() -> pd.DataFrame:
    """Reads the validation loss of the six pre-training runs, taken every 250 steps, in nats per masked token."""
    # The last step of a run was evaluated again in the end; as in the paper, the first evaluation counts.
    frame = _read_file("courtois2024_pretraining_loss.csv").drop_duplicates(["size", "operator", "step"])
    return frame.rename(columns={"validation_loss": "value"}).assign(
        stage="pretraining",
        condition="step=" + frame["step"].astype(str),
        metric="validation_loss",
        pretraining_seed=PRETRAINING_SEED,
        finetuning_seed=None,
    )


def _read_file(name: str) -> pd.DataFrame:
    """Reads and checks a file of data/released, sorted by size and operator in the order of the paper's tables."""
    path = FOLDER / name
    check_table(path)
    frame = pd.read_csv(path)
    unknown = {*frame["size"], *frame["operator"]}.difference(ORDER)
    if unknown:
        raise ValueError(f"{path}: {', '.join(map(str, unknown))}: not among {', '.join(ORDER)}; {REMEDY}")
    # A stable sort: rows of a model keep the order of the file.
    return frame.sort_values(
        ["size", "operator"],
        key=lambda names: names.map(ORDER.index),
        kind="stable",
    )


def read_observations() -> pd.DataFrame:
    """Reads all released results as observations: metrics except WNLI, and validation losses by step."""
    return pd.concat([read_glue(), read_checkpoints(), read_validation_loss()])
