"""Documents of Hugging Face hub datasets, or of local folders of the same layout, as OSCAR records at a fixed commit.

The files of a repository (OSCAR's `en_meta/*.jsonl.zst`) are fetched one by one and read like local files, so that
metadata survive byte for byte. Other datasets are streamed as rows. Gated datasets need a token (HF_TOKEN, or `hf auth
login`). A `dataset` is an entry of corpus.hub; a `repository` is on the hub, at a commit `revision`, or a folder.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from stages.corpus import conversion
from stages.files.commits import explain_errors, is_folder, name_source, stream_rows
from stages.files.quoting import quote_value
from stages.files.storage import is_hidden
from stages.originals.corpus_files import find_files, match_files
from stages.records import records
from stages.schema.sections import CorpusHub

# The key of params.yaml, for messages of errors.
KEY = "corpus.hub.files"

# The metadata of a row that a record keeps; metadata of single sentences are left out.
METADATA = ("identification", "harmful_pp", "tlsh", "quality_warnings", "annotation", "categories")


def list_files(repository: str, revision: str, patterns: tuple[str, ...]) -> list[str]:
    """Lists the paths in a repository that match glob patterns, pattern by pattern, each path once.

    Raises:
        ValueError: a pattern matches no file or a file of unknown form, or the hub cannot be reached.
    """
    if is_folder(repository):
        files = find_files(Path(repository), patterns, KEY)
        return [file.relative_to(repository).as_posix() for file in files]
    # The hub's libraries load slowly, so functions import these.
    from huggingface_hub import HfFileSystem

    system = HfFileSystem()
    root = f"datasets/{repository}@{revision}/"

    def match(pattern: str) -> list[Path]:
        with explain_errors(f"corpus.hub: {repository} ({revision})"):
            paths = [Path(path.removeprefix(root)) for path in system.glob(root + pattern)]
        return [path for path in paths if not is_hidden(path, Path())]

    files = match_files(patterns, match, KEY, f"of {repository} ({revision})")
    return [file.as_posix() for file in files]


@contextmanager
def _fetch_file(
    repository: str,
    revision: str,
    name: str,
    above: Path | None = None,
) -> Iterator[tuple[Path, str]]:
    """Yields (path, source) of a local file, or of a copy in a temporary folder below `above`."""
    # For records and errors, such as `oscar-corpus/OSCAR-2301@1a2b3c/en.jsonl`.
    source = f"{name_source(repository, revision)}/{name}"
    if is_folder(repository):
        yield Path(repository) / name, source
        return
    from huggingface_hub import HfFileSystem

    with TemporaryDirectory(dir=above) as folder:
        target = Path(folder) / Path(name).name
        with explain_errors(f"corpus.hub: {repository} ({revision}), {name}"):
            HfFileSystem().get_file(f"datasets/{repository}@{revision}/{name}", str(target))
        try:
            yield target, source
        except ValueError as error:
            # An error of the `with` block names the source, not the copy.
            raise ValueError(str(error).replace(str(target), source)) from None


def fetch_shard(argument: dict, folder: Path) -> dict:
    """Job (runner/jobs.py): fetches a file of the hub, and writes all documents like `conversion.write_shard`.

    `argument` has `repository`, `revision` and `name` of the file. Returns the result of `write_shard`, and `file`, the
    description of the file.
    """
    with _fetch_file(**argument, above=folder) as (file, source):
        # All documents of the file.
        result = conversion.write_shard({"parts": [[str(file), 0, None]]}, folder)
        described = conversion.describe_file(file, source, result["documents"])
    # The source replaces the path of the copy.
    origins = [(line, source, source_line) for line, _, source_line in result["origins"]]
    return {"documents": result["documents"], "file": described, "origins": origins}


def stream_documents(dataset: CorpusHub, files: list[dict]) -> Iterator[bytes]:
    """Yields the documents of a dataset as OSCAR records, each a line of JSON without line feed.

    Files are fetched one at a time, and the description of each is appended to the list `files`. A dataset without the
    setting `files` is streamed as rows. A file or row that cannot be read is a ValueError.
    """
    if dataset.files is None:
        yield from _read_rows(dataset)
        return
    for name in list_files(dataset.repository, dataset.revision, dataset.files):
        with _fetch_file(dataset.repository, dataset.revision, name) as (file, source):
            described = conversion.describe_file(file, source, 0)
            files.append(described)
            # The reader may stop early: only the documents that were read are counted.
            for line in conversion.read_records(file):
                described["documents"] += 1
                yield line


def _read_rows(dataset: CorpusHub) -> Iterator[bytes]:
    """Yields the rows of a dataset's training split as OSCAR records."""
    rows = stream_rows(
        dataset.repository,
        dataset.configuration,
        dataset.revision,
        "train",
        "corpus.hub",
    )
    for number, row in enumerate(rows):
        text = row.get("content", row.get("text"))
        if "content" not in row and "text" not in row:
            raise ValueError(
                f"corpus.hub: {dataset.repository}, row {number}: no `text` or `content` among the columns "
                f"{quote_value(list(row))}; name another dataset, or its files in corpus.hub.files"
            )
        # The filter counts a record without text as malformed. Bytes would become base64, and dates texts.
        if not isinstance(text, str):
            text = None
        # A dictionary gives metadata and WARC headers; other rows become plain documents, with any url and id.
        metadata = row.get("metadata") or row.get("meta")
        if isinstance(metadata, dict):
            # The column `meta` of OSCAR holds the headers, too.
            headers = row.get("warc_headers") or metadata.get("warc_headers") or {}
            kept = {name: metadata[name] for name in METADATA if name in metadata}
            yield records.write_oscar_record(text, headers, kept)
        else:
            yield records.write_record(records.PlainDocument(text, row.get("url"), row.get("id")))
