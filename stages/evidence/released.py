"""The raw results that Courtois et al. released, in the form of our own observations (files/observations.py).

Source: data/released/, from the authors' public repository (MIT licence). The same code scores their runs and ours.
"""

from pathlib import Path

import pandas as pd

FOLDER = Path("data/released")
SPLITS = {("mnli", "accuracy"): "mnli_m", ("mnli", "accuracy_mm"): "mnli_mm"}  # `evaluated_on`, by task and metric
ORDER = ["small", "base", "original", "symmetric", "pairwise"]  # sizes and operators in the paper's tables
PRETRAINING_SEED = 1  # one pre-training run per operator and size, seed 1 (the authors' scripts)


def glue() -> pd.DataFrame:
    """Metrics of models fine-tuned after all of pre-training: 2 sizes x 3 operators x 8 tasks x 5 fine-tuning seeds."""
    return _scores(pd.read_csv(FOLDER / "courtois2024_glue_by_seed.csv"), "finetuning")


def checkpoints() -> pd.DataFrame:
    """Metrics of base models fine-tuned, with one seed, from 18 checkpoints; the condition is `step=N` (Figure 3)."""
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

    The file has a run's last step twice, as the loss was evaluated again in the end; as in the paper, the first counts.
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
    """The released results of Courtois et al. as observations: scores but for WNLI, and validation losses by step."""
    return pd.concat([glue(), checkpoints(), validation_loss()])
