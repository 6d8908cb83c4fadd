"""How far a long work is: a bar on a terminal, elsewhere a line a minute."""

import sys
import threading

from tqdm import tqdm

EVERY = 60.0  # seconds
LINE = "{desc}: {n_fmt} of {total_fmt}, {elapsed} so far, about {remaining} to go"


class Bar(tqdm):
    """The library's bar. Where there is no terminal, a thread prints a line a minute, also while nothing moves.

    Args:
        arguments, options: of the library's bar.
        silent: whether nothing is printed at all, as by all but one of several processes.
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
        """Draws the bar, on a terminal alone."""
        if not self._lines:
            super().display(*arguments, **options)

    def close(self) -> None:
        self._ended.set()
        self.disable = self.disable or self._lines  # otherwise the library would end its line, which was never drawn
        super().close()
