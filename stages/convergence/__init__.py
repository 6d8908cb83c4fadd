"""Fine-tuning from intermediate models: stage `convergence`."""
