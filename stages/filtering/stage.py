"""Stage `filtering`: the documents that pass the three rules of Courtois et al. (2024, Appendix A).

Reads data/corpus, and the blocklists and the KenLM model that params.yaml may name. Writes
data/filtered/part_N.jsonl.zst (kept records, byte for byte), ledger.csv (every document and byte accounted for;
stages/records/ledger.py describes the columns) and malformed.csv (file, line and reason of each malformed line; file
and line of the source, or of data/corpus for lines that were streamed). Stops when more lines are malformed than
filtering.malformed_share.
"""

import csv
from itertools import chain, islice
from pathlib import Path

import pandas as pd

from stages.files.paths import CORPUS, FILTERED, LEDGER
from stages.files.quoting import show_controls
from stages.files.storage import make_temporary_sibling, write_table
from stages.filtering.annotation import load_kenlm
from stages.filtering.blocklists import compile_lists, find_lists
from stages.filtering.rules import ALIASES, select_rules
from stages.filtering.selection import place_kept
from stages.filtering.shards import MALFORMED, filter_shard
from stages.records import origins, reading
from stages.records.ledger import TOTAL, add_total
from stages.runner import jobs
from stages.schema.sections import Filtering
from stages.schema.settings import Settings

# the key of filtering.annotation that would supply the metadata
REMEDIES = {
    "categories": "blocklists",
    "harmful_pp": "kenlm_model",
    "quality_warnings": "quality_rules",
}
# number of malformed lines, or reasons, in an error
SHOWN = 3
# why documents may be empty although their files have texts
OF_JSON = (
    "of JSON lines, the key `content` is read if a file has this key, else `text`: rename or remove an empty `content`"
)


def main(settings: Settings) -> dict:
    """Writes data/filtered; returns `build_filtered`'s entries for the record of the run."""
    with make_temporary_sibling(FILTERED) as folder:
        folder.mkdir()
        return build_filtered(CORPUS, folder, settings.filtering, settings.workers)


def build_filtered(corpus: Path, folder: Path, settings: Filtering, workers: jobs.Workers = None) -> dict:
    """Filters a corpus, a folder of shards and perhaps origins.csv, by the rules.

    `folder` gets the kept documents, ledger.csv and malformed.csv.

    Returns:
        Two entries:
        - `unknown`: the number of documents without metadata for a rule, even after annotation, by the name of the rule
        - `blocklists`: entries by category and ignored lines of the blocklists; empty without lists

    Raises:
        ValueError: too many lines are malformed, no line is kept, there is no shard, or lists or model cannot be
            loaded.
        RuntimeError: a shard or a list cannot be read.
    """
    shards = reading.list_shards(corpus)
    rules = select_rules(settings)
    annotator_arguments, inputs, blocklists = _prepare_annotation(settings, workers)
    work = []
    for shard in shards:
        argument = {"shard": str(shard), "rules": rules, "annotation": annotator_arguments}
        work.append(jobs.Job(shard.name, argument, (shard, *inputs)))
    results = jobs.run(filter_shard, work, stage="filtering", workers=workers)
    _gather_malformed(results, origins.read(corpus), folder / MALFORMED)
    ledger = add_total(place_kept(shards, results, folder, settings))
    write_table(folder / LEDGER.name, ledger)
    total = ledger[ledger["shard"] == TOTAL]
    fates = ("in", "kept", "not_selected", "dropped", "malformed")
    counts = total.groupby("fate")["documents"].sum().reindex(fates, fill_value=0)
    # the rule `text` drops documents without text
    counts["empty"] = total.loc[total["rule"] == "text", "documents"].sum()
    print(
        f"filtering: {counts['in']} documents: {counts['kept']} kept, {counts['not_selected']} not selected, "
        f"{counts['malformed']} malformed, {counts['dropped']} dropped, of which {counts['empty']} are empty",
        flush=True,
    )
    if counts["empty"]:
        print(f"filtering: {OF_JSON}")
    _check_counts(total, counts, folder / MALFORMED, settings)
    unknown = _report_metadata(total, results, blocklists, settings)
    return {"unknown": unknown, "blocklists": blocklists}


def _report_metadata(
    total: pd.DataFrame,
    results: jobs.Results,
    blocklists: dict,
    settings: Filtering,
) -> dict[str, int]:
    """Prints which metadata were found; returns the number of documents with unknown metadata, by rule.

    `total` are the ledger's sums over all shards, `results` of `filter_shard`, and `blocklists` of `compile_lists`.
    """
    if blocklists:
        entries = sum(blocklists["entries"].values())
        lookups = pd.DataFrame([result["lookups"] for _, result in results]).sum()
        print(
            f"filtering: the blocklists have {entries} entries; {lookups['found']} of {lookups['looked_up']} "
            "addresses that were looked up are in the lists"
        )
    unknown = pd.DataFrame([result["unknown"] for _, result in results]).sum().to_dict()
    for name, remedy in REMEDIES.items():
        # the user learns that the rule could not judge all documents
        if unknown[name]:
            print(f"filtering: the {name} of {unknown[name]} documents are unknown (filtering.annotation.{remedy})")
    found = set(total.loc[total["rule"] == "categories", "reason"])
    absent = [name for name in settings.excluded_categories if name not in found]
    # a name may be misspelt
    if absent and not unknown["categories"]:
        print(show_controls(f"filtering: no document is of filtering.excluded_categories {', '.join(absent)}"))
    return unknown


