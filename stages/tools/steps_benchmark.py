"""The open benchmark of the steps to 5.5 nats: checks the entries, and lists every operator of every entry.

An entry is a study below reports/examples whose training settings equal scale `english`, except for operators and
seeds. reports/examples/benchmark/entries.yaml lists the entries; pages.py renders the table.
"""

from functools import cache
from pathlib import Path

import pandas as pd
import yaml

from stages.evidence import convergence
from stages.files.documents import Loader, read_yaml
from stages.schema import operators, scales
from stages.tools import studies
from stages.tools.example_numbers import EXAMPLES

ENTRIES = EXAMPLES / "benchmark/entries.yaml"
LEVEL = 5.5
MILESTONE = f"loss={LEVEL}"
SIZE = "mini"
# The sections of params.yaml that the benchmark reads.
SECTIONS = ("operators", "sizes", "corpus", "filtering", "tokenization", "models", "variants", "pretraining")
# The keys of params.yaml that an entry may change, by section.
FREE = {"corpus": ("hub", "files"), "filtering": (), "tokenization": (), "pretraining": ("seeds", "probes")}
FEWEST_SEEDS = 4
HIGHEST_ALPHA = 0.05
# The keys of an entry in entries.yaml.
KEYS = ("folder", "text", "commit", "by")
RESULTS = [
    "operator",
    "settings",
    "source",
    "steps",
    "runs",
    "never",
    "later",
    "low",
    "high",
    "level",
    "direction",
    *KEYS,
    "page",
]


def list_results() -> pd.DataFrame:
    """Lists every operator of every entry of the benchmark, fewest steps first.

    Returns:
        A row per operator and entry, with name, settings and source of the operator, the keys of the entry, and
        - `steps` to a validation loss of 5.5 nats, the mean over `runs`, missing if a run never falls below; `never`
          counts these runs
        - `later`, `low`, `high`: the difference from the original of equal seeds and its interval, in per cent of the
          original's steps; `direction`, the verdict
        - `level`: the confidence level of the interval, simultaneous over the entry's comparisons
        - `page`: the folder that has the README.md of the entry

    Raises:
        ValueError: an entry breaks a rule of the benchmark, or lacks a file or a key.
    """
    rows = []
    for entry in read_yaml(ENTRIES):
        if not isinstance(entry, dict) or not all(isinstance(entry.get(key), str) for key in KEYS):
            raise ValueError(f"{ENTRIES}: an entry needs {', '.join(KEYS)}, each a text in quotes; given {entry}")
        folder = EXAMPLES / entry["folder"]
        for name in ("params.yaml", "analysis.yaml", "observations"):
            if not (folder / name).exists():
                raise ValueError(f"{folder / name}: missing; an entry has params.yaml, analysis.yaml and observations")
        require_settings(folder)
        require_options(folder)
        require_planned_runs(folder)
        rows += _list_entry(folder, entry)
    return pd.DataFrame(rows, columns=RESULTS).sort_values("steps", kind="stable")


def select_fixed_settings(params: dict) -> dict[str, dict]:
    """Selects the settings in which entries of the benchmark must not differ: text, tokens, recipe and size.

    Args:
        params: the content of a params.yaml.

    Returns:
        The settings by section, without the keys that FREE leaves open.
    """
    fixed = {"models": params["models"].get(SIZE, {})}
    for section, free in FREE.items():
        keys = params[section]
        fixed[section] = {key: keys[key] for key in keys if key not in free}
    return fixed


@cache
def read_fixed_settings() -> dict[str, dict]:
    """Reads the settings that every entry must have, by section, from scale `english`."""
    return select_fixed_settings(yaml.load(scales.read("english"), Loader))


