"""Checks of the published numbers against each other and against the released results: stage `audit`."""
