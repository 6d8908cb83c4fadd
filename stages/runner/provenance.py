"""Records the time, the code and the machine of a run."""

import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import joblib

from stages.files.quoting import show_controls
from stages.runner import gpus
from stages.runner.fingerprints import LIBRARIES

# packages whose versions a record holds
PACKAGES = (*LIBRARIES, "datasets", "pandas", "dvc")
# Paths of code, for Git: a user's operators stand next to dvc.yaml. No code are scales, which are parameters that the
# report shows, and hidden files, which editors leave.
LEFT_OUT = [":(exclude)stages/scales", ":(exclude,glob)**/.*"]
CODE = [":(glob)stages/**/*.py", ":(glob)stages/**/*.yaml", ":(glob)*.py", "dvc.yaml", *LEFT_OUT]


def describe_provenance() -> dict:
    """Describes the start, commit, software and machine of a run, for the record data/runs/STAGE.json."""
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _find_commit(),
        "python": platform.python_version(),
        "packages": {package: metadata.version(package) for package in PACKAGES},
        "system": platform.platform(),
        "processor": _find_processor(),
        "device": ", ".join(gpus.list_product_names()) or "CPU",
        "cores": joblib.cpu_count(),
    }


def _find_commit() -> str:
    """Finds the commit of the working tree, followed by `-modified` if code was changed since; or `unknown`."""
    try:
        # fails if Git finds another repository, around an unpacked archive or in GIT_DIR, that lacks this code
        _run_git("ls-files", "--error-unmatch", "dvc.yaml")
        commit = _run_git("rev-parse", "HEAD").strip()
        modified = _run_git("status", "--porcelain", "--", *CODE)
    except (OSError, subprocess.CalledProcessError) as error:
        # the message of Git, if any, which may have a remedy, such as "safe.directory" for files of another owner
        reason = " ".join((getattr(error, "stderr", "") or str(error)).split())
        print(show_controls(f"the record of this run names no commit: {reason}"), file=sys.stderr, flush=True)
        return "unknown"
    return f"{commit}-modified" if modified else commit


def _run_git(*arguments: str) -> str:
    # without a lock of the index, which a `git commit` of the user at the same time would run into
    command = ["git", "--no-optional-locks", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _find_processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
