"""Masked-LM pre-training: stage `pretraining`."""
