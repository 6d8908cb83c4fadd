"""Zstandard compression: the standard library's module from Python 3.14 on, a backport for earlier versions."""

import sys

if sys.version_info >= (3, 14):
    from compression import zstd as zstd
else:
    from backports import zstd as zstd
