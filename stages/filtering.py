"""Stage `filtering`: the documents that pass the three rules of Courtois et al. (2024, Appendix A).

Reads data/corpus. Writes data/filtered/part_N.jsonl.zst (kept records, byte for byte), ledger.csv (every
document and byte accounted for; stages/documents/filtering.py describes its columns) and malformed.csv (file,
line and reason of each line that is no record). Stops when more lines are malformed than
filtering.malformed_share.
"""

import csv
import io
from dataclasses import astuple
from itertools import islice
from pathlib import Path

from stages import command, jobs, observations
from stages.documents import filtering, reading, records, rules
from stages.documents.filtering import Row
from stages.files import temporary_sibling, write_atomically
from stages.settings import Filtering, load_settings

CORPUS = Path("data/corpus")
FOLDER = Path("data/filtered")
SHOWN = 3  # malformed lines, or reasons, in an error


def main() -> None:
    command.parser("filtering", __doc__).parse_args()
    settings = load_settings()
    with observations.provenance("filtering"), temporary_sibling(FOLDER) as folder:
        folder.mkdir()
        build(CORPUS, folder, settings.filtering, settings.workers)


def build(corpus: Path, folder: Path, settings: Filtering, workers: int | None = None) -> None:
    """Filters `corpus` into `folder`. ValueError: too many malformed lines, or no document kept."""
    shards = reading.shards(corpus)
    selection = {
        "excluded_categories": settings.excluded_categories,
        "above": settings.harmful_pp.above,
        "below": settings.harmful_pp.below,
        "keep_missing": settings.missing_harmful_pp == "keep",
        "keep_warned": settings.quality_warnings == "keep",
    }
    code = tuple(Path(module.__file__) for module in (reading, records, rules))
    results = jobs.run(
        filtering.filter_shard,
        [jobs.Job(shard.name, {"shard": str(shard), "rules": selection}, (shard, *code)) for shard in shards],
        stage="filtering",
        workers=workers,
    )
    results = [(made, result["rows"]) for made, result in results]
    gather_malformed([made for made, _ in results], folder / filtering.MALFORMED)
    ledger = filtering.with_total(place_selected(shards, results, folder, settings.documents))
    write_ledger(ledger, folder / "ledger.csv")
    check(ledger, folder / filtering.MALFORMED, settings.malformed_share)


def place_selected(shards: list[Path], results: list[tuple[Path, list]], folder: Path, limit: int | None) -> list[Row]:
    """Puts the first `limit` kept documents, by shard, into `folder`; gives the rows of the ledger."""
    rows = []
    for shard, (made, tallies) in zip(shards, results, strict=True):
        kept = sum(documents for fate, _, _, documents, *_ in tallies if fate == "kept")
        taken = kept if limit is None else min(kept, limit)
        selected = (0, 0)
        if taken == kept:
            reading.place(made / filtering.KEPT, folder / shard.name)
            selected = None
        elif taken:
            selected = (taken, filtering.select(made / filtering.KEPT, folder / shard.name, taken))
        rows += filtering.shard_rows(shard.name, tallies, selected)
        limit = None if limit is None else limit - taken
    return rows


def gather_malformed(made: list[Path], target: Path) -> None:
    with temporary_sibling(target) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        file.write("file,line,reason\n")
        for folder in made:
            with (folder / filtering.MALFORMED).open(encoding="utf-8", newline="") as part:
                file.writelines(part)


def write_ledger(rows: list[Row], path: Path) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(filtering.COLUMNS)
    writer.writerows(astuple(row) for row in rows)
    write_atomically(path, text.getvalue())


def check(ledger: list[Row], malformed: Path, share: float) -> None:
    """ValueError when more lines are malformed than `share` of all, or when no document is left."""
    total = [row for row in ledger if row.shard == filtering.TOTAL]
    counts = {fate: sum(row.documents for row in total if row.fate == fate) for fate in ("in", "kept", "malformed")}
    if counts["malformed"] > share * counts["in"]:
        with malformed.open(encoding="utf-8", newline="") as file:
            examples = "".join(
                f"\n  {line['file']}, line {line['line']}: {line['reason']}"
                for line in islice(csv.DictReader(file), SHOWN)
            )
        raise ValueError(
            f"{counts['malformed']} of {counts['in']} lines are no OSCAR records, more than "
            f"filtering.malformed_share ({share}) allows; mend the source or raise the share. "
            f"The first of them:{examples}"
        )
    if not counts["kept"]:
        dropped = sorted((row for row in total if row.fate == "dropped"), key=lambda row: -row.all_documents)
        why = ", ".join(f"{row.rule} {row.reason} ({row.all_documents})" for row in dropped[:SHOWN])
        raise ValueError(
            f"none of {counts['in']} documents passed the rules: {why or 'the corpus is empty'}; documents "
            "without annotations pass with filtering.missing_harmful_pp: keep"
        )


if __name__ == "__main__":
    command.run(main)
