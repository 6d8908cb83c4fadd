"""The digest of a Python file's code, for fingerprints of jobs and for users' operators."""

import runpy
from pathlib import Path

# `attention`, a package that can be copied alone, has the function. Loaded by path, because an import of the package
# would import torch.
_SOURCE = Path(__file__).parents[1] / "attention" / "source.py"
compute_source_digest = runpy.run_path(str(_SOURCE))["compute_source_digest"]
