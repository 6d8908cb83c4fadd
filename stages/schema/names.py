"""Checks names that a user gives against the allowed names."""

import difflib
from collections.abc import Collection, Iterable

from stages.files.quoting import quote_value

# names that readers of CSV files take for a missing value, a number or a truth value, also in capitals
NO_TEXTS = ("nan", "na", "n/a", "null", "none", "inf", "infinity", "true", "false")


def require_text(name: str, where: str = "") -> str:
    """Returns the name; ValueError, which begins with `where`, for "nan" or "true", which pandas reads as no text."""
    if name.lower() in NO_TEXTS:
        raise ValueError(f"{where}`{name}` is no text for readers of CSV files, such as pandas; choose another name")
    return name


def require_listed(value: str, key: str, allowed: Collection[str], where: str) -> None:
    """Checks that a name given by a user is one of the allowed names.

    For the message, `key` is the key of params.yaml, or the command-line argument, that has the name, and `where`
    describes the allowed names, such as "the operators".

    Raises:
        ValueError: the name is not allowed; the message lists the allowed names.
    """
    if value not in allowed:
        listed = ", ".join(allowed) or "none"
        raise ValueError(f"{key}: {quote_value(value)} is not in {where}: {listed}{suggest_name(value, allowed)}")


def suggest_name(given: str, allowed: Iterable[str]) -> str:
    """Suggests the allowed name nearest to a misspelt name: "; did you mean `steps`?" for "stepz"; or nothing."""
    near = difflib.get_close_matches(given, allowed, n=1)
    return f"; did you mean `{near[0]}`?" if near else ""
