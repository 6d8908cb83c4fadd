"""Records when, on which code and on which machine a run began."""

import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import joblib

from stages.runner import gpus
from stages.runner.fingerprints import LIBRARIES

PACKAGES = (*LIBRARIES, "datasets", "pandas", "dvc")  # whose versions a record holds
# Paths of code, for Git: a user's operators stand next to dvc.yaml; scales are parameters, which the report shows.
CODE = [":(glob)stages/**/*.py", ":(glob)stages/**/*.yaml", ":(exclude)stages/scales", ":(glob)*.py", "dvc.yaml"]


def provenance() -> dict:
    """Returns when and on what a run begins, as JSON: a part of its record, data/runs/NAME.json.

    Its commit is that of the working tree, with `-modified` where CODE differs from it; `unknown` where Git fails.
    """
    try:
        commit = _git("rev-parse", "HEAD").strip()
        commit += "-modified" if _git("status", "--porcelain", "--", *CODE) else ""
    except (OSError, subprocess.CalledProcessError):
        commit = "unknown"
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    processors = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit,
        "python": platform.python_version(),
        "packages": {package: metadata.version(package) for package in PACKAGES},
        "system": platform.platform(),
        "processor": processors[0] if processors else platform.processor() or platform.machine(),
        "device": ", ".join(gpus.names()) or "CPU",
        "cores": joblib.cpu_count(),
    }


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout
