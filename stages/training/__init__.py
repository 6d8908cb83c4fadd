"""What all training has in common: optimiser, seeds, precision, batches, checkpoints, processes, and its timing."""
