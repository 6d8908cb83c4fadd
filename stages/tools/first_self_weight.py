"""Measures how much attention a token spends on itself before training: `python -m stages.tools.first_self_weight`.

Builds untrained models of every operator in params.yaml, and feeds the models validation sequences of data/tokens.
Writes a CSV to the standard output: the tokens of a sequence, the operator, the mean `self_weight` over models, layers,
heads and tokens, the standard deviation over models, and the number of models.
"""

import sys

import numpy as np
import pandas as pd

from stages.files.paths import TOKENS
from stages.masked_lm.corpus import Corpus
from stages.masked_lm.run import PretrainingRun
from stages.masked_lm.steps import build_model
from stages.pretraining.probes import Probes
from stages.pretraining.stage import plan_runs
from stages.report.tables import write_csv
from stages.runner.errors import clear_errors
from stages.schema.settings import Settings, load_settings

# Seeds of the untrained models; no run of a study has such a seed.
SEEDS = range(101, 109)


def measure_self_weight(run: PretrainingRun, corpus: Corpus) -> float:
    """Measures the self-weight, in [0, 1], of the untrained model of a run: the mean attention of a token to itself."""
    model = build_model(run, corpus.vocabulary_size)
    return Probes(run, corpus).measure(model)["self_weight"]


def measure_operators(settings: Settings, corpus: Corpus) -> pd.DataFrame:
    """Measures the self-weight (attention of a token to itself) of every operator at the first size, untrained.

    Returns:
        A row for each operator: `tokens` (of a sequence), `operator`, `self_weight`, `sd` over the untrained models of
        SEEDS, and the number of these (`models`).
    """
    rows = []
    for run in plan_runs(settings, settings.list_pretrained(size=settings.sizes[0])):
        # The plan has a run per seed; the seeds are replaced below.
        if run.seed != settings.pretraining.seeds[0]:
            continue
        weights = [measure_self_weight(run.model_copy(update={"seed": seed}), corpus) for seed in SEEDS]
        rows.append(
            (
                corpus.train.sequence_length,
                run.operator,
                np.mean(weights),
                np.std(weights, ddof=1),
                len(SEEDS),
            )
        )
    return pd.DataFrame(rows, columns=["tokens", "operator", "self_weight", "sd", "models"])


def main() -> None:
    """Writes the table as CSV to the standard output."""
    frame = measure_operators(load_settings(), Corpus.open(TOKENS))
    sys.stdout.write(write_csv(frame))


if __name__ == "__main__":
    with clear_errors():
        main()
