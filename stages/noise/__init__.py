"""Evaluation of fine-tuned models under noise, and measurements inside them: stage `noise`."""
