"""Noise in the words of an example: typos, dropped words or swapped words, at a given strength.

It is not in the papers, which add noise to embeddings; it answers what noise of the same level does in the text itself.
Words are what white space separates; where words are dropped or swapped, one space stands between two of them.
"""

import random
from string import ascii_lowercase

import pandas as pd


def perturbed(frame: pd.DataFrame, kind: str, level: float, seed: int) -> pd.DataFrame:
    """Returns a copy of a frame with each text perturbed; none that has a word becomes empty.

    Args:
        frame: the examples, with columns text_a and text_b (null, which stays, for an example of one text).
        kind: a name in KINDS.
        level: the probability with which a letter or a word is hit, in [0, 1]; above 1, all are hit.
        seed: the draws of a text follow from it, the kind, the level, the column and the number of its row, from 0.
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
    """Leaves out, doubles, exchanges with the next character or replaces each letter, with probability `level`.

    The four are equally likely. A character that changed places with a letter is not hit again, and a replacement is a
    random lower-case letter, perhaps the same. A text of which nothing but white space would remain is returned as is.
    """
    characters, result, i = list(text), [], 0
    while i < len(characters):
        character, fate = characters[i], draw.randrange(4) if draw.random() < level else None
        if fate is None or not character.isalpha():  # fate 0, of a letter, leaves it out
            result.append(character)
        elif fate == 1:
            result += [character, character]
        elif fate == 2:  # the last character has no next one, and stays
            result += [*characters[i + 1 : i + 2], character]
            i += 1
        elif fate == 3:
            result.append(draw.choice(ascii_lowercase))
        i += 1
    return "".join(result) if "".join(result).strip() else text


def _dropped_words(text: str, level: float, draw: random.Random) -> str:
    """Leaves out each word with probability `level`; where none would remain, the first one stays."""
    words = text.split()
    return " ".join([word for word in words if draw.random() >= level] or words[:1])


def _swapped_words(text: str, level: float, draw: random.Random) -> str:
    """Exchanges each word with the next, with probability `level`; a word that has moved does not move again."""
    words, i = text.split(), 0
    while i + 1 < len(words):
        if draw.random() < level:
            words[i], words[i + 1] = words[i + 1], words[i]
            i += 1
        i += 1
    return " ".join(words)


KINDS = {"typos": _typos, "dropped_words": _dropped_words, "swapped_words": _swapped_words}
