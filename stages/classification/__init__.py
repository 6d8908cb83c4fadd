"""Fine-tuning on GLUE: the training loop, the runs as jobs, and the models that are kept."""
