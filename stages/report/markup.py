"""What both forms of the report need to know about the papers' plain-text formulas."""

import re

PART = re.compile(r"([\^_])(\w)")


def formula(text: str) -> list[tuple[str, str]]:
    """Splits `h^2/n` into [("", "h"), ("^", "2"), ("", "/n")]; marks take one character, `^` raises, `_` lowers."""
    parts, end = [], 0
    for match in PART.finditer(text):
        parts += [("", text[end : match.start()]), (match[1], match[2])]
        end = match.end()
    return [part for part in [*parts, ("", text[end:])] if part[1]]
