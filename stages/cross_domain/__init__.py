"""Models fine-tuned on one task and tested on others: stage `cross_domain`."""
