"""Benchmarks: the tasks on which models are compared, their original files and their metrics."""
