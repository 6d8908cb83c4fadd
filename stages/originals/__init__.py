"""Finds the original files below data.root, and checks that the files exist and hold data."""
