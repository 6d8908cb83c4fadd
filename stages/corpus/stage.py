"""Stage `corpus`: the documents of the data source as OSCAR 23.01 records.

Reads the source (generated here; original files below data.root; datasets of the hub). Writes
data/corpus/part_N.jsonl.zst: corpus.shards files of equal numbers of documents, in the order of the source (files of
the hub that are read whole become one shard each); and, where whole files are read, origins.csv (records/origins.py).
"""

from collections.abc import Iterator
from itertools import chain, islice, pairwise
from pathlib import Path

from stages.corpus import hub, sources
from stages.embedded.corpus import write_corpus
from stages.files import commits
from stages.files.paths import CORPUS
from stages.files.storage import place, temporary_sibling
from stages.records import origins, reading
from stages.runner import jobs
from stages.schema.settings import Settings


def main(settings: Settings) -> dict:
    """Writes data/corpus. Returns for the run's record, with source `hub`, under `read` what was read (`write_hub`)."""
    record = {}
    with temporary_sibling(CORPUS) as folder:
        folder.mkdir()
        match settings.data.source:
            case "embedded":
                write_corpus(folder, settings.corpus.documents, settings.corpus.shards, settings.corpus.seed)
            case "files":
                write_files(folder, settings)
            case "hub":
                record["read"] = write_hub(folder, settings)
    return record


def write_files(folder: Path, settings: Settings) -> None:
    """Writes corpus.documents documents of corpus.files (null: all) into `folder`, in shards of sizes equal up to one.

    ValueError for no document or as in `sources.find_files`; RuntimeError for a file that cannot be read. Files are
    read once to count, and from the start for every shard of them: make no more shards of few large files than cores.
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
        parts, before = [], 0  # before: how many documents stand in the files before this one
        for path, count in zip(files, counts, strict=True):
            start, stop = max(first - before, 0), min(last - before, count)
            if start < stop:
                parts.append([str(path), start, stop])
            before += count
        inputs = tuple(Path(path) for path, _, _ in parts)
        writing.append(jobs.Job(f"part_{number}", {"parts": parts}, inputs))
    _place_shards(folder, jobs.run(sources.write_shard, writing, stage="corpus", workers=settings.workers))


def _place_shards(folder: Path, results: list[tuple[Path, dict]]) -> None:
    """Places the shards of jobs (folder, `write_shard`'s result) in `folder` as part_1, ..., and writes origins.csv."""
    origins_of = {}
    for number, (job_folder, result) in enumerate(results, 1):
        name = f"part_{number}.jsonl.zst"
        place(job_folder / "shard.jsonl.zst", folder / name)
        origins_of[name] = result["origins"]
    origins.write(folder, origins_of)


def write_hub(folder: Path, settings: Settings) -> list[str]:
    """Writes datasets of the hub, one after the other: corpus.documents documents, or (null) all files, each a shard.

    Returns REPOSITORY@COMMIT, or the folder, for each. ValueError when corpus.documents is null and one has no `files`,
    or one cannot be had (of files that are fetched in jobs, a RuntimeError).
    """
    corpus = settings.corpus
    pinned = [
        dataset.model_copy(update={"revision": commits.commit(dataset.repository, dataset.revision, "corpus.hub")})
        for dataset in corpus.hub
    ]
    names = [commits.named(dataset.repository, dataset.revision) for dataset in pinned]
    if corpus.documents is not None:
        _write_stream(folder, chain.from_iterable(map(hub.stream, pinned)), corpus.documents, corpus.shards)
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


def _write_stream(folder: Path, rows: Iterator[bytes], documents: int, shards: int) -> None:
    """Writes `documents` records into `shards` equal files, fewer if records run out. ValueError if there is none."""
    for number, (first, last) in enumerate(_ranges(documents, shards), 1):
        selected = islice(rows, last - first)
        head = next(selected, None)  # a file is begun only when there is a record for it
        if head is None:
            if number == 1:
                raise ValueError("corpus.hub: no document in any of these datasets; name others")
            break
        with reading.zstd_writer(folder / f"part_{number}.jsonl.zst") as file:
            file.writelines(line + b"\n" for line in chain([head], selected))


def _ranges(total: int, parts: int) -> list[tuple[int, int]]:
    """Divides `total` > 0 documents into min(parts, total) ranges [first, last) whose sizes differ by one at most."""
    parts = min(parts, total)
    bounds = [total * i // parts for i in range(parts + 1)]
    return list(pairwise(bounds))
