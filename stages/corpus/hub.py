"""Documents of Hugging Face hub datasets as OSCAR records, at one commit; a local folder of the same layout will do.

A repository's own files (OSCAR's `en_meta/*.jsonl.zst`) are fetched one by one and read like local ones, so that
metadata survive byte for byte; other datasets are streamed as rows. Gated datasets need a token (HF_TOKEN, or `hf auth
login`). The hub's libraries load slowly, so functions import them. A `dataset` is an entry of corpus.hub (params.yaml).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from stages.corpus import sources
from stages.files.commits import explained, named
from stages.records import records
from stages.schema.sections import CorpusHub

KEY = "corpus.hub.files"  # of params.yaml, for messages of errors
# Of a row's metadata these are kept, if it has them; those of single sentences are left out.
METADATA = ("identification", "harmful_pp", "tlsh", "quality_warnings", "annotation", "categories")


def file_names(repository: str, revision: str, patterns: tuple[str, ...]) -> list[str]:
    """Lists the paths in a repository that match some patterns, each once: by pattern, then part_2 before part_10.

    Args:
        repository, revision: the name on the hub and a commit; or a folder of the same layout, with any revision.
        patterns: glob patterns of paths in the repository.

    Raises:
        ValueError: as in `sources.matching` or, of a folder, `sources.find_files`; or the hub cannot be reached.
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
def _fetched(repository: str, revision: str, name: str, above: Path | None = None) -> Iterator[Path]:
    """Yields the path of a file of a repository: in its folder, or fetched for as long as the body of the `with` runs.

    repository, revision: as in `file_names`. above: the folder for what is fetched; None for the system's temporary
    one. ValueError when the hub does not give it, or the body raises one, which then names the file as the hub does.
    """
    if Path(repository).is_dir():
        yield Path(repository) / name
        return
    from huggingface_hub import HfFileSystem

    with TemporaryDirectory(dir=above) as folder:
        target = Path(folder) / Path(name).name
        with explained(f"corpus.hub: {repository} ({revision}), {name}"):
            HfFileSystem().get_file(f"datasets/{repository}@{revision}/{name}", str(target))
        try:
            yield target
        except ValueError as error:
            raise ValueError(str(error).replace(str(target), f"{named(repository, revision)}/{name}")) from None


def write_shard(settings: dict, folder: Path) -> dict:
    """Job (runner/jobs.py): makes a shard of one file. settings: repository, revision and name, as in `_fetched`.

    Leaves and returns what `sources.write_shard` does; `origins` name the file REPOSITORY@COMMIT/NAME, or FOLDER/NAME.
    """
    repository, revision = settings["repository"], settings["revision"]
    with _fetched(repository, revision, settings["name"], folder) as file:
        result = sources.write_shard({"parts": [[str(file), 0, None]]}, folder)  # all documents of the file
    name = f"{named(repository, revision)}/{settings['name']}"
    return result | {"origins": [(line, name, source_line) for line, _, source_line in result["origins"]]}


def stream(dataset: CorpusHub) -> Iterator[bytes]:
    """Yields the documents of a dataset as OSCAR records, each one line of JSON without its line feed.

    They are those of its `files`, one at a time on the disk, or its rows. ValueError for what cannot be had or read.
    """
    if dataset.files is None:
        yield from _rows(dataset)
        return
    for name in file_names(dataset.repository, dataset.revision, dataset.files):
        with _fetched(dataset.repository, dataset.revision, name) as file:
            yield from sources.file_records(file)


def _rows(dataset: CorpusHub) -> Iterator[bytes]:
    """Streams the rows of the split `train` as OSCAR records.

    The text is the column `content`, or else `text`. A dictionary in `metadata` (if not empty), or else `meta`, gives
    METADATA and WARC headers; other rows become plain documents, with any `url` and `id`. ValueError for unusable rows.
    """
    import datasets

    repository, configuration, revision = dataset.repository, dataset.configuration, dataset.revision
    what = f"corpus.hub: {repository} ({configuration}, {revision})"
    with explained(what):
        rows = iter(datasets.load_dataset(repository, configuration, split="train", streaming=True, revision=revision))
    for number in count():
        with explained(what):  # of reading alone; an error below says itself what is wrong
            row = next(rows, None)
        if row is None:
            return
        text = row.get("content", row.get("text"))
        if not isinstance(text, str):
            raise ValueError(
                f"corpus.hub: {repository}, row {number}: no string `text` or `content` among the columns "
                f"{', '.join(row)}; name another dataset, or its files in corpus.hub.files"
            )
        metadata = row.get("metadata") or row.get("meta")
        if isinstance(metadata, dict):  # OSCAR's `meta` holds the headers, too
            headers = row.get("warc_headers") or metadata.get("warc_headers") or {}
            yield records.oscar_record(text, headers, {name: metadata[name] for name in METADATA if name in metadata})
        else:
            yield records.record(records.PlainDocument(text, row.get("url"), row.get("id")))
