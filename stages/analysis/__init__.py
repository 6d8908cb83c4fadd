"""Statistics, comparisons with published and released numbers, and verdicts on claims: stage `analysis`."""
