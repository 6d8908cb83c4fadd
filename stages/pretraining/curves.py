"""The curves of all pre-training runs in one table: `dvc plots show` draws them on one scale while they go on."""

import time
from contextlib import suppress
from pathlib import Path

import pandas as pd
from filelock import FileLock, Timeout

from stages.masked_lm.run import PretrainingRun
from stages.plumbing.files import write_table

JOIN_SECONDS = 10.0  # from one joining to the next: of hundreds of runs it takes a third of a second, and cores wait


def show(table: Path, run: PretrainingRun, log: list[dict], last: bool) -> None:
    """Writes what a run has logged so far into a file of its own and, now and then, those of all runs into one table.

    Args:
        table: that of all runs; the folder of the same name without `.csv` has a file a run.
        run: whose they are.
        log: entries with `step`, numbers by name, and further ones as `probes`.
        last: whether the run has ended; the table is then made whatever its age.
    """
    own = {"operator": run.operator, "size": run.size, "seed": run.seed}
    folder = table.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    rows = [own | entry | entry["probes"] for entry in log]
    write_table(folder / f"{'-'.join(map(str, own.values()))}.csv", pd.DataFrame(rows).drop(columns="probes"))
    with suppress(Timeout), FileLock(folder / ".lock", timeout=-1 if last else 0):
        if last or not table.exists() or time.time() - table.stat().st_mtime > JOIN_SECONDS:
            write_table(table, pd.concat([pd.read_csv(path) for path in sorted(folder.glob("*.csv"))]))
