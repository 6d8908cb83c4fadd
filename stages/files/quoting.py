"""Quotes foreign text in messages: values and lines of files, names of columns, errors of libraries."""

# characters
LONGEST = 80


def quote_value(value: object) -> str:
    r"""Formats a value for an error message as Python writes it, at most 80 characters: a tab gives `'\t'`.

    An exception has no quotation marks or line breaks. A longer text loses the middle.
    """
    text = repr(value)
    if isinstance(value, Exception):
        text = repr(" ".join(str(value).split()))[1:-1]
    if len(text) <= LONGEST:
        return text
    # libraries say at the beginning what is wrong, and at the end where or why
    return f"{text[: LONGEST // 2]}…{text[1 - LONGEST // 2 :]}"


def quote_bare(value: object) -> str:
    """Formats a value as `quote_value` does, without quotation marks."""
    return quote_value(str(value))[1:-1]
