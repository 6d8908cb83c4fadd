"""What both forms of the report need to know about the papers' plain-text formulas."""

import re
from collections.abc import Callable

PART = re.compile(r"([\^_])(\w)")


def formula(text: str, escape: Callable[[str], str], marks: dict[str, str]) -> str:
    """Writes `h^2/n` with its powers raised and its indices lowered.

    Args:
        text: of the formula; `^` raises the one character behind it, `_` lowers it.
        escape: for the language that is written.
        marks: what `^` and `_` are there, with `{}` in the place of the character.
    """
    between = PART.split(text)[::3]
    signs = [marks[mark].format(escape(character)) for mark, character in PART.findall(text)]
    return "".join(f"{escape(plain)}{sign}" for plain, sign in zip(between, [*signs, ""], strict=True))
