"""The stages of dvc.yaml, a folder each, and four folders that are none: common, plumbing, scales, tools."""
