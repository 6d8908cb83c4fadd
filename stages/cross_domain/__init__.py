"""Models fine-tuned on a task and tested on other tasks: stage `cross_domain`."""
