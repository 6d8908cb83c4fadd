"""Parameters of every operator at every size: stage `parameters`."""
