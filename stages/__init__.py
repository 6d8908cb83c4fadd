"""A folder for every stage of dvc.yaml, under its name, and beside them what several stages use (README.md lists it)."""
