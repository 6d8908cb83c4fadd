"""The open benchmark of the steps to 5.5 nats: checks the entries, and lists every operator of every entry.

An entry is a study below reports/examples with settings of training that equal those of scale `english`, except for
operators and seeds. reports/examples/benchmark/entries.yaml lists the entries; pages.py renders the table.
"""

from pathlib import Path

import pandas as pd
import yaml

from stages.evidence import convergence
from stages.files import observations
from stages.files.documents import Loader, read_yaml
from stages.files.paths import REPORTS
from stages.schema import operators, scales

EXAMPLES = REPORTS / "examples"
ENTRIES = EXAMPLES / "benchmark/entries.yaml"
MILESTONE = "loss=5.5"
SIZE = "mini"
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
    """Lists every operator of every entry, with the columns RESULTS, fewest steps first.

    steps: the mean over the runs, where a run that never falls below the level counts with its last step.
    later, low, high: the difference from the original of equal seeds and its interval, in steps.
    level: the confidence level of the interval, which is simultaneous over the comparisons of the entry.
    page: the folder below reports/examples that has the README.md of the entry.

    Raises:
        ValueError: an entry breaks a rule of the benchmark, or lacks a file or a key.
    """
    rows = []
    for entry in read_yaml(ENTRIES):
        for key in KEYS:
            if not isinstance(entry.get(key), str):
                raise ValueError(f"{ENTRIES}: an entry needs {', '.join(KEYS)}, each a text in quotes; given {entry}")
        folder = EXAMPLES / entry["folder"]
        for name in ("params.yaml", "analysis.yaml", "observations"):
            if not (folder / name).exists():
                raise ValueError(f"{folder / name}: missing; an entry has params.yaml, analysis.yaml and observations")
        require_fixed_settings(folder)
        require_planned_runs(folder)
        rows += _list_entry(folder, entry)
    return pd.DataFrame(rows, columns=RESULTS).sort_values("steps", kind="stable")


def select_fixed_settings(params: dict) -> dict[str, dict]:
    """Selects the settings that every entry shares: text, tokens, recipe of training, and size.

    Args:
        params: the content of a params.yaml.
    """
    fixed = {"models": params["models"][SIZE]}
    for section, free in FREE.items():
        fixed[section] = {key: value for key, value in params[section].items() if key not in free}
    return fixed


def require_fixed_settings(folder: Path) -> None:
    """Checks that an entry was trained with the fixed settings; a ValueError names the first key that differs."""
    expected = select_fixed_settings(yaml.load(scales.read("english"), Loader))
    given = select_fixed_settings(read_yaml(folder / "params.yaml"))
    for section, keys in expected.items():
        for key, value in keys.items():
            if given[section].get(key) != value:
                raise ValueError(
                    f"{folder / 'params.yaml'}: {section}.{key} is {given[section].get(key)}, and the benchmark "
                    f"fixes it at {value}; write the settings with `python -m stages scale english`"
                )


def require_planned_runs(folder: Path) -> None:
    """Checks number of seeds and alpha of an entry, and that every planned run is there, and no other.

    Raises:
        ValueError: the entry has too few seeds, a higher alpha, or other runs than params.yaml names.
    """
    params = read_yaml(folder / "params.yaml")
    planned = params["pretraining"]["seeds"]
    if len(planned) < FEWEST_SEEDS:
        raise ValueError(f"{folder / 'params.yaml'}: pretraining.seeds: {planned}; use at least {FEWEST_SEEDS} seeds")
    alpha = read_yaml(folder / "analysis.yaml").get("alpha")
    if alpha is None or alpha > HIGHEST_ALPHA:
        raise ValueError(f"{folder / 'analysis.yaml'}: alpha: {alpha}; set it to at most {HIGHEST_ALPHA}")
    losses = convergence.validation_loss(observations.read(sorted((folder / "observations").iterdir())))
    for operator in params["operators"]:
        seeds = sorted(losses.loc[losses["operator"] == operator, "pretraining_seed"].unique())
        if seeds != sorted(planned):
            raise ValueError(
                f"{folder / 'observations'}: {operator} has the seeds {[int(seed) for seed in seeds]}, and "
                f"pretraining.seeds of params.yaml are {planned}; an entry has all planned runs"
            )


def _list_entry(folder: Path, entry: dict[str, str]) -> list[dict]:
    """Lists the operators of one entry as rows of RESULTS."""
    params = read_yaml(folder / "params.yaml")
    page = entry["folder"]
    if not (folder / "README.md").exists():
        page = str(Path(page).parent)
    shared = {**entry, "page": page, "level": 1 - read_yaml(folder / "analysis.yaml")["alpha"]}
    means = _read_milestone(folder / "means.csv").set_index("arm")
    contrasts = _read_milestone(folder / "contrasts.csv")
    contrasts = contrasts[contrasts["reference"] == "original"].set_index("arm")
    rows = []
    for name in params["operators"]:
        row = _describe_operator(folder, name, params["variants"])
        row |= {"steps": means.loc[name, "mean"], "runs": means.loc[name, "runs"], "never": means.loc[name, "never"]}
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
    known = operators.described(folder / "my_operators.py")
    if operator not in known:
        raise ValueError(f"{folder}: operator {operator} is unknown; copy my_operators.py beside params.yaml")
    settings = "; ".join(f"{key} {value}" for key, value in variant.items())
    return {"operator": name, "settings": settings, "source": known[operator].source}


def _read_milestone(path: Path) -> pd.DataFrame:
    """Reads the rows of means.csv or contrasts.csv that concern the milestone."""
    rows = pd.read_csv(path)
    return rows[rows["at"] == MILESTONE]
