"""Git in the repositories of tests."""

import subprocess
from pathlib import Path


def run_git(folder: Path, *words: str) -> str:
    """Runs Git as somebody in a folder, and returns the output."""
    author = ["-c", "user.name=A. Author", "-c", "user.email=author@example.org"]
    return subprocess.run(["git", *author, *words], cwd=folder, check=True, capture_output=True, text=True).stdout
