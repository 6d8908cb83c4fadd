"""The open benchmark of the steps to 5.5 nats: checks the entries, and lists every operator of every entry.

An entry is a study below reports/examples with settings of training that equal those of scale `english`, except for
operators and seeds. reports/examples/benchmark/entries.yaml lists the entries; pages.py renders the table.
"""

from pathlib import Path

import pandas as pd
import yaml

from stages.files.documents import Loader, read_yaml
from stages.files.paths import REPORTS
from stages.schema import operators, scales

EXAMPLES = REPORTS / "examples"
ENTRIES = EXAMPLES / "benchmark/entries.yaml"
MILESTONE = "loss=5.5"
SIZE = "mini"
# The keys of params.yaml that an entry may change, by section.
FREE = {"corpus": ("hub", "files"), "filtering": (), "tokenization": (), "pretraining": ("seeds", "probes")}
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
    "folder",
    "text",
    "commit",
    "by",
]


def fixed_settings(params: dict) -> dict[str, dict]:
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
    expected = fixed_settings(yaml.load(scales.read("english"), Loader))
    given = fixed_settings(read_yaml(folder / "params.yaml"))
    for section, keys in expected.items():
        for key, value in keys.items():
            if given[section].get(key) != value:
                raise ValueError(
                    f"{folder / 'params.yaml'}: {section}.{key} is {given[section].get(key)}, and the benchmark "
                    f"fixes it at {value}; write the settings with `python -m stages scale english`"
                )


def list_results() -> pd.DataFrame:
    """Lists every operator of every entry, with the columns RESULTS, fewest steps first.

    steps: the mean over the runs, where a run that never falls below the level counts with its last step.
    later, low, high: the difference from the original of equal seeds and its interval, in steps.
    level: the confidence level of the interval, which is simultaneous over the comparisons of the entry.
    """
    rows = []
    for entry in read_yaml(ENTRIES):
        folder = EXAMPLES / entry["folder"]
        require_fixed_settings(folder)
        rows += _list_entry(folder, entry)
    return pd.DataFrame(rows, columns=RESULTS).sort_values("steps", kind="stable")


def _list_entry(folder: Path, entry: dict) -> list[dict]:
    """Lists the operators of one entry as rows of RESULTS."""
    params = read_yaml(folder / "params.yaml")
    known = operators.described(folder / "my_operators.py")
    level = 1 - read_yaml(folder / "analysis.yaml")["alpha"]
    means = _read_milestone(folder / "means.csv").set_index("arm")
    contrasts = _read_milestone(folder / "contrasts.csv")
    contrasts = contrasts[contrasts["reference"] == "original"].set_index("arm")
    rows = []
    for name in params["operators"]:
        variant = dict(params["variants"].get(name, {"operator": name}))
        operator = variant.pop("operator")
        row = {
            "operator": name,
            "settings": "; ".join(f"{key} {value}" for key, value in variant.items()),
            "source": known[operator].source,
            "steps": means.loc[name, "mean"],
            "runs": means.loc[name, "runs"],
            "never": means.loc[name, "never"],
            "level": level,
        }
        if name in contrasts.index:
            found = contrasts.loc[name]
            row |= {"later": found["estimate"], "low": found["low"], "high": found["high"]}
            row["direction"] = found["direction"]
        rows.append(row | entry)
    return rows


def _read_milestone(path: Path) -> pd.DataFrame:
    """Reads the rows of means.csv or contrasts.csv that concern the milestone."""
    rows = pd.read_csv(path)
    return rows[rows["at"] == MILESTONE]
