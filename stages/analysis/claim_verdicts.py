"""The verdict on a claim from the rows that claims.yaml selects: counts, released numbers or contrasts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import inf, isnan

import pandas as pd

from stages.evidence.arithmetic import FAILS, HOLDS, TRUNCATED, judge
from stages.evidence.baselines import AT_CHANCE
from stages.evidence.derived import matching
from stages.evidence.statistics import INCONCLUSIVE, NOT_TESTED, ONE_CHECKPOINT, TOO_FEW
from stages.evidence.translation import model
from stages.schema.settings import REFERENCE

PARTLY = "partly"
OBSTACLES = (AT_CHANCE, ONE_CHECKPOINT, TOO_FEW)
READINGS = {HOLDS: "as claimed", FAILS: "not as claimed", INCONCLUSIVE: "undecided"}
REQUIREMENTS = ("printed", "word", "scale", "above", "below")  # keys of an entry that select nothing


@dataclass(frozen=True)
class Finding:
    """The judgement of one selected row.

    Attributes:
        verdict: HOLDS, TRUNCATED, FAILS or INCONCLUSIVE.
        estimate: the number with its label and its interval, in words.
        unit: the unit of inference, in words.
        exact: whether the number is known without error.
        obstacle: why the row allows no verdict on an operator, one of OBSTACLES, or empty.
        because: the obstacle as a sentence.
    """

    verdict: str
    estimate: str
    unit: str
    exact: bool = False
    obstacle: str = ""
    because: str = ""


def expand(entries: list[dict]) -> list[dict]:
    """Expands entries with lists of values, `{size: [small, base]}`, into one entry a row: `{size: small}` and so on."""
    expanded = []
    for entry in entries:
        choices = [values if isinstance(values, list) else [values] for values in entry.values()]
        for values in product(*choices):
            expanded.append(dict(zip(entry, values, strict=True)))
    return expanded


def judge_number(entry: dict, rows: pd.DataFrame) -> Finding | None:
    """Judges a count, or a number of the released results.

    Args:
        entry: an expanded entry of claims.yaml.
        rows: measurements (see evidence/derived.py); those of one number are averaged.

    Returns:
        The finding; None without such a measurement.
    """
    runs = matching(rows, {"condition": None} | _selection(entry))
    if runs.empty:
        return None
    value = entry.get("scale", 1) * runs["value"].mean()
    if "printed" in entry:
        # makes 100/3 of the float 33.33...
        exact = Fraction(value).limit_denominator(10**9)
        verdict = judge(str(entry["printed"]), exact, entry.get("word", ""))
    else:
        low, high = _claimed_range(entry)
        verdict = HOLDS if low <= value <= high else FAILS
    operator = entry["operator"].replace("_", " ")
    unit = "a count" if len(runs) == 1 else f"the mean of {len(runs)} runs"
    return Finding(verdict, f"{model(entry['size'])} {operator}: {_format(value)}", unit, exact=True)


def judge_contrast(entry: dict, contrasts: pd.DataFrame) -> Finding | None:
    """Judges a claim by a contrast, whose own verdict is never contradicted.

    Args:
        entry: an expanded entry of claims.yaml.
        contrasts: rows of contrasts.csv from one source.

    Returns:
        The finding: HOLDS if all differences that the contrast leaves possible are as claimed, FAILS if no such
        difference is. None without such a contrast.
    """
    rows = matching(contrasts, {"reference": REFERENCE} | _selection(entry))
    if rows.empty:
        return None
    [row] = rows.itertuples()
    verdict = INCONCLUSIVE
    if row.verdict != AT_CHANCE:
        low, high = _claimed_range(entry)
        lowest, highest = _possible_range(row)
        if low <= lowest and highest <= high:
            verdict = HOLDS
        elif highest <= low or lowest >= high:
            verdict = FAILS
    estimate = f"{model(row.size)} {row.arm} − {row.reference}, {row.at}: {_format(row.estimate, sign='+')}"
    if not isnan(row.low):
        estimate += f" ({_format(row.low)} to {_format(row.high)})"
    counts = " and ".join(str(n) for n in sorted({row.n, row.n_reference}))
    unit = f"{counts} {row.unit_of_inference} per arm"
    if row.verdict not in OBSTACLES:
        return Finding(verdict, estimate, unit)
    because = f"{row.reason[0].upper()}{row.reason[1:]}."
    return Finding(verdict, estimate, unit, obstacle=row.verdict, because=because)


def decide(findings: Sequence[Finding | None]) -> str:
    """Decides a claim, which holds if it holds in every row and fails if it fails in any row.

    Args:
        findings: of all rows that the claim selects; None for a row that was not measured.

    Returns:
        FAILS, also if rows are missing (PARTLY if the numbers are exact and not all fail); else NOT_TESTED if a row is
        missing; else the obstacle of a row; else INCONCLUSIVE, TRUNCATED or HOLDS.
    """
    found = [finding for finding in findings if finding is not None]
    verdicts = {finding.verdict for finding in found if not finding.obstacle}
    if FAILS in verdicts:
        partly = found[0].exact and len(verdicts) > 1
        return PARTLY if partly else FAILS
    if len(found) < len(findings):
        return NOT_TESTED
    obstacles = {finding.obstacle for finding in found}
    # from the weakest evidence on
    for verdict in (*OBSTACLES, INCONCLUSIVE, TRUNCATED):
        if verdict in obstacles | verdicts:
            return verdict
    return HOLDS


def read(findings: Sequence[Finding]) -> str:
    """Decides the rows by their numbers, although obstacles keep them from speaking for an operator."""
    return READINGS[decide([replace(finding, obstacle="") for finding in findings])]


def _selection(entry: dict) -> dict:
    """The fields of a row that an entry selects."""
    return {key: value for key, value in entry.items() if key not in REQUIREMENTS}


def _claimed_range(entry: dict) -> tuple[float, float]:
    """The range, from `above` to `below`, in which a claim says that a number lies."""
    return entry.get("above", -inf), entry.get("below", inf)


def _possible_range(row) -> tuple[float, float]:
    """The range of true differences that a contrast leaves possible: its interval, cut at 0 by its direction."""
    lowest, highest = -inf, inf
    if not isnan(row.low):
        lowest, highest = row.low, row.high
    elif row.n == row.n_reference == 1:
        # Two single runs have no interval. Their values show how these two runs compare.
        lowest = highest = row.estimate
    # Holm's method may show a direction although the simultaneous interval contains 0.
    if row.direction == "higher":
        lowest = max(lowest, 0.0)
    if row.direction == "lower":
        highest = min(highest, 0.0)
    return lowest, highest


def _format(value: float, sign: str = "") -> str:
    """Formats a number for a text: `1,769,472`, `−13.04` or `+0.625`; sign: `+` to show the sign of positive numbers."""
    digits = ".2f"
    if abs(value) >= 1000:
        digits = ",.0f"
    elif abs(value) < 1:
        digits = ".3g"
    return f"{value:{sign}{digits}}".replace("-", "−")
