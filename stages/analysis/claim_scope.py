"""What a run can speak of: which claims its sizes, its data and its protocols of translation can test."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd

from stages.analysis.claim_words import say

GENERATED = "sequences"  # the size of measurements on sequences, which are generated in the source of their claim, too
TIMED = ("epochs", "timing")  # a key of a protocol, and the stage that times single steps, whatever the epochs


@dataclass(frozen=True)
class Scope:
    """What this run can speak of, and how strictly its claims are tested.

    sizes: of the models that were run. comparable: whether the data are of the papers' kind, and not generated.
    confidence, alpha: the levels of the intervals and of the tests. differing: what `differing_keys` returns.
    """

    sizes: tuple[str, ...]
    comparable: bool
    confidence: float
    alpha: float
    differing: Mapping[str, list[tuple]] = field(default_factory=dict)


def differing_keys(sources: Mapping[str, dict], protocols: Mapping[str, dict]) -> dict[str, list[tuple]]:
    """Lists, by protocol of translation, (key, value here, value of the source) of each key in which these differ.

    sources: what the claims of a source need, `translation` in claim_rules.yaml. protocols: of this run (params.yaml).
    """
    return {
        name: [(key, protocol[key], value) for key, value in sources[name].items() if protocol[key] != value]
        for name, protocol in protocols.items()
    }


def is_count(test: dict) -> bool:
    """Whether a test (an entry of claim_rules.yaml) counts parameters, which needs no training and no data."""
    return test["select"].get("stage") == "parameters"


def obstacle(tests: list[dict], run: pd.DataFrame, scope: Scope) -> str:
    """Says in a sentence why this run cannot test a claim; an empty text if it can.

    The first of four reasons, in this order, counts: a stage was not run, a size was not run, the data are generated,
    or a protocol of translation ran otherwise than its source's. Tests that count parameters need no stage and no data.
    Tests marked `point` may have any protocol. The `size` of a measurement of translation is the name of its protocol,
    or GENERATED for the sequence tasks.

    Args:
        tests: of the claim, as claim_rules.yaml explains them.
        run: measurements of this run; only their `stage` is read.
        scope: what this run can speak of.
    """
    tested = [test["select"] for test in tests if not is_count(test)]
    of_data = [select for select in tested if select.get("size") != GENERATED]
    of_protocol = [test["select"] for test in tests if not is_count(test) and not test.get("point")]
    differing = [
        [entry for entry in scope.differing.get(select.get("size"), ()) if (entry[0], select["stage"]) != TIMED]
        for select in of_protocol
    ]
    return say(
        "obstacle",
        stages=sorted({str(select.get("stage")) for select in tested} - set(run["stage"])),
        sizes=sorted({size for test in tests for size in test.get("sizes", ())} - set(scope.sizes)),
        generated=of_data and not scope.comparable,
        differing=next(filter(None, differing), []),
    )
