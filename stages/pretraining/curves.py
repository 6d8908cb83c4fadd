"""The curves of all pre-training runs in one table, which `dvc plots show` draws on one scale during training."""

import time
from contextlib import suppress
from pathlib import Path

import pandas as pd
from filelock import FileLock, Timeout

from stages.masked_lm.run import PretrainingRun
from stages.plumbing.files import write_table

JOIN_SECONDS = 10.0  # between two joinings: that of hundreds of runs takes a core a third of a second


def show(table: Path, run: PretrainingRun, log: list[dict], last: bool) -> None:
    """Writes the log of a run into a file of its own and, every JOIN_SECONDS at most, those of all runs into one table.

    Args:
        table: of all runs; the folder of the same name without `.csv` has one file for each.
        run: whose log it is.
        log: entries with `step`, numbers by name, and further numbers in `probes`.
        last: whether the run has ended; the table is then written whatever its age.
    """
    names = {"operator": run.operator, "size": run.size, "seed": run.seed}
    folder = table.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    rows = [names | entry | entry["probes"] for entry in log]
    write_table(folder / f"{'-'.join(map(str, names.values()))}.csv", pd.DataFrame(rows).drop(columns="probes"))
    with suppress(Timeout), FileLock(folder / ".lock", timeout=-1 if last else 0):
        if last or not table.exists() or time.time() - table.stat().st_mtime > JOIN_SECONDS:
            write_table(table, pd.concat([pd.read_csv(path) for path in sorted(folder.glob("*.csv"))]))
