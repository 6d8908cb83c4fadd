"""All tables of the report: of the papers, of claims and checks, and our own."""

import json

from stages.evidence import published, specifications
from stages.evidence.baselines import LABELS
from stages.files.paths import TOKENS
from stages.report import own_tables, paper_tables
from stages.report.facts import gather_facts
from stages.report.read_results import read_cells, read_records
from stages.report.tables import Grid, Reader
from stages.report.text_templates import read_content
from stages.schema.settings import Settings


def build_tables(settings: Settings, read: Reader) -> dict[str, Grid]:
    """Builds every table, by name; `read` returns a frame by name."""
    grids = build_paper_tables(settings) + build_own_tables(settings, read)
    return {grid.name: grid for grid in grids}


def build_paper_tables(settings: Settings) -> list[Grid]:
    """Builds every published table; a table of two editions is built for each edition, and once with both."""
    cells = read_cells().fillna({"status": "", "metric": ""})
    # cells have counts of every size of params.yaml; this run trains only settings.sizes
    left_out = set(settings.models) - set(settings.sizes)
    specified = specifications.load()
    shown = [(table,) for table in specified.values()]
    # tables of the earlier edition have names such as `kowsher2024_arxiv_table1_glue`
    earlier = next(iter(published.EDITIONS))
    for table in specified.values():
        if table.edition and table.name.startswith(earlier):
            shown.append((table, specified[table.edition]))
    return [paper_tables.build_paper_table(tables, cells, left_out) for tables in shown]


def build_own_tables(settings: Settings, read: Reader) -> list[Grid]:
    """Builds the tables that tables.yaml describes."""
    # a run without translation has no record
    records = read_records(["translation"]) or [{}]
    facts = {
        **gather_facts(settings),
        "tokens": json.loads((TOKENS / "index.json").read_text(encoding="utf-8")),
        "labels": LABELS,
        "papers": published.PAPERS,
        # settings of sacreBLEU, as it prints them
        "signatures": records[0].get("sacrebleu", []),
        # the highest level of noise, such as 0.4
        "strongest": read("noise_curves")["level"].max(),
    }
    # `forms` is no table, but keys that columns share
    return [own_tables.build_table(name, read, **facts) for name in read_content("tables") if name != "forms"]
