"""Speed of training with every operator: stage `timing`."""
