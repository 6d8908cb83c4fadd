"""Metadata for documents that lack it: OSCAR 22.01, plain text. What a record has is kept as it is.

Categories from UT1 blocklists (blocklists.py), harmful perplexity from a KenLM model (perplexity.py), quality
warnings by OSCAR's own rules (quality.py). The rules read them; they are never written into a record.
"""

from collections import Counter
from pathlib import Path

from msgspec import UNSET
from msgspec.structs import replace

from stages.filtering import blocklists, perplexity, quality
from stages.records import records
from stages.records.records import Annotations


def is_complete(document: Annotations) -> bool:
    """A score of 0 is none: OSCAR's perplexities are positive (and the authors' code reads it so)."""
    return (
        bool(document.harmful_pp)
        and document.categories is not UNSET
        and (document.quality_warnings is not UNSET or document.annotation is not UNSET)
    )


class Annotator:
    """blocklists: folder of a compiled blocklist. kenlm_model: path. quality_rules: whether warnings are computed.

    None, and False: that metadata stays unknown. `unknown` counts the documents of which it did.
    ValueError when a list or the model cannot be loaded.
    """

    def __init__(self, blocklists_folder: str | None, kenlm_model: str | None, quality_rules: bool):
        self._blocklist = blocklists.Blocklist(Path(blocklists_folder)) if blocklists_folder else None
        self._model = perplexity.load(Path(kenlm_model)) if kenlm_model else None
        self._quality_rules = quality_rules
        self._adds = self._blocklist or self._model or quality_rules
        self.unknown = Counter(categories=0, harmful_pp=0, quality_warnings=0)

    def __call__(self, line: bytes, document: Annotations) -> Annotations:
        """The metadata of a record with what could be added. ValueError: what it would follow from cannot be read."""
        added = {}
        text, address = records.source(line) if self._adds else ("", None)
        if document.categories is UNSET:
            if self._blocklist and address is not None:
                added["categories"] = self._blocklist.categories(address)
            else:
                self.unknown["categories"] += 1
        if not document.harmful_pp:
            if self._model:
                added["harmful_pp"] = perplexity.score(self._model, text)
            else:
                self.unknown["harmful_pp"] += 1
        if document.quality_warnings is UNSET and document.annotation is UNSET:
            if self._quality_rules:
                added["quality_warnings"] = quality.warnings(text)
            else:
                self.unknown["quality_warnings"] += 1
        return replace(document, **added) if added else document
