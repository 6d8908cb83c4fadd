"""The training recipe: masked-LM objective, optimiser and schedule, checkpoints, pre-training and fine-tuning loops."""
