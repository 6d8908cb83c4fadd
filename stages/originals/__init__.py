"""The original files below data.root: where they are, and whether they are there."""
