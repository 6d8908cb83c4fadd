"""Checks the published numbers against each other and against the released results.

Reads data/published and data/released. Writes data/audit/checks.csv: for every check what was printed, what follows
from it, and the verdict. It depends on no run, so it is computed once.
"""

from stages.audit import checks
from stages.evidence import measurements, released
from stages.plumbing.files import AUDIT, write_table
from stages.plumbing.settings import Settings


def main(settings: Settings) -> dict:
    write_table(AUDIT, checks.checks(measurements.measurements(released.observations())))
    return {}
