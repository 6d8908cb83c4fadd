"""What `dvc repro` will take: `python -m stages.tools.planner`."""
