"""The raw results that Courtois et al. released, in the form of our own observations.

Source: data/released/ (from the authors' public repository, MIT licence). So the same code computes scores
and statistics of their runs and of ours. An observation is a row with one number, `value`, and what it is of: stage,
protocol, operator, size, evaluated_on (the task or, of MNLI, the split), condition, metric and seeds.
"""

from pathlib import Path

import pandas as pd

FOLDER = Path("data/released")
# what is `evaluated_on`, by task and metric of the files: the matched and the mismatched split of MNLI
SPLITS = {("mnli", "accuracy"): "mnli_m", ("mnli", "accuracy_mm"): "mnli_mm"}
ORDER = ["small", "base", "original", "symmetric", "pairwise"]  # sizes and operators in the paper's tables
PRETRAINING_SEED = 1  # one pre-training run per operator and size, seed 1 (the authors' scripts)


def glue() -> pd.DataFrame:
    """Reads the metrics of the models that were fine-tuned after all of pre-training, as observations, in fractions.

    There is every metric of 2 sizes x 3 operators x 8 tasks (without WNLI) x 5 fine-tuning seeds.
    """
    return _scores(pd.read_csv(FOLDER / "courtois2024_glue_by_seed.csv"), "finetuning")


def checkpoints() -> pd.DataFrame:
    """Reads the metrics of the base models fine-tuned, with one seed, from 18 intermediate checkpoints (Figure 3).

    They are observations, the values as fractions; `condition` has the step of the checkpoint (`step=NUMBER`).
    """
    return _scores(pd.read_csv(FOLDER / "courtois2024_glue_by_checkpoint.csv"), "convergence")


def _scores(frame: pd.DataFrame, stage: str) -> pd.DataFrame:
    """Makes observations of a file's metrics, without loss and WNLI; without a column of seeds, all are of seed 1."""
    raw = ("accuracy", "accuracy_mm", "f1", "matthews_correlation", "pearson", "spearmanr")
    frame = _ordered(frame[frame["metric"].isin(raw) & (frame["task"] != "wnli")])
    frame = frame.rename(columns={"seed": "finetuning_seed"})
    places = zip(frame["task"], frame["metric"], strict=True)
    return frame.assign(
        stage=stage,
        protocol="courtois2024",
        evaluated_on=[SPLITS.get(place, place[0]) for place in places],
        condition="step=" + frame["step"].astype(str) if "step" in frame else None,
        metric=frame["metric"].replace("accuracy_mm", "accuracy"),
        pretraining_seed=PRETRAINING_SEED,
        finetuning_seed=frame.get("finetuning_seed", 1),
    )


def validation_loss() -> pd.DataFrame:
    """Reads the validation loss of the six pre-training runs, taken every 250 steps, in nats per masked token.

    They are observations; `condition` has the training step (`step=NUMBER`). The file has the last step of a run twice,
    as the loss was evaluated again after training; the second value is left out, as in the paper's figure.
    """
    frame = pd.read_csv(FOLDER / "courtois2024_pretraining_loss.csv")
    frame = _ordered(frame.drop_duplicates(["size", "operator", "step"], keep="first"))
    return frame.rename(columns={"validation_loss": "value"}).assign(
        stage="pretraining",
        condition="step=" + frame["step"].astype(str),
        metric="validation_loss",
        pretraining_seed=PRETRAINING_SEED,
        finetuning_seed=None,
    )


def _ordered(frame: pd.DataFrame) -> pd.DataFrame:
    """Sorts by size and operator, in the order of the paper, and otherwise keeps the order of the file."""
    return frame.sort_values(
        ["size", "operator"], key=lambda names: names.map(ORDER.index), kind="stable", ignore_index=True
    )


def observations() -> pd.DataFrame:
    """All released results of Courtois et al., as observations."""
    return pd.concat([glue(), checkpoints(), validation_loss()])
