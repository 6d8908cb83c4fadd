"""Stage `baselines`: scores of answers that need no model."""
