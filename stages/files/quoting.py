"""Quotes foreign text in messages: values and lines of files, names of columns, errors of libraries."""

# characters
LONGEST = 80


def quote_value(value: object) -> str:
    r"""Returns a value as Python writes it, "a\tb" as "'a\\tb'", in at most LONGEST characters.

    The text of an exception stands without quotation marks and on one line. A longer text loses its middle, because
    libraries say at the beginning what is wrong, and at the end where or why.
    """
    text = repr(value)
    if isinstance(value, Exception):
        text = repr(" ".join(str(value).split()))[1:-1]
    if len(text) <= LONGEST:
        return text
    return f"{text[: LONGEST // 2]}…{text[1 - LONGEST // 2 :]}"


def quote_bare(value: object) -> str:
    """Returns the text of a value as `quote_value` does, without quotation marks."""
    return quote_value(str(value))[1:-1]
