"""A folder for every stage of dvc.yaml, under its name; beside them stands what several stages use (see README.md)."""

import sys

# before any other module of ours, whose syntax an earlier version cannot read; nor could it read an f-string
if sys.version_info < (3, 11):  # noqa: UP036, because `python` may be found outside the environment
    found = "error: Python " + sys.version.split()[0] + " (" + sys.executable + "), expected 3.11 or later; "
    sys.exit(found + "activate the environment of this repository")
