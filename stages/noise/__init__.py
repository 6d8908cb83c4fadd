"""Fine-tuned models under noise, and probes of them: stage `noise`."""
