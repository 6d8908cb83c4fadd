"""Both editions of Kowsher et al., by the prefixes of their checks, and their tables."""

from stages.evidence.arithmetic import Numbers, numbers

EDITIONS = {"K24": "kowsher2024_arxiv", "K25": "kowsher2025_naacl"}
OPERATORS = ("original", "symmetric", "pairwise", "shared")


def table(edition: str, name: str) -> Numbers:
    """The printed cells of a table, such as `table1_glue`, of an edition."""
    return numbers(f"{EDITIONS[edition]}_{name}")
