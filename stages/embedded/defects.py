"""Defines the kinds of documents in the generated corpus: sound documents, and documents that the filter must drop."""

import string
from pathlib import Path
from random import Random

import yaml

from stages.embedded.passages import draw_document, draw_glossary
from stages.embedded.world import draw_scene

_TABLES = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
KINDS = _TABLES["kinds"]
HARMLESS_CATEGORIES = _TABLES["harmless_categories"]
MALFORMED = ("malformed:not_json", "malformed:truncated", "malformed:no_content")


def plan_defects(documents: int) -> dict[str, int]:
    """Plans how many documents of a generated corpus have which defect.

    Each kind gets at least one document. One in 250 documents, rounded down, is malformed, in each of three ways in
    turn.

    Args:
        documents: number of documents of the corpus.

    Returns:
        The number of documents by kind: 1,000 documents have 656 `sound` and 20 `warning:tiny`, for example.

    Raises:
        ValueError: fewer than two documents for each kind with a defect, so that hardly any would be sound.
    """
    least = 2 * (len(KINDS) - 1 + len(MALFORMED))
    if documents < least:
        raise ValueError(f"embedded corpus: {documents} documents are too few; ask for at least {least}")
    counts = {}
    for name, kind in KINDS.items():
        counts[name] = max(1, round(documents * kind["share"]))
    malformed = documents // 250
    for position, name in enumerate(MALFORMED):
        counts[name] = len(range(position, malformed, len(MALFORMED)))
    # Sound documents are all documents at first, and then make room.
    counts["sound"] -= sum(counts.values()) - documents
    return counts


def draw_lines(rng: Random, warnings: list[str]) -> list[str]:
    """Draws the lines of a document that deserves some warnings, as OSCAR's pipeline (ungoliant) defines the warnings.

    Args:
        rng: source of all choices.
        warnings: warnings of OSCAR, empty for a sound document:
            tiny: the document has fewer than 5 lines;
            short_sentences: more than half of all lines have fewer than 100 characters;
            header: more than half of the first fifth of the lines have fewer than 100 characters;
            footer: more than half of the last fifth of the lines have fewer than 100 characters;
            noisy: more than half of the characters are not letters.
    """
    lines = draw_document(rng)
    if "noisy" in warnings:
        lines = [_add_noise(rng, line) for line in lines]
    if "header" in warnings:
        lines = _draw_menu(rng) + lines
    if "footer" in warnings:
        lines = lines + _draw_menu(rng)
    if "short_sentences" in warnings:
        scene = draw_scene(rng)
        short = [draw_glossary(rng, scene)[0] for _ in range(len(lines) + 2)]
        middle = len(lines) // 2
        lines = [*lines[:middle], *short, *lines[middle:]]
    if "tiny" in warnings:
        # From the middle, where short sentences stand, if any.
        start = len(lines) // 2
        lines = lines[start : start + rng.randint(1, 4)]
    return lines


def _add_noise(rng: Random, line: str) -> str:
    """Returns the first 40 characters of a line after random signs, which outnumber the letters by far."""
    signs = [rng.choice(string.punctuation + string.digits) for _ in range(len(line) + 20)]
    return "".join(signs) + line[:40]


def _draw_menu(rng: Random) -> list[str]:
    return [rng.choice(_TABLES["menu"]) for _ in range(4)]


def draw_perplexity(rng: Random, level: str, number: int) -> float | None:
    """Draws the perplexity of a document under OSCAR's model of harmful content (`harmful_pp`).

    Args:
        rng: source of all choices.
        level: `null` (no value), `zero`, `low` (at most 5), `high` (at least 100,000) or `usual`. The bounds are the
            paper's.
        number: index of the document among the documents of the kind, from 0. The first low value and the first high
            value lie exactly on a bound.
    """
    if level == "null":
        return None
    if level == "zero":
        return 0.0
    if level == "low":
        return 5.0 if number == 0 else round(rng.uniform(0.5, 4.9), 4)
    if level == "high":
        return 100000.0 if number == 0 else round(rng.uniform(100001, 900000), 2)
    usual = rng.lognormvariate(6.5, 1.0)
    return round(min(90000.0, max(20.0, usual)), 4)
