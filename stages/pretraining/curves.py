"""The curves of all pre-training runs in one table: `dvc plots show` draws them on one scale while they go on."""

from pathlib import Path

import pandas as pd
from filelock import FileLock

from stages.plumbing.files import write_table


def show(table: Path, run: dict, log: list[dict]) -> None:
    """Writes what a run has logged so far into a file of its own, and the files of all runs into one table.

    Args:
        table: that of all runs; the folder of the same name without `.csv` has a file a run.
        run: its operator, size and seed.
        log: entries with `step`, numbers by name, and further ones as `probes`.
    """
    own = {name: run[name] for name in ("operator", "size", "seed")}
    folder = table.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    rows = [own | entry | entry["probes"] for entry in log]
    with FileLock(folder / ".lock"):
        write_table(folder / f"{'-'.join(map(str, own.values()))}.csv", pd.DataFrame(rows).drop(columns="probes"))
        write_table(table, pd.concat([pd.read_csv(path) for path in sorted(folder.glob("*.csv"))]))
