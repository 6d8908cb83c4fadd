"""Evaluation of fine-tuned models under noise: stage `noise`."""
