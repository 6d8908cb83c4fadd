"""Noise in the words of an example: typos, dropped words or swapped words, at a given strength.

The papers add noise to embeddings only. Noise in the text is our addition, at the same levels. Words are separated by
white space; after dropping or swapping, by a space.
"""

import random
from string import ascii_lowercase

import pandas as pd


def perturb_frame(
    frame: pd.DataFrame,
    kind: str,
    level: float,
    seed: int,
) -> pd.DataFrame:
    """Copies a frame with noise in each text; a text that has a word does not become empty.

    Args:
        frame: The examples, with columns `text_a` and `text_b` (null, which stays, for an example of a single text).
        kind: Kind of noise: typos, dropped_words or swapped_words.
        level: Probability with which a letter or a word is changed, in [0, 1]; above 1, all are changed.
        seed: Noise seed. The draws of a text depend on seed, kind, level, column and row number only.
    """
    perturb = KINDS[kind]
    columns = {}
    for column in ("text_a", "text_b"):
        texts = []
        for number, text in enumerate(frame[column]):
            if not pd.isna(text):
                # Every text has separate draws, so one text changes no other.
                draw = random.Random(f"{seed} {kind} {level} {number} {column}")
                text = perturb(text, level, draw)
            texts.append(text)
        columns[column] = texts
    return frame.assign(**columns)


def make_typos(text: str, level: float, draw: random.Random) -> str:
    """Makes a typo at each letter with probability `level`: an omission, repetition, swap or replacement.

    The four typos are equally likely. A swap is with the next character, which is not changed again. A replacement is a
    random lower-case letter. With a swap at every letter, `abcde` becomes `badce`. A text that would have only white
    space left stays.

    Args:
        text: the text.
        level: the probability, in [0, 1].
        draw: source of the random numbers.
    """
    result = []
    place = 0
    while place < len(text):
        character = text[place]
        place += 1
        typo = draw.randrange(4) if draw.random() < level else None
        if typo is None or not character.isalpha():
            result.append(character)
        elif typo == 1:
            result += [character, character]
        elif typo == 2:
            # The last character has no next character, and stays.
            result += [text[place : place + 1], character]
            place += 1
        elif typo == 3:
            result.append(draw.choice(ascii_lowercase))
    # A text of which only white space would remain stays.
    changed = "".join(result)
    return changed if changed.strip() else text


def drop_words(text: str, level: float, draw: random.Random) -> str:
    """Leaves out each word with probability `level`: "a b c" may become "a c". At least the first word stays."""
    words = text.split()
    kept = [word for word in words if draw.random() >= level]
    return " ".join(kept or words[:1])


def swap_words(text: str, level: float, draw: random.Random) -> str:
    """Exchanges each word with the next, with probability `level`: "a b c" becomes "b a c" at level 1.

    A word that has moved does not move again.
    """
    words = text.split()
    place = 0
    while place + 1 < len(words):
        if draw.random() < level:
            words[place], words[place + 1] = words[place + 1], words[place]
            place += 1
        place += 1
    return " ".join(words)


KINDS = {"typos": make_typos, "dropped_words": drop_words, "swapped_words": swap_words}
