"""Stage `corpus`: the documents of the data source as OSCAR 23.01 records.

Reads the source (files below data/embedded or data.root; datasets of the hub). Writes data/corpus/part_N.jsonl.zst:
corpus.shards files of equal numbers of documents. Documents read from files keep their order, and each file of the hub
that is read whole becomes a shard. Where whole files are read, origins.csv (records/origins.py) names the source of
every line.
"""

from collections.abc import Iterator
from itertools import chain, islice, pairwise
from pathlib import Path

from stages.corpus import conversion, hub
from stages.files import commits
from stages.files.paths import CORPUS
from stages.files.quoting import show_controls
from stages.files.storage import link_file, make_temporary_sibling
from stages.originals.corpus_files import find_files, find_form
from stages.records import origins, reading
from stages.runner import jobs
from stages.schema.sections import CorpusHub
from stages.schema.settings import Settings


def main(settings: Settings) -> dict:
    """Writes data/corpus; returns for the record of the run the `files` and the hub's datasets that were `read`."""
    record = {}
    # The folder replaces CORPUS after all shards are written.
    with make_temporary_sibling(CORPUS) as folder:
        folder.mkdir()
        if settings.data.source == "hub":
            record["read"], record["files"] = write_hub(folder, settings)
        else:
            record["files"] = write_files(folder, settings)
    return record


def write_files(folder: Path, settings: Settings) -> list[dict]:
    """Writes at most corpus.documents documents of corpus.files into shards of equal sizes.

    Files are read once to count, and from the start for every shard: do not ask for more shards of few large files than
    there are cores. Returns the description of each file (`conversion.describe_file`).

    Raises:
        ValueError: no file matches, no file has a document, or a checksum differs.
        RuntimeError: a file cannot be read.
    """
    corpus = settings.corpus
    root = settings.data.folder
    files = find_files(root, corpus.files)
    counting = []
    for path in files:
        argument = {"path": str(path), "limit": corpus.documents}
        counting.append(jobs.Job(str(path), argument, (path,)))
    counted = jobs.run(conversion.count_documents, counting, stage="corpus", workers=settings.workers)
    described = [result for _, result in counted]
    for file in described:
        conversion.check_digest(file)
    counts = [file["documents"] for file in described]
    total = min(sum(counts), corpus.documents or sum(counts))
    if not total:
        raise ValueError(f"corpus.files: no document in the {len(files)} files below {root}; name other files")
    writing = []
    for first, last in _plan_ranges(total, corpus.shards):
        parts = _plan_parts(files, counts, first, last)
        inputs = tuple(Path(path) for path, _, _ in parts)
        writing.append(jobs.Job(f"part_{len(writing) + 1}", {"parts": parts}, inputs))
    _place_shards(folder, jobs.run(conversion.write_shard, writing, stage="corpus", workers=settings.workers))
    # Perhaps the user did not know that a blank line separates documents.
    single = []
    for path, count in zip(files, counts, strict=True):
        if count == 1 and find_form(path) == ".txt":
            single.append(path)
    # With a limit of one document, no second document was looked for.
    if single and corpus.documents != 1:
        note = (
            f"corpus: {len(single)} text file(s) with a single document, the first {single[0]}; a blank line ends a "
            "document"
        )
        print(show_controls(note))
    return described


def _plan_parts(
    files: list[Path],
    counts: list[int],
    first: int,
    last: int,
) -> list[list]:
    """Returns [file, start, stop] for each file with some of documents [first, last), counted through all files."""
    # Documents [2, 5) of files a and b, with 3 and 5 documents, are [["a", 2, 3], ["b", 0, 2]].
    parts = []
    documents_before = 0
    for path, count in zip(files, counts, strict=True):
        start = max(first - documents_before, 0)
        stop = min(last - documents_before, count)
        if start < stop:
            parts.append([str(path), start, stop])
        documents_before += count
    return parts


def _place_shards(folder: Path, results: jobs.Results) -> None:
    """Places the shards that jobs wrote as part_1.jsonl.zst, ... in `folder`, and writes origins.csv."""
    origins_of = {}
    for number, (job_folder, result) in enumerate(results, 1):
        name = f"part_{number}.jsonl.zst"
        link_file(job_folder / conversion.SHARD, folder / name)
        origins_of[name] = result["origins"]
    origins.write(folder, origins_of)
    documents = sum(result["documents"] for _, result in results)
    print(f"corpus: {documents} documents", flush=True)


def write_hub(folder: Path, settings: Settings) -> tuple[list[str], list[dict]]:
    """Writes datasets of the hub: corpus.documents documents or, for `null`, all files, each as a shard.

    Returns datasets with commits, such as `oscar-corpus/OSCAR-2301@1a2b3c`, and a description of each file.

    Raises:
        ValueError: corpus.documents is `null` for a dataset without `files`, a dataset cannot be fetched, or a checksum
            differs.
        RuntimeError: a file cannot be fetched.
    """
    corpus = settings.corpus
    streamed = [dataset.repository for dataset in corpus.hub if dataset.files is None]
    if corpus.documents is None and streamed:
        raise ValueError(
            f"corpus.documents: null; the rows of {', '.join(streamed)} are streamed: give the number of documents to "
            "read, or the files in corpus.hub.files"
        )
    # A branch may move while the stage reads.
    pinned = [dataset.pin_revision("corpus.hub") for dataset in corpus.hub]
    files = []
    if corpus.documents is not None:
        rows = chain.from_iterable(hub.stream_documents(dataset, files) for dataset in pinned)
        _write_stream(folder, rows, corpus.documents, corpus.shards)
    else:
        fetched = jobs.run(hub.fetch_shard, list(_plan_fetching(pinned)), stage="corpus", workers=settings.workers)
        _place_shards(folder, fetched)
        files = [result["file"] for _, result in fetched]
    for described in files:
        conversion.check_digest(described)
    read = [commits.name_source(dataset.repository, dataset.revision) for dataset in pinned]
    return read, files


def _plan_fetching(datasets: list[CorpusHub]) -> Iterator[jobs.Job]:
    for dataset in datasets:
        for name in hub.list_files(dataset.repository, dataset.revision, dataset.files):
            argument = {"repository": dataset.repository, "revision": dataset.revision, "name": name}
            # A local file may change, so the file is an input of the job; a file of a commit never changes.
            local = Path(dataset.repository) / name
            yield jobs.Job(name, argument, (local,) if local.exists() else ())


def _write_stream(
    folder: Path,
    rows: Iterator[bytes],
    documents: int,
    shards: int,
) -> None:
    """Writes at most `documents` records into shards of equal sizes; if records run out, there are fewer shards."""
    written = 0
    for number, (first, last) in enumerate(_plan_ranges(documents, shards), 1):
        selected = islice(rows, last - first)
        # A file is begun only when there is a record for the file.
        head = next(selected, None)
        if head is None:
            if number == 1:
                raise ValueError("corpus.hub: no document in any of these datasets; name other datasets")
            break
        with reading.open_zstd_writer(folder / f"part_{number}.jsonl.zst") as file:
            for line in chain([head], selected):
                file.write(line + b"\n")
                written += 1
    print(f"corpus: {written} documents", flush=True)


def _plan_ranges(total: int, parts: int) -> list[tuple[int, int]]:
    """Divides documents into equal ranges [first, last): [(0, 3), (3, 7)] for 7 documents and 2 parts."""
    parts = min(parts, total)
    bounds = [total * part // parts for part in range(parts + 1)]
    return list(pairwise(bounds))
