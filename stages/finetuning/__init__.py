"""Fine-tuning on the GLUE tasks: stage `finetuning`."""
