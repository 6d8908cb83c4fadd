"""Quality warnings by the rules of OSCAR's producer (oscar-project/ungoliant, src/transformers).

OSCAR's documentation states 400 bytes for a short sentence; the annotations of its records follow 100, as for
header and footer: these rules give the annotations of the 63 real records of OSCAR 22.01 that the tests read.
"""

FEW_LINES = 5  # a document of fewer is tiny
SHORT = 100  # bytes; a line of fewer is short
EDGE = 0.2  # share of the lines that are header, and footer
MOST = 0.5  # share of short lines, or of characters that are no letters, above which there is a warning


def warnings(text: str) -> tuple[str, ...]:
    """Of `tiny`, `short_sentences`, `header`, `footer`, `noisy` those that apply, in this order."""
    short = [len(line.encode()) < SHORT for line in text.split("\n")]
    edge = int(len(short) * EDGE)
    applies = {
        "tiny": len(short) < FEW_LINES,
        "short_sentences": sum(short) > MOST * len(short),
        "header": sum(short[:edge]) > MOST * edge,
        "footer": sum(short[len(short) - edge :]) > MOST * edge,
        "noisy": sum(map(str.isalpha, text)) < (1 - MOST) * len(text),
    }
    return tuple(name for name, applied in applies.items() if applied)
