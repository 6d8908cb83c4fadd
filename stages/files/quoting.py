"""Quotes foreign text in messages: values and lines of files, names of columns, errors of libraries."""

import re

# characters
LONGEST = 80
# Control characters except tab and line feed, which may steer a terminal, marks that change the direction of text
# (Unicode Annex 9), so that a reader sees other words than the text has, and halves of surrogate pairs.
CONTROLS = re.compile(r"[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def quote_value(value: object) -> str:
    r"""Formats a value for an error message as Python writes it, at most 80 characters: a tab gives `'\t'`.

    An exception has no quotation marks or line breaks. A longer text loses the middle.
    """
    text = repr(value)
    if isinstance(value, Exception):
        on_one_line = " ".join(str(value).split())
        # escaped, but without quotation marks
        text = repr(on_one_line)[1:-1]
    if len(text) <= LONGEST:
        return text
    # libraries say at the beginning what is wrong, and at the end where or why
    return f"{text[: LONGEST // 2]}…{text[1 - LONGEST // 2 :]}"


def quote_bare(value: object) -> str:
    """Formats a value for an error message without quotation marks, escaped and at most 80 characters."""
    return quote_value(str(value))[1:-1]


def show_controls(text: str) -> str:
    r"""Replaces control characters by their names in Python: an ESC becomes the four characters `\x1b`."""
    return CONTROLS.sub(lambda match: repr(match[0])[1:-1], text)
