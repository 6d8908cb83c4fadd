"""How far a long piece of work has come: a progress bar on a terminal, elsewhere a printed line every minute."""

import sys
import threading

from tqdm import tqdm

EVERY = 60.0  # seconds between two lines; a pool of workers raises it (pool.py), as all of them print
LINE = "{desc}: {n_fmt} of {total_fmt}, {elapsed} so far, about {remaining} to go"


class Bar(tqdm):
    """tqdm's bar; where standard error is no terminal, a thread instead prints a line every EVERY seconds.

    It prints even while the count stands still, so that a long step is seen to be at work. Nothing at all is printed
    where `silent` is true, as in all but the first of several processes; the other arguments are passed to tqdm.
    """

    def __init__(self, *arguments, silent: bool = False, **options):
        self._ended, self._lines = threading.Event(), not (silent or sys.stderr.isatty())
        super().__init__(*arguments, disable=silent, **options | ({"bar_format": LINE} if self._lines else {}))
        if self._lines:
            threading.Thread(target=self._print_lines, daemon=True).start()

    def _print_lines(self) -> None:
        while not self._ended.wait(EVERY):
            print(self, flush=True)

    def display(self, *arguments, **options) -> None:
        """Draws the bar; does nothing where lines are printed instead."""
        if not self._lines:
            super().display(*arguments, **options)

    def close(self) -> None:
        """Ends the bar, or the printing of lines."""
        self._ended.set()
        self.disable = self.disable or self._lines  # else tqdm ends the line of a bar that was never drawn
        super().close()
