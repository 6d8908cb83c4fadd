"""Zstandard as the standard library has it from Python 3.14 on, before that from the package that brings it back."""

import sys

if sys.version_info >= (3, 14):
    from compression import zstd as zstd
else:
    from backports import zstd as zstd
