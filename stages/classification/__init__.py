"""Fine-tuning on GLUE: the training loop, its runs as jobs, and the models that are kept."""
