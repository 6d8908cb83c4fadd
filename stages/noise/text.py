"""Noise in the words of an example: typos, dropped words, swapped words, at a given strength.

Not in the papers, which add noise to embeddings; readers ask what the same strength does in the text itself.
"""

import random

import pandas as pd

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def perturbed(frame: pd.DataFrame, kind: str, level: float, seed: int) -> pd.DataFrame:
    """Perturbs each text of some examples; none becomes empty.

    Args:
        frame: text_a and text_b (null for single sentences) of the examples.
        kind: a name in KINDS.
        level: the share of characters or words that are hit.
        seed: the draws of an example follow from it, kind, level and the example's number in the frame.
    """
    perturb = KINDS[kind]
    columns = {
        column: [
            text if pd.isna(text) else perturb(text, level, random.Random(f"{seed} {kind} {level} {number} {column}"))
            for number, text in enumerate(frame[column])
        ]
        for column in ("text_a", "text_b")
    }
    return frame.assign(**columns)


def _typos(text: str, level: float, draw: random.Random) -> str:
    """Each letter, with probability `level`, is left out, doubled, exchanged with the next or replaced."""
    characters, result, i = list(text), [], 0
    while i < len(characters):
        character, fate = characters[i], draw.randrange(4) if draw.random() < level else None
        if fate is None or not character.isalpha():
            result.append(character)
        elif fate == 1:
            result += [character, character]
        elif fate == 2:  # the last has no next one, and stays
            result += [*characters[i + 1 : i + 2], character]
            i += 1
        elif fate == 3:
            result.append(draw.choice(LETTERS))
        i += 1
    return "".join(result) if "".join(result).strip() else text


def _dropped_words(text: str, level: float, draw: random.Random) -> str:
    """Each word is left out with probability `level`; where all would be, the first stays."""
    words = text.split()
    return " ".join([word for word in words if draw.random() >= level] or words[:1])


def _swapped_words(text: str, level: float, draw: random.Random) -> str:
    """Each word, with probability `level`, changes places with the next; a word moves once."""
    words, i = text.split(), 0
    while i + 1 < len(words):
        if draw.random() < level:
            words[i], words[i + 1] = words[i + 1], words[i]
            i += 1
        i += 1
    return " ".join(words)


KINDS = {"typos": _typos, "dropped_words": _dropped_words, "swapped_words": _swapped_words}
