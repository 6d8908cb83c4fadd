"""The embedded world: a generated corpus and generated GLUE tasks, so that the whole chain runs without a download."""
