"""The kinds of documents that the corpus is planted with: sound ones, and everything that the filter must drop.

A kind fixes the metadata and the look of its documents; `plan` says how many of each a corpus holds.
"""

import string
from dataclasses import dataclass
from random import Random

from stages.embedded.passages import document, glossary
from stages.embedded.world import ALL_TOPICS, draw_scene

HARMFUL_CATEGORIES = (
    *("agressif", "adult", "cryptojacking", "dangerous_material", "phishing", "warez", "ddos", "hacking", "malware"),
    *("mixed_adult", "sect"),
)  # Courtois et al. 2024, Appendix A
HARMLESS_CATEGORIES = ("blog", "press", "shopping", "sports")
WARNINGS = ("tiny", "short_sentences", "header", "footer", "noisy")
MENU = ("Home", "About us", "Contact", "Log in", "Sign up", "Search", "Privacy", "Next page", "Share", "Site map")


@dataclass(frozen=True)
class Kind:
    """share: of all documents, in [0, 1]. harmful_pp: the level of their perplexity under a model of harmful text:
    "usual" (20 to 90000), "low" (at most 5), "high" (at least 100000), "zero" or "null" (no value). categories (of the
    web address, by blocklists), warnings (on quality): those that every document of the kind is tagged with."""

    name: str
    share: float
    harmful_pp: str = "usual"
    categories: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


SOUND = Kind("sound", 1.0)  # `plan` gives it what the others leave
KINDS = (
    *(Kind(f"category:{category}", 0.01, categories=(category,)) for category in HARMFUL_CATEGORIES),
    *(Kind(f"harmful_pp:{level}", 0.02, harmful_pp=level) for level in ("low", "high", "zero", "null")),
    *(Kind(f"warning:{warning}", 0.02, warnings=(warning,)) for warning in WARNINGS),
    Kind("combined:categories", 0.01, categories=("adult", "blog", "phishing")),
    Kind("combined:category,harmful_pp", 0.01, "low", ("mixed_adult",)),
    Kind("combined:category,warning", 0.01, categories=("hacking",), warnings=("noisy",)),
    Kind("combined:warnings", 0.01, warnings=("short_sentences", "header", "footer")),
    Kind("combined:all", 0.01, "high", ("malware",), ("tiny", "short_sentences")),
)
MALFORMED = ("malformed:not_json", "malformed:truncated", "malformed:no_content")


def plan(documents: int) -> dict[str, int]:
    """Returns how many of the `documents` lines are of each kind, by its name: of all but malformed ones one at least.

    One in 250, rounded down, is malformed, in each of three ways in turn. ValueError for fewer than two documents for
    each kind with a defect, of which hardly any would be sound.
    """
    least = 2 * (len(KINDS) + len(MALFORMED))
    if documents < least:
        raise ValueError(f"embedded corpus: {documents} documents are too few; at least {least} are needed")
    counts = {kind.name: max(1, round(documents * kind.share)) for kind in KINDS}
    malformed = documents // 250
    for position, name in enumerate(MALFORMED):
        counts[name] = len(range(position, malformed, len(MALFORMED)))
    return {SOUND.name: documents - sum(counts.values()), **counts}


def lines_for(rng: Random, warnings: tuple[str, ...]) -> list[str]:
    """Draws the lines of a document that deserves the warnings, as OSCAR's producer (ungoliant) defines them.

    warnings: out of WARNINGS, none for a sound document. tiny: fewer than 5 lines. short_sentences, header, footer:
    more than half of all lines, of the first fifth, of the last fifth, respectively, have fewer than 100 characters.
    noisy: more than half of the characters are not letters.
    """
    lines = document(rng)
    if "noisy" in warnings:
        signs = string.punctuation + string.digits  # three or more for each letter, as no line has below 100 characters
        lines = ["".join(rng.choice(signs) for _ in range(len(line) + 20)) + line[:40] for line in lines]
    if "header" in warnings:
        lines = [rng.choice(MENU) for _ in range(4)] + lines
    if "footer" in warnings:
        lines = lines + [rng.choice(MENU) for _ in range(4)]
    if "short_sentences" in warnings:
        scene = draw_scene(rng, ALL_TOPICS)
        short = [glossary(rng, scene)[0] for _ in range(len(lines) + 2)]
        middle = len(lines) // 2
        lines = lines[:middle] + short + lines[middle:]
    if "tiny" in warnings:
        lines = lines[len(lines) // 2 :][: rng.randint(1, 4)]  # where short sentences stand, if any
    return lines


def perplexity_for(rng: Random, level: str, number: int) -> float | None:
    """Draws a harmful_pp, None for the level "null". The first low and high ones lie exactly on the paper's bounds.

    Args:
        rng, level: what draws it, and `harmful_pp` of a `Kind`.
        number: of the document among those of its kind, from 0.
    """
    if level in ("null", "zero"):
        return None if level == "null" else 0.0
    if level == "low":
        return 5.0 if number == 0 else round(rng.uniform(0.5, 4.9), 4)
    if level == "high":
        return 100000.0 if number == 0 else round(rng.uniform(100001, 900000), 2)
    return round(min(90000.0, max(20.0, rng.lognormvariate(6.5, 1.0))), 4)
