"""Checks names that a user gives against the allowed names."""

import difflib
from collections.abc import Collection, Iterable


def require_listed(value: str, key: str, allowed: Collection[str], where: str) -> None:
    """Checks that a name given by a user is one of the allowed names.

    Args:
        value, key: the name, and the key of params.yaml, or the argument of the command line, that holds it.
        allowed, where: the allowed names, and what lists them, for the message.

    Raises:
        ValueError: the name is not allowed; the message lists the allowed ones and suggests the nearest.
    """
    if value not in allowed:
        near = did_you_mean(value, allowed)
        raise ValueError(f"{key}: `{value}` is not in {where}: {', '.join(allowed) or 'none'}{near}")


def did_you_mean(given: str, allowed: Iterable[str]) -> str:
    """Returns the end of an error message, suggesting the allowed name nearest to `given`; "" if difflib has none."""
    near = difflib.get_close_matches(given, allowed, n=1)
    return f"; did you mean `{near[0]}`?" if near else ""
