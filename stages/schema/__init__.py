"""params.yaml as validated records: sections, settings, scales. No result depends on this package."""
