"""Checks params.yaml before any other stage runs.

Reads params.yaml, as every stage does, and stops on a mistake. Writes data/settings.txt, whose content is always the
same: the stages that depend on it wait for the check, and do not run again because of it.
"""

from stages.common.benchmarks.glue import positive_classes
from stages.plumbing.files import CHECKED, write_atomically
from stages.plumbing.settings import Settings


def main(settings: Settings) -> None:
    positive_classes(settings.cross_domain)  # raises on a label that its task does not have
    write_atomically(CHECKED, "params.yaml has been checked.\n")
