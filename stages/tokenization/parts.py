"""Cuts long documents into parts, which bound the memory of encoding, and of training a vocabulary."""

import re
from collections.abc import Iterator
from typing import NamedTuple

# characters that are encoded at once; a longer document is encoded in parts
LONGEST = 1 << 20
# the characters that BERT takes for a space; BERT deletes some other characters that Python calls white space
SPACE = re.compile(r"[ \t\n\r]")


class Part(NamedTuple):
    """A part of a document: the text, and whether the part begins and ends the document."""

    text: str
    begins: bool
    ends: bool


def cut_parts(text: str, longest: int = LONGEST) -> Iterator[Part]:
    """Cuts a long text at the first space after every `longest` characters, where BERT's pre-tokenizer cuts anyway.

    "one two three" with longest=4 gives "one two" and " three".
    """
    start = 0
    while len(text) - start > longest:
        space = SPACE.search(text, start + longest)
        if not space:
            break
        stop = space.start()
        yield Part(text[start:stop], begins=start == 0, ends=False)
        start = stop
    yield Part(text[start:], begins=start == 0, ends=True)
