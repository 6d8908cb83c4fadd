"""Commands that tests run in folders."""

import os
import subprocess
import sys
from pathlib import Path

ENVIRONMENT = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def run(folder: Path, *command: str, **variables: str) -> str:
    """Runs a command in a folder, with further environment variables, and returns the output."""
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT | variables, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def run_git(folder: Path, *words: str) -> str:
    """Runs Git as somebody in a folder, and returns the output."""
    return run(folder, "git", "-c", "user.name=A. Author", "-c", "user.email=author@example.org", *words)
