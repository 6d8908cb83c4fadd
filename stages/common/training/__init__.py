"""What all training has in common: optimiser, seeds, precision, checkpoints, processes, the machine's pace."""
