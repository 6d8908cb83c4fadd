"""The progress of long work: a bar on a terminal; without a terminal, a printed line every minute."""

import sys
import threading

from tqdm import tqdm

from stages.runner.processes import find_rank

# seconds between two lines; a pool of workers raises the number (pool.py), as every worker prints
EVERY = 60.0
LINE = "{desc}: {n_fmt} of {total_fmt}, {elapsed} so far, about {remaining} to go"


class Bar(tqdm):
    """A progress bar of tqdm; without a terminal, a thread prints a line every EVERY seconds, also during a long step.

    Of several processes that share a job, only the first prints. All arguments are passed to tqdm.
    """

    def __init__(self, *arguments, **options):
        # of several processes that share a job (torchrun), only the first shows progress
        silent = find_rank() > 0
        self._ended = threading.Event()
        self._prints_lines = not silent and not sys.stderr.isatty()
        if self._prints_lines:
            options["bar_format"] = LINE
        super().__init__(*arguments, disable=silent, **options)
        if self._prints_lines:
            threading.Thread(target=self._print_lines, daemon=True).start()

    def _print_lines(self) -> None:
        while not self._ended.wait(EVERY):
            print(self, flush=True)

    def display(self, *arguments, **options) -> None:
        """Draws the bar; does nothing if lines are printed instead."""
        if not self._prints_lines:
            super().display(*arguments, **options)

    def close(self) -> None:
        """Ends the bar, or the thread that prints lines."""
        self._ended.set()
        # otherwise, tqdm would print a line break for a bar that was never drawn
        if self._prints_lines:
            self.disable = True
        super().close()
