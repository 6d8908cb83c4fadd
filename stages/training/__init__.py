"""Shared parts of training: optimiser, seeds, precision, batches, checkpoints, processes, clocks."""