def require_settings(folder: Path) -> None:
    """Checks params.yaml of a benchmark entry, the folder of a study.

    Raises:
        ValueError: a section is missing, a fixed setting differs, `original` or the size is missing, or there are too
            few seeds.
    """
    path = folder / "params.yaml"
    params = read_yaml(path)
    for section in SECTIONS:
        if section not in params:
            raise ValueError(f"{path}: no {section}; write the settings with `python -m stages scale english`")
    given = select_fixed_settings(params)
    for section, keys in read_fixed_settings().items():
        for key, value in keys.items():
            if given[section].get(key) != value:
                raise ValueError(
                    f"{path}: {section}.{key} is {given[section].get(key)}, and the benchmark fixes it at {value}; "
                    "write the settings with `python -m stages scale english`"
                )
    if params["sizes"] != [SIZE] or "original" not in params["operators"]:
        raise ValueError(f"{path}: set sizes: [{SIZE}], and list `original` in operators")
    seeds = params["pretraining"]["seeds"]
    if len(seeds) < FEWEST_SEEDS:
        raise ValueError(f"{path}: pretraining.seeds: {seeds}; use at least {FEWEST_SEEDS} seeds")


def require_options(folder: Path) -> None:
    """Checks alpha and levels in analysis.yaml of a benchmark entry; a ValueError names the key that breaks a rule."""
    path = folder / "analysis.yaml"
    options = studies.read_options(folder)
    alpha = options["alpha"]
    if not isinstance(alpha, float) or alpha > HIGHEST_ALPHA:
        raise ValueError(f"{path}: alpha: {alpha}; set alpha to at most {HIGHEST_ALPHA}")
    # The benchmark counts the steps to this level of the loss.
    if LEVEL not in options["levels"]:
        raise ValueError(f"{path}: levels: {options['levels']}; add {LEVEL}")


def require_planned_runs(folder: Path) -> None:
    """Checks that a benchmark entry has the last loss of every planned run; a ValueError names the operator."""
    params = read_yaml(folder / "params.yaml")
    planned = sorted(params["pretraining"]["seeds"])
    losses = convergence.select_validation_loss(studies.read_observations(folder))
    # A run that was cut has no loss at the last step.
    last = losses[(losses["size"] == SIZE) & (losses["step"] == params["pretraining"]["steps"])]
    for operator in params["operators"]:
        seeds = [int(seed) for seed in last.loc[last["operator"] == operator, "pretraining_seed"]]
        if sorted(seeds) != planned:
            raise ValueError(
                f"{folder / 'observations'}: {operator} has finished runs of the seeds {sorted(seeds)}, and "
                f"pretraining.seeds of params.yaml are {planned}; add the missing runs"
            )


def _list_entry(folder: Path, entry: dict[str, str]) -> list[dict]:
    """Lists the operators of a benchmark entry: for each, a dictionary with the columns of the results."""
    params = read_yaml(folder / "params.yaml")
    # Parts of a study share the page of the folder above.
    page = entry["folder"]
    if not (folder / "README.md").exists():
        page = str(Path(page).parent)
    shared = {**entry, "page": page, "level": 1 - studies.read_options(folder)["alpha"]}
    means = _read_milestone(folder / "means.csv").set_index("arm")
    contrasts = _read_milestone(folder / "contrasts.csv")
    contrasts = contrasts[contrasts["reference"] == "original"].set_index("arm")
    rows = []
    for name in params["operators"]:
        row = _describe_operator(folder, name, params["variants"])
        row |= {"steps": means.loc[name, "mean"], "runs": means.loc[name, "runs"], "never": means.loc[name, "never"]}
        # The original is not compared with itself.
        if name in contrasts.index:
            found = contrasts.loc[name]
            row |= {"later": found["estimate"], "low": found["low"], "high": found["high"]}
            row["direction"] = found["direction"]
        rows.append(row | shared)
    return rows


def _describe_operator(folder: Path, name: str, variants: dict[str, dict]) -> dict[str, str]:
    """Describes an operator or a variant by name, settings and source.

    Raises:
        ValueError: the operator is unknown to this repository and to my_operators.py of the entry.
    """
    variant = dict(variants.get(name, {"operator": name}))
    operator = variant.pop("operator")
    known = operators.describe_operators(folder / "my_operators.py")
    if operator not in known:
        raise ValueError(f"{folder}: operator {operator} is unknown; copy my_operators.py to the folder of params.yaml")
    settings = "; ".join(f"{key} {value}" for key, value in variant.items())
    return {"operator": name, "settings": settings, "source": known[operator].source}


def _read_milestone(path: Path) -> pd.DataFrame:
    rows = pd.read_csv(path)
    return rows[rows["at"] == MILESTONE]
