"""Finds the original files of sentence pairs."""

from pathlib import Path

from stages.files.stand_ins import require_data, require_target
from stages.schema.settings import Settings


def find_pairs(root: Path, name: str, languages: tuple[str, str]) -> list[Path]:
    """Finds the files of a split of sentence pairs; ValueError for a missing file.

    Below `root`, the name `train` stands for the files train.en and train.de of the languages `("en", "de")`; the name
    `train.tsv` for a table.
    """
    paths = [root / f"{name}.{language}" for language in languages]
    if name.endswith(".tsv"):
        paths = [root / name]
    for path in paths:
        # For a broken link, the error says that the target is missing.
        require_target(path)
        if not path.is_file():
            raise ValueError(
                f"{path}: no such file; translation.protocols.*.files names files below data.root ({root}): put the "
                "file there, or set `protocols: {}` to skip translation"
            )
    return paths


def require_pairs(settings: Settings) -> None:
    """Checks that the files of all protocols exist and hold data, not a Git LFS pointer or web page."""
    for protocol in settings.translation.protocols.values():
        for name in protocol.files.model_dump().values():
            for path in find_pairs(settings.data.folder, name, (protocol.source, protocol.target)):
                require_data(path)
