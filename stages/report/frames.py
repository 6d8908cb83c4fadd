"""The frames that tables, figures and sentences select from, by name.

A frame without an entry here is a file of data/analysis.
"""

from functools import cache, partial

import pandas as pd

from stages.evidence import published
from stages.files.paths import AUDIT, STATISTICS
from stages.report import deviations, differences, figure_rows, table_rows
from stages.report.claims_and_audit import (
    count_facts,
    count_verdicts,
    list_checks,
    list_claims,
    list_verdicts,
    sort_worst,
)
from stages.report.first_screen import build_first_screen
from stages.report.read_results import (
    list_environment,
    read_claims,
    read_run_records,
    read_sentence_pairs,
    read_table,
    select_contrasts,
)
from stages.report.tables import Reader
from stages.schema.settings import Settings


def make_reader(settings: Settings) -> Reader:
    """Makes the function that returns a frame by name, and computes each frame once."""

    @cache
    def read(name: str) -> pd.DataFrame:
        # any other name is a file of data/analysis
        make = makers.get(name, partial(read_table, name))
        return make()

    params = settings.model_dump(mode="json")
    # by name: a function without arguments that makes the frame, in part from other frames
    makers = {
        # of both tables and figures
        "first_screen": lambda: build_first_screen(settings, read("differences")),
        "claims": read_claims,
        "checks": lambda: sort_worst(pd.read_csv(AUDIT, keep_default_na=False)),
        "claim_ledger": lambda: list_claims(read("claims"), read("checks")),
        "audit_ledger": lambda: list_checks(read("checks")),
        "claim_totals": lambda: count_verdicts(list_verdicts(read("claims"))),
        "audit_totals": lambda: count_facts(read("checks")),
        "corpus": table_rows.read_corpus,
        # of figures
        "differences": partial(differences.build_differences, settings),
        "study_differences": differences.read_study_differences,
        "study_curves": lambda: published.read_table("study_curves").assign(source="study"),
        "answers": figure_rows.list_answers,
        "noise": figure_rows.build_noise,
        "transfer_matrices": figure_rows.build_transfer,
        # of tables
        "overview": partial(table_rows.select_overview, settings),
        "contrasts": select_contrasts,
        "further_pairs": partial(select_contrasts, further=True),
        "milestone_tests": lambda: table_rows.read_tests("steps", at="milestone").dropna(subset="low"),
        "noise_measures": lambda: table_rows.mark_chance(read_table("noise_measures"), read_table("noise_curves")),
        "noise_tests": partial(table_rows.read_tests, "lost_noise", arm="operator", at="evaluated_on"),
        "speed_tests": partial(table_rows.read_tests, "speed", arm="operator", quantity="metric"),
        "transfer": lambda: table_rows.complete_transfer(read_table("transfer")),
        "baseline_scores": partial(table_rows.select_baselines, settings.protocols[0]),
        "tokens": table_rows.read_tokens,
        "sentence_pairs": read_sentence_pairs,
        "tasks": partial(pd.read_csv, STATISTICS),
        "studies": partial(published.read_table, "studies"),
        "settings_own": partial(deviations.list_without_counterpart, params),
        "checklist": partial(table_rows.fill_checklist, settings),
        "environment": lambda: list_environment(read_run_records()),
        "stages": lambda: pd.DataFrame(
            read_run_records(),
            columns=["stage", "seconds", "seconds_of_jobs", "started"],
        ),
    }
    for source in published.PAPERS:
        makers[f"settings_{source}"] = partial(deviations.compare, params, source)
        makers[f"open_{source}"] = partial(table_rows.list_unspecified, source)
    return read