def _prepare_annotation(settings: Filtering, workers: jobs.Workers) -> tuple[dict, tuple[Path, ...], dict]:
    """Returns the arguments of Annotator, the files on which annotations depend, and the result of `compile_lists`."""
    annotation = settings.annotation
    annotator_arguments = annotation.model_dump()
    inputs = ()
    counts = {}
    if annotation.kenlm_model:
        # a model that cannot be loaded fails here rather than in every job
        model = Path(annotation.kenlm_model)
        load_kenlm(model)
        inputs += (model,)
    if annotation.blocklists:
        compiled, files, counts = _compile_blocklists(Path(annotation.blocklists), settings, workers)
        annotator_arguments["blocklists"] = str(compiled)
        inputs += files
    return annotator_arguments, inputs, counts


def _compile_blocklists(root: Path, settings: Filtering, workers: jobs.Workers) -> tuple[Path, tuple[Path, ...], dict]:
    """Compiles the blocklists in `root`; ValueError if an excluded category has no list under any of its names.

    Returns the folder of the compiled blocklists, the files of the lists, and the result of `compile_lists`.
    """
    lists = find_lists(root)
    missing = []
    for category in settings.excluded_categories:
        names = ALIASES.get(category, (category,))
        if lists.keys().isdisjoint(names):
            missing.append(category)
    if missing:
        raise ValueError(
            f"filtering.annotation.blocklists: {root} has no list of {', '.join(missing)}; add the lists, or take "
            "the categories off filtering.excluded_categories"
        )
    files = tuple(chain.from_iterable(lists.values()))
    job = jobs.Job("blocklists", {"root": str(root)}, files)
    [(compiled, counts)] = jobs.run(compile_lists, [job], stage="filtering", workers=workers)
    if counts["no_entries"]:
        first = "\n  ".join(counts["first_no_entries"])
        text = f"filtering: {counts['no_entries']} lines of the blocklists are no entries; the first:\n  {first}"
        print(show_controls(text))
    return compiled, files, counts


def _gather_malformed(results: jobs.Results, origins_by_shard: dict[str, list[origins.Origin]], target: Path) -> None:
    """Joins the malformed.csv of all jobs; the file and line of the source, if known, replace shard and line."""
    with make_temporary_sibling(target) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("file", "line", "reason"))
        for folder, _ in results:
            with (folder / MALFORMED).open(encoding="utf-8", newline="") as part:
                for shard, line, reason in csv.reader(part):
                    origins_of_shard = origins_by_shard.get(Path(shard).name, [])
                    place = origins.locate_line(int(line), origins_of_shard) or (shard, line)
                    writer.writerow((*place, reason))


def _check_counts(
    total: pd.DataFrame,
    counts: pd.Series,
    malformed: Path,
    settings: Filtering,
) -> None:
    """Raises a ValueError for too many malformed lines, no kept document, or no perplexity at all.

    `total` are the ledger's sums over all shards, and `counts` the numbers of documents by fate.
    """
    share = settings.malformed_share
    if counts["malformed"] > share * counts["in"]:
        examples = ""
        with malformed.open(encoding="utf-8", newline="") as file:
            # the header is no example
            for name, line, reason in islice(csv.reader(file), 1, SHOWN + 1):
                examples += f"\n  {name}, line {line}: {reason}"
        raise ValueError(
            f"{counts['malformed']} of {counts['in']} documents are malformed, more than "
            f"filtering.malformed_share ({share}) allows; fix the source or raise the share. "
            f"The first of them:{examples}"
        )
    unscored = total.loc[total["reason"] == "missing", "all_documents"].sum()
    # as many as all sound documents with a text
    if 0 < unscored == counts["in"] - counts["malformed"] - counts["empty"]:
        raise ValueError(
            f"all {unscored} documents lack a harmful_pp score and are dropped; name a KenLM model in "
            "filtering.annotation.kenlm_model, or set filtering.missing_harmful_pp to keep"
        )
    if not counts["kept"]:
        dropped = total[total["fate"] == "dropped"]
        commonest = dropped.nlargest(SHOWN, "all_documents")
        reasons = [f"{row.rule} {row.reason} ({row.all_documents})" for row in commonest.itertuples()]
        why = ", ".join(reasons) or "the corpus is empty"
        if counts["empty"] == counts["in"] > 0:
            raise ValueError(f"all {counts['in']} documents are empty; {OF_JSON}")
        raise ValueError(f"all {counts['in']} documents were dropped: {why}; relax the rules, or add documents")
