"""Every operator against `original`, by GLUE column and score: Welch's t, Holm over the columns, equivalence."""

import pandas as pd

from stages.evidence import scores
from stages.evidence.statistics import equivalence, holm, units, welch

FAMILY = ["protocol", "size", "operator"]
COLUMNS = (
    *FAMILY,
    "column",
    "difference",
    "low",
    "high",
    "p",
    "p_holm",
    "p_equivalence",
    "margin",
    "verdict",
    "n",
    "n_original",
    "unit_of_inference",
)


def against_original(
    measurements: pd.DataFrame, confidence: float, alpha: float, margins: dict[str, float]
) -> pd.DataFrame:
    """One row for every protocol, size, operator and column; differences in points. Columns: COLUMNS.

    p_holm adjusts over the nine columns of one operator; the GLUE score, one test, keeps its p. verdict: that of
    `statistics.equivalence` within the column's margin.
    """
    rows = measurements[(measurements["metric"] == "score") & (measurements["stage"] == "finetuning")]
    rows = rows.assign(value=100 * rows["value"])
    order = (scores.GLUE_SCORE, *scores.COLUMNS)
    families = []
    for (protocol, size, operator), own in rows.groupby(FAMILY, sort=False):
        other = rows[(rows["protocol"] == protocol) & (rows["size"] == size) & (rows["operator"] == "original")]
        if operator == "original" or other.empty:
            continue
        pairs = {c: (own[own["evaluated_on"] == c], other[other["evaluated_on"] == c]) for c in order}
        family = pd.DataFrame(
            [
                {"protocol": protocol, "size": size, "operator": operator, "column": column, "margin": margins[column]}
                | _compare(*pair, confidence, alpha, margins[column])
                for column, pair in pairs.items()
                if all(map(len, pair))
            ]
        )
        columns = family["column"] != scores.GLUE_SCORE
        family["p_holm"] = family["p"]
        family.loc[columns, "p_holm"] = holm(family.loc[columns, "p"].to_numpy(float))
        families.append(family)
    return pd.concat(families)[list(COLUMNS)] if families else pd.DataFrame(columns=list(COLUMNS))


def _compare(own: pd.DataFrame, original: pd.DataFrame, confidence: float, alpha: float, margin: float) -> dict:
    first, unit = units(own)
    second, _ = units(original)
    result = welch(first, second, confidence)
    verdict, p = equivalence(first, second, margin, alpha)
    return {
        "difference": result.difference,
        "low": result.low,
        "high": result.high,
        "p": result.p,
        "p_equivalence": p,
        "verdict": verdict,
        "n": len(first),
        "n_original": len(second),
        "unit_of_inference": unit,
    }
