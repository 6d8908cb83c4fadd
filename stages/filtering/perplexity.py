"""Harmful perplexity: of a whole document under a KenLM model of harmful text, as in OSCAR 23.01.

The document is one string with spaces for newlines, not normalised otherwise (oscar-project/ungoliant,
src/transformers/kenlm); the models are oscar-corpus/harmful-kenlms of the hub. The lower, the more harmful.
Needs the optional package `kenlm` (pip install '.[kenlm]').
"""

from pathlib import Path


def load(path: Path):
    """A kenlm.Model, ARPA or binary (which is memory-mapped). ValueError when it cannot be loaded."""
    if not path.is_file():
        raise ValueError(f"filtering.annotation.kenlm_model: {path}: no such file; fetch the model, or say null")
    try:
        import kenlm  # pyright: ignore[reportMissingImports]  # an extra
    except ImportError:
        raise ValueError(
            "filtering.annotation.kenlm_model needs the package kenlm; run `pip install '.[kenlm]'`, or say null"
        ) from None
    try:
        return kenlm.Model(str(path))
    except (OSError, RuntimeError, UnicodeError) as error:
        raise ValueError(
            f"filtering.annotation.kenlm_model: {path}: not a KenLM model ({error}); fetch it again, or say null"
        ) from None


def score(model, text: str) -> float:
    """Perplexity a word, the end of the text counted as one."""
    return model.perplexity(text.replace("\n", " "))
