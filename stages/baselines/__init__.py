"""Stage `baselines`: scores of answers that need no neural network."""
