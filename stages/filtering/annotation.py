"""Computes missing metadata of documents, such as records of OSCAR 22.01 and plain text.

Categories come from UT1 blocklists (blocklists.py), harmful perplexity from a KenLM model, and quality warnings from
the rules of OSCAR's producer. Metadata of a record are kept. Computed metadata serve the rules of the filter and are
never written into a record.
"""

import re
from collections import Counter
from pathlib import Path

from msgspec import UNSET
from msgspec.structs import replace

from stages.files.quoting import show_controls
from stages.files.stand_ins import require_data
from stages.filtering.blocklists import Blocklist
from stages.records.records import Metadata, read_address, read_content

# bytes; a line with fewer bytes is short. OSCAR's documentation says 400, but OSCAR's records follow 100: these rules
# give the annotations of the 63 real records of OSCAR 22.01 that the tests read.
SHORT = 100

# by a part of the reason in an error of KenLM
KENLM_REMEDIES = {
    "has order": "give a model of a lower order",
    "missing <s>": "give a model with sentence markers, as `lmplz` makes",
}


def find_quality_warnings(text: str) -> tuple[str, ...]:
    """Returns a text's quality warnings by the rules of OSCAR's producer (oscar-project/ungoliant, src/transformers).

    A line of fewer than 100 bytes is short. `tiny`: fewer than 5 lines. `short_sentences`: most lines are short.
    `header`, `footer`: most of the first or last fifth of the lines are short. `noisy`: fewer than half of the
    characters are letters. "A short line." gives ("tiny", "short_sentences").
    """
    is_short = [len(line.encode()) < SHORT for line in text.split("\n")]
    lines = len(is_short)
    # number of lines in the header, and in the footer; 0 for a `tiny` text
    fifth = int(lines * 0.2)
    letters = sum(map(str.isalpha, text))
    warnings = {
        "tiny": lines < 5,
        "short_sentences": sum(is_short) > lines / 2,
        "header": sum(is_short[:fifth]) > fifth / 2,
        "footer": sum(is_short[lines - fifth :]) > fifth / 2,
        # the length counts line feeds and spaces, too
        "noisy": letters < len(text) / 2,
    }
    return tuple(name for name, applies in warnings.items() if applies)


def load_kenlm(path: Path):
    """Loads a kenlm.Model in ARPA or binary (memory-mapped) form, such as oscar-corpus/harmful-kenlms of the hub.

    Needs the optional package `kenlm`. ValueError if the model cannot be loaded.
    """
    if not path.is_file():
        raise ValueError(
            f"filtering.annotation.kenlm_model: {path}: no such file; fetch the model, or set the key to null"
        )
    require_data(path)
    try:
        import kenlm  # pyright: ignore[reportMissingImports]  # an extra
    except ImportError:
        raise ValueError(
            "filtering.annotation.kenlm_model needs the package kenlm; run `pip install '.[kenlm]'`, "
            "or set the key to null"
        ) from None
    try:
        return kenlm.Model(str(path))
    except (OSError, RuntimeError, UnicodeError) as error:
        # "Cannot read model 'x.arpa' (lm/read_arpa.cc:65 in ... threw FormatLoadException. not \data\. Byte: 6)" gives
        # "not \data\". Two spaces begin advice for compiling KenLM, which is left out, too.
        not_reason = r"^.*? threw \w+(?: because `.*?')?\. |  .*|[. ]*Byte: \d+.*"
        reason = re.sub(not_reason, "", str(error).removeprefix(f"Cannot read model '{path}' ("))
        remedy = "fetch the file again"
        for part_of_reason, other_remedy in KENLM_REMEDIES.items():
            if part_of_reason in reason:
                remedy = other_remedy
        raise ValueError(
            f"filtering.annotation.kenlm_model: {path}: KenLM cannot read the model: {show_controls(reason):.200}; "
            f"{remedy}, or set the key to null"
        ) from None


def compute_harmful_perplexity(model, text: str) -> float:
    """Computes the harmful perplexity of a document as OSCAR 23.01 does, per word; the lower, the more harmful."""
    # The end of the document counts as a word. Newlines become spaces, without any further normalisation
    # (oscar-project/ungoliant, src/transformers/kenlm).
    return model.perplexity(text.replace("\n", " "))


def list_missing(metadata: Metadata) -> list[str]:
    """Names the metadata that a document lacks: `harmful_pp`, `categories`, `quality_warnings`, in this order."""
    names = []
    # 0 counts as missing, as in the code of Courtois et al.: perplexities of OSCAR are positive
    if not metadata.harmful_pp:
        names.append("harmful_pp")
    # None says that nothing applies, UNSET that the record lacks the key
    if metadata.categories is UNSET:
        names.append("categories")
    # `annotation` is OSCAR 22.01's name for the warnings
    if metadata.quality_warnings is UNSET and metadata.annotation is UNSET:
        names.append("quality_warnings")
    return names


class Annotator:
    """Computes the metadata that documents lack; metadata without a source stay unknown.

    Sources are a folder of compiled blocklists, a KenLM model (ValueError if the model cannot be loaded), and the rules
    of find_quality_warnings.

    Attributes:
        unknown: the number of documents so far with unknown metadata, by name of the metadata.
        lookups: the number of addresses so far that were `looked_up` in the blocklists, and that were `found`.
    """

    def __init__(self, blocklists: str | None, kenlm_model: str | None, quality_rules: bool):
        self.unknown = Counter(categories=0, harmful_pp=0, quality_warnings=0)
        self.lookups = Counter(looked_up=0, found=0)
        self._blocklist = Blocklist(Path(blocklists)) if blocklists else None
        self._model = load_kenlm(Path(kenlm_model)) if kenlm_model else None
        self._quality_rules = quality_rules

    def __call__(self, line: bytes, metadata: Metadata) -> Metadata:
        """Adds missing metadata to the metadata of the record `line`. ValueError if text or address cannot be read."""
        # without any source, nothing can be added, so the text is not read
        if not (self._blocklist or self._model or self._quality_rules):
            self.unknown.update(list_missing(metadata))
            return metadata
        text = read_content(line)
        for name in list_missing(metadata):
            value = self._compute(name, text, line)
            if value is None:
                self.unknown[name] += 1
            else:
                metadata = replace(metadata, **{name: value})
        return metadata

    def _compute(self, name: str, text: str, line: bytes) -> tuple[str, ...] | float | None:
        """Computes `categories`, `harmful_pp` or `quality_warnings`, by `name`; None without a source or an address.

        `line` is the record with the text.
        """
        if name == "categories" and self._blocklist:
            address = read_address(line)
            if address is None:
                return None
            categories = self._blocklist.find_categories(address)
            self.lookups.update(looked_up=1, found=bool(categories))
            return categories
        if name == "harmful_pp" and self._model:
            return compute_harmful_perplexity(self._model, text)
        if name == "quality_warnings" and self._quality_rules:
            return find_quality_warnings(text)
        return None
