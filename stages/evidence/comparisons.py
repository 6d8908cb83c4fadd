"""Every operator against `original`: Welch's t for each GLUE column and the score, Holm over the columns."""

import pandas as pd

from stages.evidence import scores
from stages.evidence.statistics import holm, units, welch

FAMILY = ["protocol", "size", "operator"]
COLUMNS = (
    *FAMILY,
    "column",
    "difference",
    "low",
    "high",
    "p",
    "p_holm",
    "n",
    "n_original",
    "unit_of_inference",
)


def against_original(measurements: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """One row for every protocol, size, operator and column; differences in points. Columns: COLUMNS.

    p_holm adjusts over the nine columns of one operator; the GLUE score, one test, keeps its p.
    """
    rows = measurements[measurements["metric"] == "score"].assign(value=lambda rows: 100 * rows["value"])
    order = (scores.GLUE_SCORE, *scores.COLUMNS)
    families = []
    for (protocol, size, operator), own in rows.groupby(FAMILY, sort=False):
        other = rows[(rows["protocol"] == protocol) & (rows["size"] == size) & (rows["operator"] == "original")]
        if operator == "original" or other.empty:
            continue
        family = pd.DataFrame(
            [
                {"protocol": protocol, "size": size, "operator": operator, "column": column}
                | _compare(own[own["evaluated_on"] == column], other[other["evaluated_on"] == column], confidence)
                for column in order
                if column in set(own["evaluated_on"]) & set(other["evaluated_on"])
            ]
        )
        columns = family["column"] != scores.GLUE_SCORE
        family["p_holm"] = family["p"]
        family.loc[columns, "p_holm"] = holm(family.loc[columns, "p"].to_numpy(float))
        families.append(family)
    return pd.concat(families)[list(COLUMNS)] if families else pd.DataFrame(columns=list(COLUMNS))


def _compare(own: pd.DataFrame, original: pd.DataFrame, confidence: float) -> dict:
    first, unit = units(own)
    second, _ = units(original)
    result = welch(first, second, confidence)
    return {
        "difference": result.difference,
        "low": result.low,
        "high": result.high,
        "p": result.p,
        "n": len(first),
        "n_original": len(second),
        "unit_of_inference": unit,
    }
