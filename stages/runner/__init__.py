"""Runs jobs: worker pool, results, fingerprints. No result depends on this package."""
