"""The table of the first screen: for every operator the differences from the original, with the verdicts.

Intervals and verdicts are selected from contrasts.csv. Parameters are counted; transfer and speed have no test.
"""

from dataclasses import dataclass

import pandas as pd

from stages.evidence.cells import PAPER_SIZES
from stages.evidence.fields import select
from stages.evidence.scores import GLUE_SCORE, MISMATCHED
from stages.evidence.statistics import NOT_TESTED
from stages.report import names, read_results, table_rows
from stages.report.figures import SOURCES
from stages.report.tables import number, signed
from stages.report.text_templates import content
from stages.schema.settings import REFERENCE, Settings

# BERT-base, the size of which released results are shown
BIGGEST = PAPER_SIZES[-1]


@dataclass(frozen=True)
class Finding:
    """One line of a cell.

    Args:
        label: the source of the numbers, such as `released, BERT-base`.
        text: the difference with the interval, such as `+0.63 [−0.32, 1.57]`.
        verdict: the words of contrasts.csv, such as `different, lower`; NOT_TESTED for a difference of means; empty for
            a count.
    """

    label: str
    text: str
    verdict: str


def build_rows(settings: Settings) -> list[dict]:
    """Builds a row per operator: first the operators that sections.yaml describes, then further operators compared.

    Returns:
        Dicts of `operator` (the name for readers), `does` (a few words, or "") and `cells`, which has a list of
        findings for every column of sections.yaml: saved, score, loss, noise, transfer and time.
    """
    size = settings.sizes[-1]
    # the first protocol of the run, or the empty protocol of pre-training
    protocols = ["", settings.protocols[0]]
    contrasts = read_results.read_contrasts(protocol=protocols)
    sizes = contrasts["source"].map({"released": BIGGEST, "reproduced": size})
    # released results stand first
    contrasts = contrasts[contrasts["size"] == sizes].sort_values("source", kind="stable")
    elsewhere = table_rows.average_elsewhere(read_results.read_table("transfer"))
    elsewhere = select(elsewhere, size=size, protocol=protocols)
    # `stock` names the precision of a stock BERT, which is none of our operators
    speed = select(read_results.read_table("speed"), metric="tokens_per_second", size=size)
    speed = speed[speed["stock"].isna()]
    summaries = read_results.read_summaries()
    described = content("sections")["operators"]
    rows = []
    for operator in dict.fromkeys([*described, *contrasts["arm"]]):
        compared = select(contrasts, arm=operator)
        noise = select(compared, quantity="lost_noise")
        cells = {
            "saved": count_saved(summaries, operator, [BIGGEST, size]),
            "score": list_findings(select(compared, quantity="score", at=GLUE_SCORE), 2),
            "loss": list_findings(select(compared, quantity="loss"), 3),
            "noise": list_findings(noise[noise["at"] != MISMATCHED], 1, by_task=True),
            "transfer": subtract_means(elsewhere, operator, size),
            "time": subtract_means(speed, operator, size, relative=True),
        }
        rows.append({"operator": names.operator(operator), "does": described.get(operator, ""), "cells": cells})
    return rows


def list_findings(rows: pd.DataFrame, decimals: int, by_task: bool = False) -> list[Finding]:
    """Lists a finding for every row of contrasts.csv.

    Args:
        rows: the comparisons of an operator in a quantity.
        decimals: of the difference and the interval.
        by_task: whether the label names the task, not the model.
    """
    findings = []
    for row in rows.to_dict("records"):
        place = names.task(row["at"]) if by_task else f"BERT-{row['size']}"
        text = signed(row["estimate"], decimals)
        if pd.notna(row["low"]):
            text += f" [{number(row['low'], decimals)}, {number(row['high'], decimals)}]"
        verdict = ", ".join(filter(None, [row["verdict"], row["direction"]]))
        findings.append(Finding(f"{SOURCES[row['source']]}, {place}", text, verdict))
    return findings


def count_saved(summaries: pd.DataFrame, operator: str, sizes: list[str]) -> list[Finding]:
    """Gives the share of the parameters that an operator saves, at the first of `sizes` with a count."""
    counted = select(summaries, metric="saved_percent", operator=operator)
    for size in sizes:
        for share in select(counted, size=size)["mean"]:
            return [Finding(f"counted, BERT-{size}", f"{number(share, 1)} %", "")]
    return []


def subtract_means(rows: pd.DataFrame, operator: str, size: str, relative: bool = False) -> list[Finding]:
    """Subtracts the mean of the original from the mean of an operator, without a test.

    Args:
        rows: operator and mean; fractions, or with `relative` any unit.
        operator: the operator; without a mean of the operator or of the original there is no finding.
        size: of the model.
        relative: whether the difference is in per cent of the original, not in points.
    """
    # over all tasks and rounds
    means = rows.groupby("operator")["mean"].mean()
    if operator not in means or REFERENCE not in means:
        return []
    difference = 100 * (means[operator] - means[REFERENCE])
    if relative:
        difference /= means[REFERENCE]
    return [Finding(f"this run, BERT-{size}", signed(difference, 1), NOT_TESTED)]
