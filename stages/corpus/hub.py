"""Documents of Hugging Face hub datasets as OSCAR records, at one commit; a local folder of the same layout will do.

A repository's own files (OSCAR's `en_meta/*.jsonl.zst`) are fetched one by one and read as any file, so that metadata
survive byte for byte; other datasets come as rows, streamed. Gated ones need a token, as huggingface_hub finds it
(HF_TOKEN, or `hf auth login`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from stages.corpus import sources
from stages.plumbing.commits import explained, named
from stages.plumbing.files import place
from stages.records import records

KEY = "corpus.hub.files"
METADATA = ("identification", "harmful_pp", "tlsh", "quality_warnings", "annotation", "categories")


def file_names(repository: str, revision: str, patterns: tuple[str, ...]) -> list[str]:
    """Lists files of a repository, by pattern, then in natural order.

    Args:
        repository: the name on the hub, or a folder of the same layout.
        revision: a commit.
        patterns: of the names.

    Raises:
        ValueError: a pattern matches none, or one of no known form.
    """
    if Path(repository).is_dir():
        files = sources.find_files(Path(repository), patterns, KEY)
        return [file.relative_to(repository).as_posix() for file in files]
    from huggingface_hub import HfFileSystem

    system, root = HfFileSystem(), f"datasets/{repository}@{revision}/"

    def matches(pattern: str) -> list[Path]:
        with explained(f"corpus.hub: {repository} ({revision})"):
            return [Path(match.removeprefix(root)) for match in system.glob(root + pattern)]

    files = sources.matching(patterns, matches, KEY, f"of {repository} ({revision})")
    return [file.as_posix() for file in files]


@contextmanager
def fetched(repository: str, revision: str, name: str, above: Path | None = None) -> Iterator[Path]:
    """Has a file of a repository on the disk while the body runs; errors of the body name it as the repository does.

    Args:
        repository: the name on the hub, or a folder of the same layout.
        revision: a commit.
        name: of the file in the repository.
        above: the folder in which it lies meanwhile; None where any will do.

    Raises:
        ValueError: the file cannot be had, or has a fault.
    """
    with TemporaryDirectory(dir=above) as folder:
        target = Path(folder) / Path(name).name
        if Path(repository).is_dir():
            place(Path(repository) / name, target)
        else:
            from huggingface_hub import HfFileSystem

            with explained(f"corpus.hub: {repository} ({revision}), {name}"):
                HfFileSystem().get_file(f"datasets/{repository}@{revision}/{name}", str(target))
        try:
            yield target
        except ValueError as error:
            raise ValueError(str(error).replace(str(target), f"{named(repository, revision)}/{name}")) from None


def write_shard(settings: dict, folder: Path) -> dict:
    """Job. settings: repository, revision, name (of a file). Leaves and returns what sources.write_shard does."""
    repository, revision = settings["repository"], settings["revision"]
    with fetched(repository, revision, settings["name"], folder) as file:
        result = sources.write_shard({"parts": [[str(file), 0, None]]}, folder)
    name = f"{named(repository, revision)}/{settings['name']}"
    return result | {"origins": [(line, name, source_line) for line, _, source_line in result["origins"]]}


def file_records(repository: str, revision: str, names: list[str]) -> Iterator[bytes]:
    """The records of some files, one after the other; one of them at a time is on the disk.

    Args:
        repository: the name on the hub, or a folder of the same layout.
        revision: a commit.
        names: of the files in the repository.
    """
    for name in names:
        with fetched(repository, revision, name) as file:
            yield from sources.file_records(file)


def _streamed(rows: Iterator[dict], what: str) -> Iterator[dict]:
    """The rows of a stream, whose network may fail at any of them. what: the key and what it names."""
    while True:
        with explained(what):
            row = next(rows, None)
        if row is None:
            return
        yield row


def row_records(repository: str, configuration: str | None, revision: str) -> Iterator[bytes]:
    """Streams the rows of the split `train` as OSCAR records.

    Args:
        repository: the name on the hub, or a folder of the same layout.
        configuration: one of the dataset's; None where it has one only.
        revision: a commit.

    Raises:
        ValueError: the dataset cannot be had, or a row has no text.
    """
    import datasets

    what = f"corpus.hub: {repository} ({configuration}, {revision})"
    with explained(what):
        rows = datasets.load_dataset(repository, configuration, split="train", streaming=True, revision=revision)
    for number, row in enumerate(_streamed(iter(rows), what)):
        text = row.get("content", row.get("text"))
        if not isinstance(text, str):
            raise ValueError(
                f"corpus.hub: {repository}, row {number}: no string `text` or `content` among the columns "
                f"{', '.join(row)}; name another dataset, or its files in corpus.hub.files"
            )
        metadata = row.get("metadata") or row.get("meta")
        if isinstance(metadata, dict):  # OSCAR's `meta` holds the headers as well
            headers = row.get("warc_headers") or metadata.get("warc_headers") or {}
            yield records.oscar_record(text, headers, {name: metadata[name] for name in METADATA if name in metadata})
        else:
            yield records.record(records.PlainDocument(text, row.get("url"), row.get("id")))
