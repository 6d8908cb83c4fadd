"""Paths, files, observations and model folders. No result depends on this package."""
