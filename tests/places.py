"""The folder of the repository, for all tests."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
