"""Benchmarks of speed: `python -m stages.tools.benchmarks.NAME --help`."""
