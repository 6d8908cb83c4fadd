"""A folder for every stage of dvc.yaml, under its name; beside them stands what several stages use (see README.md)."""
