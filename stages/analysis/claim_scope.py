"""What a run can speak of: which claims its sizes, its data and its protocols of translation can test."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd

GENERATED = "sequences"  # the size of measurements whose data are generated in every run, as their claim has it


@dataclass(frozen=True)
class Scope:
    """What this run can speak of, and how strictly its claims are tested.

    sizes: the names of the model sizes that were run. comparable: whether the data are of the papers' kind, and not
    generated. confidence: the level of the intervals. alpha: the level of the tests. otherwise: what the
    protocols of translation have otherwise than their sources, as `run_otherwise` says it.
    """

    sizes: tuple[str, ...]
    comparable: bool
    confidence: float
    alpha: float
    otherwise: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def run_otherwise(sources: Mapping[str, dict], protocols: Mapping[str, dict]) -> dict[str, dict[str, str]]:
    """Says of each protocol of translation what it has otherwise than its source.

    Args:
        sources: what a protocol must have for the claims of its source to be tested, as claim_rules.yaml lists it.
        protocols: the protocols of this run, as in params.yaml.

    Returns:
        By protocol and key, words on each key that differs.
    """
    return {
        name: {
            key: f"{key} {protocol[key]} (there: {value})"
            for key, value in sources[name].items()
            if protocol[key] != value
        }
        for name, protocol in protocols.items()
    }


def is_count(test: dict) -> bool:
    """Whether a test counts parameters, which needs no training and no data."""
    return test["select"].get("stage") == "parameters"


def obstacle(tests: list[dict], run: pd.DataFrame, scope: Scope) -> str | None:
    """Says in a sentence why this run cannot test a claim; gives None if it can.

    The first of four reasons counts: a stage was not run, a size was not run, the data are generated, or a protocol of
    translation ran otherwise than its source's. Tests that count parameters need no stage and no data, and tests of the
    size GENERATED are about generated data themselves.
    """
    missing = sorted({str(test["select"].get("stage")) for test in tests if not is_count(test)} - set(run["stage"]))
    if missing:
        return f"The stage {' and '.join(missing)} was not run."
    sizes = sorted({size for test in tests for size in test.get("sizes", ())} - set(scope.sizes))
    if sizes:
        return f"{' and '.join(f'BERT-{size}' for size in sizes)} {'was' if len(sizes) == 1 else 'were'} not run."
    of_data = [test for test in tests if not is_count(test) and test["select"].get("size") != GENERATED]
    if of_data and not scope.comparable:
        return "The data are generated."
    for test in of_data:
        differing = scope.otherwise.get(test["select"].get("size"), {})
        words = [said for key, said in differing.items() if key != "epochs" or test["select"]["stage"] != "timing"]
        if words:
            return f"The protocol is not the source's: {', '.join(words)}."
    return None
