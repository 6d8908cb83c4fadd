"""Fine-tuning from intermediate checkpoints: stage `convergence`."""
