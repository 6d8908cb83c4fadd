"""Runs `python -m stages ...` (command_line.py). An error that a user can fix ends in a clear message."""

import sys

from stages.runner.errors import clear_errors


def main(words: list[str]) -> None:
    """Runs a command, given as the words after `python -m stages`."""
    # a character that the terminal cannot show is printed as an escape, such as \xe9
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")
    with clear_errors():
        # with another encoding, names of files with letters such as é would change, or end in an error
        if sys.getfilesystemencoding() != "utf-8":
            raise ValueError("this locale is not of UTF-8; run `export LC_ALL=C.UTF-8`, and the same command again")
        # imported here, so that Ctrl-C during the imports ends in a clear message, too
        from stages import command_line

        command_line.run(words)


if __name__ == "__main__":
    main(sys.argv[1:])
