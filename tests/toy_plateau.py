"""A study of the plateau on made-up numbers: pre-training of several variants and seeds, and nothing else."""

import shutil
from pathlib import Path

import numpy as np
import yaml

from stages.__main__ import main as run_stage
from stages.plumbing import observations, scales
from stages.plumbing.observations import Observation
from tests.toy_report import ROOT, write_inputs

SPREADS = {"0p3": 0.3, "1": 1.0, "3": 3.0}
OPERATORS = {"original": 0.24, "pairwise": 1.2, "shared": 0.2, "tied_qkv": 0.2}  # spread as the source starts it
SEEDS = (11, 12, 13, 14, 15)
LAST, EVERY, PLATEAU, END, LEVEL = 1000, 25, 4.0, 1.5, 2.7


def arms(sooner: dict[str, float]) -> dict[str, tuple[str, float, float]]:
    """Name: operator, spread, and the step at which a run of it leaves the plateau.

    sooner: operator -> the factor on the steps of all of its arms.
    """
    made = {}
    for operator, own in OPERATORS.items():
        named = {operator: own} | {f"{operator}_{name}": spread for name, spread in SPREADS.items()}
        for name, spread in named.items():
            made[name] = operator, spread, sooner.get(operator, 1.0) * (500 + 500 * abs(np.log10(spread)))
    return made | {"pairwise_fast": ("pairwise", OPERATORS["pairwise"], 450.0)}


def write_observations(sooner: dict[str, float], seed: int = 0) -> None:
    """Losses and probes of every arm and seed, and what is counted of the arms."""
    generator = np.random.default_rng(seed)
    counts = []
    for name, (_, spread, mean) in arms(sooner).items():
        own = {"operator": name, "size": "tiny"}
        counts += [Observation(stage="parameters", metric="masked_lm_parameters", value=2e6, **own)]
        counts += [Observation(stage="parameters", metric="first_score_spread", value=spread, **own)]
        rows = []
        for run in SEEDS:
            leaves = mean + generator.normal(0, 40)
            for step in range(EVERY, LAST + 1, EVERY):
                loss = END + (PLATEAU - END) / (1 + np.exp((step - leaves) / 20))
                values = {"validation_loss": loss, "score_spread": spread + step / LAST, "attention_entropy": 0.9}
                values |= {"self_weight": 0.1, "movement_query": step / LAST}
                rows += [
                    Observation(
                        stage="pretraining",
                        metric=metric,
                        value=float(value),
                        condition=f"step={step}",
                        pretraining_seed=run,
                        **own,
                    )
                    for metric, value in values.items()
                ]
        observations.write(observations.FOLDER / f"pretraining-{name}-tiny.csv", rows)
    observations.write(observations.FOLDER / "parameters.csv", counts)


def make(folder: Path, monkeypatch, sooner: dict[str, float]) -> Path:
    """Runs the stages `audit`, `analysis` and `report` in `folder`; gives its folder of reports."""
    monkeypatch.chdir(folder)
    for name in ("data/published", "data/released", "reports/templates"):
        shutil.copytree(ROOT / name, folder / name)
    params = yaml.safe_load(scales.read("plateau"))
    shutil.copyfile(ROOT / params["operators_file"], params["operators_file"])
    params |= {"operators": list(arms(sooner))}
    params["pretraining"] |= {"seeds": list(SEEDS), "steps": LAST}
    params["convergence"] |= {"steps": [LAST]}
    params["analysis"] |= {"plateau_loss": LEVEL}
    Path("params.yaml").write_text(yaml.safe_dump(params))
    write_observations(sooner)
    write_inputs()
    for stage in ("audit", "analysis", "report"):
        run_stage([stage])
    return folder / "reports"
