"""Stage `corpus`: the documents of the data source as OSCAR 23.01 records.

Reads the source (generated here; original files below data.root; a dataset of the hub). Writes
data/corpus/part_N.jsonl.zst: corpus.shards files of equal numbers of documents, in the order of the source (files
of the hub that are read whole keep their number); and, where whole files are read, origins.csv, which says what line of
which file a line of a shard is.
"""

from collections.abc import Iterator
from itertools import chain, islice, pairwise
from pathlib import Path

from stages.corpus import hub, sources
from stages.embedded.corpus import write_corpus
from stages.plumbing import commits, jobs
from stages.plumbing.files import CORPUS, place, temporary_sibling
from stages.plumbing.sections import CorpusHub
from stages.plumbing.settings import Settings
from stages.records import origins, reading


def main(settings: Settings) -> dict:
    record = {}
    with temporary_sibling(CORPUS) as folder:
        folder.mkdir()
        match settings.data.source:
            case "embedded":
                write_embedded(folder, settings)
            case "files":
                write_files(folder, settings)
            case "hub":
                record["read"] = write_hub(folder, settings)
    return record


def write_embedded(folder: Path, settings: Settings) -> None:
    """Generates corpus.documents documents. ValueError when their number is left open."""
    corpus = settings.corpus
    if corpus.documents is None:
        raise ValueError("corpus.documents: null; source `embedded` needs the number of documents to generate")
    write_corpus(folder, corpus.documents, corpus.shards, corpus.seed)


def write_files(folder: Path, settings: Settings) -> None:
    """Reads every file once to count, and for every shard that takes of it from its start up to there.

    So shards are of equal size, and made in parallel; of a few large files, give `corpus.shards` no more than cores.
    """
    corpus, root = settings.corpus, Path(settings.data.root)
    files = sources.find_files(root, corpus.files)
    counting = [jobs.Job(str(path), {"path": str(path), "limit": corpus.documents}, (path,)) for path in files]
    counts = [
        result["documents"] for _, result in jobs.run(sources.count, counting, stage="corpus", workers=settings.workers)
    ]
    total = min(sum(counts), corpus.documents or sum(counts))
    if not total:
        raise ValueError(f"corpus.files: no document in the {len(files)} files below {root}; name others")
    writing = []
    for number, (first, last) in enumerate(_ranges(total, corpus.shards), 1):
        parts = list(_parts_of(files, counts, first, last))
        inputs = tuple(Path(path) for path, _, _ in parts)
        writing.append(jobs.Job(f"part_{number}", {"parts": parts}, inputs))
    _place_shards(folder, jobs.run(sources.write_shard, writing, stage="corpus", workers=settings.workers))


def _place_shards(folder: Path, results: list[tuple[Path, dict]]) -> None:
    """Puts the shards of jobs into `folder`, in their order, with the origins of all lines."""
    origins_of = {}
    for number, (job_folder, result) in enumerate(results, 1):
        name = f"part_{number}.jsonl.zst"
        place(job_folder / "shard.jsonl.zst", folder / name)
        origins_of[name] = result["origins"]
    origins.write(folder, origins_of)


def write_hub(folder: Path, settings: Settings) -> list[str]:
    """Datasets of the hub, one after the other: corpus.documents documents, or (null) the files, each a shard.

    Returns:
        REPOSITORY@COMMIT of each, as they were read.

    Raises:
        ValueError: the number of documents is left open for a dataset without files.
    """
    corpus = settings.corpus
    pinned = [
        dataset.model_copy(update={"revision": commits.commit(dataset.repository, dataset.revision, "corpus.hub")})
        for dataset in corpus.hub
    ]
    names = [commits.named(dataset.repository, dataset.revision) for dataset in pinned]
    if corpus.documents is not None:
        _write_stream(folder, chain.from_iterable(map(_hub_records, pinned)), corpus.documents, corpus.shards)
        return names
    if rows := [dataset.repository for dataset in pinned if dataset.files is None]:
        raise ValueError(
            f"corpus.documents: null; the rows of {', '.join(rows)} are streamed: give the number of documents to "
            "read, or the files in corpus.hub.files"
        )
    fetching = []
    for dataset in pinned:
        for name in hub.file_names(dataset.repository, dataset.revision, dataset.files):
            source = {"repository": dataset.repository, "revision": dataset.revision, "name": name}
            local = Path(dataset.repository) / name  # a commit's files never change, those of a folder may
            fetching.append(jobs.Job(name, source, (local,) if local.exists() else ()))
    _place_shards(folder, jobs.run(hub.write_shard, fetching, stage="corpus", workers=settings.workers))
    return names


def _hub_records(dataset: CorpusHub) -> Iterator[bytes]:
    """Yields the documents of a hub dataset as OSCAR records: of its rows, or of the OSCAR files that it keeps."""
    if dataset.files is None:
        return hub.row_records(dataset.repository, dataset.configuration, dataset.revision)
    names = hub.file_names(dataset.repository, dataset.revision, dataset.files)
    return hub.file_records(dataset.repository, dataset.revision, names)


def _write_stream(folder: Path, rows: Iterator[bytes], documents: int, shards: int) -> None:
    """The first `documents` records in `shards` files; fewer files when there are fewer records."""
    for number, (first, last) in enumerate(_ranges(documents, shards), 1):
        selected = islice(rows, last - first)
        head = next(selected, None)
        if head is None:
            break
        with reading.zstd_writer(folder / f"part_{number}.jsonl.zst") as file:
            file.writelines(line + b"\n" for line in chain([head], selected))


def _ranges(total: int, parts: int) -> list[tuple[int, int]]:
    """Divides `total` documents: [first, last) of each part. Sizes differ by one at most, and no part is empty."""
    parts = min(parts, total)
    bounds = [total * i // parts for i in range(parts + 1)]
    return list(pairwise(bounds))


def _parts_of(files: list[Path], counts: list[int], first: int, last: int) -> Iterator[list]:
    """Finds in which files the documents of a shard lie, where documents are numbered through all files from 0.

    Args:
        files: the files, in order.
        counts: how many documents each of them holds.
        first: number of the shard's first document.
        last: number of the first document after the shard.

    Yields:
        [path, first, last] of each file concerned, numbered within that file; last is again the first one after.
    """
    offset = 0
    for path, count in zip(files, counts, strict=True):
        start, stop = max(first - offset, 0), min(last - offset, count)
        if start < stop:
            yield [str(path), start, stop]
        offset += count
