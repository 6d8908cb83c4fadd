"""Executes the commands of README.md in a fresh clone: `python3 .ci/executed.py REPOSITORY FOLDER`.

The commands are the first code block below the heading "Run it" in README.md of the clone. The commands are executed
in order, in a fresh virtual environment, until a command fails. FOLDER then has a new row of `executed.csv` and the
badge of this row, `executed.svg`. The minutes of a row are the sum over all commands: installing, `dvc repro` and
tests. The exit status is 0, or the exit status of the command that failed.

The workflow `executed` runs this file every week in a bare container: Python, Git and no further package are needed.
"""

import argparse
import datetime
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import badge

HEADING = "## Run it"


def read_commands(readme: str) -> list[str]:
    """Reads the commands of README.md: `a && b  # comment` are the commands `a` and `b`, which are timed separately.

    Raises:
        ValueError: README.md has no code block below the heading.
    """
    section = readme.partition(f"{HEADING}\n")[2]
    block = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    if block is None:
        raise ValueError(f"README.md: no code block ```sh below {HEADING!r}; expected the commands to execute")
    commands = []
    for line in block[1].splitlines():
        # A comment ends the line; `#` within a word, as in an address, begins no comment.
        code = re.sub(r"\s+#.*", "", line)
        commands += [command.strip() for command in code.split("&&") if command.strip()]
    return commands


def clone_repository(repository: str, folder: Path) -> str:
    """Clones a repository and returns the commit that is checked out, in 12 digits."""
    subprocess.run(["git", "clone", "--quiet", repository, folder], check=True)
    words = ["git", "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def make_environment(folder: Path) -> dict[str, str]:
    """Makes a virtual environment and returns the variables that activate the environment."""
    venv.create(folder, with_pip=True)
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"VIRTUAL_ENV": str(folder), "PATH": path}


def execute(commands: list[str], folder: Path, environment: dict[str, str]) -> tuple[dict[str, float], int]:
    """Executes commands in a folder until a command fails.

    Returns:
        The seconds of each started command, and the exit status of the last command.
    """
    seconds = {}
    for command in commands:
        print(f"$ {command}", flush=True)
        start = time.monotonic()
        # The output goes to the log of the workflow, where a failure can be read.
        status = subprocess.run(["bash", "-c", command], cwd=folder, env=environment).returncode
        seconds[command] = time.monotonic() - start
        if status != 0:
            return seconds, status
    return seconds, 0


def name_command(command: str) -> str:
    """Names a command by the program: `pip install -e .` is `pip`."""
    return command.split()[0]


def describe_processor() -> str:
    """Describes the processor and the number of cores, such as `AMD EPYC, 2 cores`."""
    model = None
    # platform.processor() is empty on Debian.
    information = Path("/proc/cpuinfo")
    if information.exists():
        model = re.search(r"model name\s*:\s*(.+)", information.read_text(encoding="utf-8"))
    name = model[1] if model else platform.machine()
    return f"{name}, {os.cpu_count()} cores"


def main(repository: str, folder: Path) -> int:
    """Executes the commands of README.md, records the run in a folder, and returns the exit status."""
    with tempfile.TemporaryDirectory() as place:
        clone = Path(place) / "clone"
        commit = clone_repository(repository, clone)
        commands = read_commands((clone / "README.md").read_text(encoding="utf-8"))
        # The environment lies outside the clone, so that the clone has the files of the commit only.
        environment = make_environment(Path(place) / "environment")
        seconds, status = execute(commands, clone, environment)
    if status == 0:
        outcome = badge.PASSED
    else:
        *_, last = seconds
        outcome = f"failed: {last}"
    row = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": commit,
        "minutes": f"{sum(seconds.values()) / 60:.1f}",
        "seconds": ", ".join(f"{name_command(command)} {value:.0f}" for command, value in seconds.items()),
        "processor": describe_processor(),
        "python": platform.python_version(),
        "outcome": outcome,
    }
    badge.record(row, folder)
    print(f"{row['outcome']}: {row['minutes']} minutes ({row['seconds']})")
    return status


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Executes README's commands in a fresh clone.")
    parser.add_argument("repository", help="folder or address to clone")
    parser.add_argument("folder", type=Path, help="gets executed.csv and executed.svg")
    arguments = parser.parse_args()
    sys.exit(main(arguments.repository, arguments.folder))
