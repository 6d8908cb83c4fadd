"""Metadata for documents that lack it: OSCAR 22.01, plain text. What a record has is kept as it is.

Categories from UT1 blocklists (blocklists.py), harmful perplexity from a KenLM model (perplexity.py), quality
warnings by OSCAR's own rules (quality.py). The rules read them; they are never written into a record.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from stages.filtering import blocklists, perplexity, quality
from stages.records import records
from stages.records.records import Annotations


def missing(document: Annotations) -> list[str]:
    """The metadata that a document lacks.

    A perplexity of 0 is none: OSCAR's are positive (and the authors' code reads it so).
    """
    names = [] if document.harmful_pp else ["harmful_pp"]
    if document.categories is UNSET:
        names.append("categories")
    if document.quality_warnings is UNSET and document.annotation is UNSET:
        names.append("quality_warnings")
    return names


class Annotator:
    """blocklists: folder of a compiled blocklist. kenlm_model: path. quality_rules: whether warnings are computed.

    None, and False: that metadata stays unknown. `unknown` counts the documents of which it did.
    ValueError when a list or the model cannot be loaded.
    """

    def __init__(self, blocklists_folder: str | None, kenlm_model: str | None, quality_rules: bool):
        self.unknown = Counter(categories=0, harmful_pp=0, quality_warnings=0)
        self._ways: dict[str, Callable[[str, str | None], Any]] = {}  # of text and address; None where it stays unknown
        if blocklists_folder:
            categories = blocklists.Blocklist(Path(blocklists_folder)).categories
            self._ways["categories"] = lambda _, address: None if address is None else categories(address)
        if kenlm_model:
            model = perplexity.load(Path(kenlm_model))
            self._ways["harmful_pp"] = lambda text, _: perplexity.score(model, text)
        if quality_rules:
            self._ways["quality_warnings"] = lambda text, _: quality.warnings(text)

    def __call__(self, line: bytes, document: Annotations) -> Annotations:
        """The metadata of a record with what could be added. ValueError: what it would follow from cannot be read."""
        added = {}
        text, address = records.source(line) if self._ways else ("", None)
        for name in missing(document):
            value = self._ways[name](text, address) if name in self._ways else None
            if value is None:
                self.unknown[name] += 1
            else:
                added[name] = value
        return replace(document, **added) if added else document
