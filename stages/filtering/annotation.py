"""Metadata for documents that lack some: OSCAR 22.01, plain text. Metadata that a record has are kept as they are.

Categories come from UT1 blocklists (blocklists.py), harmful perplexity from a KenLM model, and quality warnings from
the rules of OSCAR's producer. The filter's rules read what is computed here; it is never written into a record.
"""

from collections import Counter
from pathlib import Path

from msgspec import UNSET
from msgspec.structs import replace

from stages.filtering import blocklists
from stages.records import records
from stages.records.records import Annotations

FEW_LINES = 5  # a document of fewer is tiny
SHORT = 100  # bytes; a line of fewer is short
EDGE = 0.2  # the header is this share of the lines, and the footer as much
MOST = 0.5  # share of short lines, or of characters that are no letters, above which there is a warning


def quality_warnings(text: str) -> tuple[str, ...]:
    """Returns a text's quality warnings, by the rules of OSCAR's producer (oscar-project/ungoliant, src/transformers).

    OSCAR's documentation calls a line of `short_sentences` short below 400 bytes; its records follow 100, as for header
    and footer: these rules give the annotations of the 63 real records of OSCAR 22.01 that the tests read.
    """
    short = [len(line.encode()) < SHORT for line in text.split("\n")]
    lines = len(short)
    edge = int(lines * EDGE)
    letters = sum(map(str.isalpha, text))
    warnings = []
    if lines < FEW_LINES:
        warnings.append("tiny")
    if sum(short) > MOST * lines:
        warnings.append("short_sentences")
    if sum(short[:edge]) > MOST * edge:
        warnings.append("header")
    if sum(short[lines - edge :]) > MOST * edge:
        warnings.append("footer")
    # line feeds are characters, too
    if letters < (1 - MOST) * len(text):
        warnings.append("noisy")
    return tuple(warnings)


def load_kenlm(path: Path):
    """Loads a kenlm.Model, ARPA or binary (which is memory-mapped), such as oscar-corpus/harmful-kenlms of the hub.

    This needs the optional package `kenlm` (pip install '.[kenlm]'). ValueError when the model cannot be loaded.
    """
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


def harmful_perplexity(model, text: str) -> float:
    """Computes the harmful perplexity of a whole document as OSCAR 23.01 does: the lower, the more harmful.

    The document is one string with spaces for newlines, not normalised otherwise (oscar-project/ungoliant,
    src/transformers/kenlm). model: of `load_kenlm`. Returns the perplexity per word; the text's end counts as a word.
    """
    return model.perplexity(text.replace("\n", " "))


def missing(document: Annotations) -> list[str]:
    """Names the metadata that a document lacks: `harmful_pp`, `categories`, `quality_warnings`, in this order.

    UNSET says that the record lacks the key, None that none applies; `annotation` is OSCAR 22.01's name for the
    warnings. A perplexity of 0 counts as missing: OSCAR's are positive (and the code of Courtois et al. reads it so).
    """
    names = [] if document.harmful_pp else ["harmful_pp"]
    if document.categories is UNSET:
        names.append("categories")
    if document.quality_warnings is UNSET and document.annotation is UNSET:
        names.append("quality_warnings")
    return names


class Annotator:
    """Computes the metadata that documents lack. ValueError when the model cannot be loaded.

    blocklists_folder: where `compile_lists` left its files, for categories. kenlm_model: path of the model that gives
    harmful_pp. quality_rules: whether warnings are computed. With None, or False, that kind of metadata stays unknown
    where it is missing. `unknown`: for each kind the number of documents of which it stayed unknown so far.
    """

    def __init__(self, blocklists_folder: str | None, kenlm_model: str | None, quality_rules: bool):
        self.unknown = Counter(categories=0, harmful_pp=0, quality_warnings=0)
        self._blocklist = blocklists.Blocklist(Path(blocklists_folder)) if blocklists_folder else None
        self._model = load_kenlm(Path(kenlm_model)) if kenlm_model else None
        self._quality_rules = quality_rules

    def __call__(self, line: bytes, document: Annotations) -> Annotations:
        """Returns a record's metadata with what could be added, and counts what could not.

        line: the record. document: its metadata. ValueError when its text or its address cannot be read.
        """
        if not (self._blocklist or self._model or self._quality_rules):
            self.unknown.update(missing(document))
            return document
        text, address = records.source(line)
        for name in missing(document):
            value = self._compute(name, text, address)
            if value is None:
                self.unknown[name] += 1
            else:
                document = replace(document, **{name: value})
        return document

    def _compute(self, name: str, text: str, address: str | None) -> tuple[str, ...] | float | None:
        """Computes one kind of metadata of a document; None if the kind stays unknown."""
        if name == "categories" and self._blocklist and address is not None:
            return self._blocklist.categories(address)
        if name == "harmful_pp" and self._model:
            return harmful_perplexity(self._model, text)
        if name == "quality_warnings" and self._quality_rules:
            return quality_warnings(text)
        return None
