"""Draws and publishes the badge of the last execution of README's commands: `python3 .ci/badge.py FOLDER REMOTE`.

FOLDER is the folder of `.ci/executed.py`. The last row of `executed.csv` in FOLDER is added to `executed.csv` of the
branch `badges` of REMOTE, a remote of this checkout, and the badge of the branch is replaced. The branch has these
two files only, and shares no commit with other branches.

A machine that stops, or a time limit, ends an execution before FOLDER has a row. The execution is then published as
failed today, so that the badge never shows a success that is older than the last execution.
"""

import argparse
import csv
import datetime
import io
import subprocess
from pathlib import Path

COLUMNS = ["date", "commit", "minutes", "seconds", "processor", "python", "outcome"]
PASSED = "passed"
BRANCH = "badges"
AUTHOR = ["-c", "user.name=github-actions[bot]", "-c", "user.email=github-actions[bot]@users.noreply.github.com"]
# Of a badge, in pixels: a character of 11 pixels in Verdana, and the margins of a text.
CHARACTER = 6.1
MARGIN = 10
SVG = """<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{label}: {text}">
<title>{label}: {text}</title>
<clipPath id="round"><rect width="{width}" height="20" rx="3"/></clipPath>
<g clip-path="url(#round)">
<rect width="{left}" height="20" fill="#444d56"/>
<rect x="{left}" width="{right}" height="20" fill="{colour}"/>
</g>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">
<text x="{label_middle}" y="14" textLength="{label_length}">{label}</text>
<text x="{text_middle}" y="14" textLength="{text_length}">{text}</text>
</g>
</svg>
"""


def draw_badge(row: dict[str, str]) -> str:
    """Draws the badge of a row as SVG: `executed` and `on 2026-11-27 in 25 min`, or `failed on 2026-11-27` in red."""
    label = "executed"
    if row["outcome"] == PASSED:
        text, colour = f"on {row['date']} in {round(float(row['minutes']))} min", "#1f7a3d"
    else:
        text, colour = f"failed on {row['date']}", "#b3261e"
    # textLength in the picture stretches each text to its place, in any font.
    label_length, text_length = round(len(label) * CHARACTER), round(len(text) * CHARACTER)
    left, right = label_length + MARGIN, text_length + MARGIN
    return SVG.format(
        label=label,
        text=text,
        colour=colour,
        left=left,
        right=right,
        width=left + right,
        label_length=label_length,
        text_length=text_length,
        label_middle=left / 2,
        text_middle=left + right / 2,
    )


def write_rows(rows: list[dict[str, str]]) -> str:
    """Writes rows as CSV, with a header."""
    file = io.StringIO()
    # A column that earlier rows had is left out: a change of the columns must not stop the badge.
    writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def read_rows(text: str) -> list[dict[str, str]]:
    """Reads the rows of a CSV text; an empty text has no rows."""
    return list(csv.DictReader(io.StringIO(text)))


def record(row: dict[str, str], folder: Path) -> None:
    """Adds a row to `executed.csv` of a folder, and draws `executed.svg` from the row."""
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / "executed.csv"
    rows = read_rows(table.read_text(encoding="utf-8")) if table.exists() else []
    table.write_text(write_rows([*rows, row]), encoding="utf-8")
    (folder / "executed.svg").write_text(draw_badge(row), encoding="utf-8")


def run_git(*words: str, text: str | None = None) -> str:
    """Runs git in this checkout, with a text as input, and returns the output without the end of the line."""
    result = subprocess.run(["git", *words], input=text, check=True, stdout=subprocess.PIPE, text=True)
    return result.stdout.strip()


def read_last_row(folder: Path) -> dict[str, str]:
    """Reads the last row of a folder, or makes a row for an execution that left no row."""
    table = folder / "executed.csv"
    if table.exists():
        return read_rows(table.read_text(encoding="utf-8"))[-1]
    row = dict.fromkeys(COLUMNS, "")
    row["date"] = datetime.datetime.now(datetime.UTC).date().isoformat()
    row["commit"] = run_git("rev-parse", "--short=12", "HEAD")
    row["outcome"] = "failed: the execution left no result"
    return row


def publish(row: dict[str, str], remote: str) -> None:
    """Pushes a commit to the branch `badges` that adds a row to the table and replaces the badge."""
    parents, rows = [], []
    if run_git("ls-remote", remote, f"refs/heads/{BRANCH}"):
        # The checkout of a workflow has one commit, of another branch.
        run_git("fetch", "--quiet", "--depth=1", remote, BRANCH)
        parents = ["-p", run_git("rev-parse", "FETCH_HEAD")]
        rows = read_rows(run_git("show", "FETCH_HEAD:executed.csv"))
    # The commit is made of objects, without a working tree: the checkout stays as it is.
    entries = []
    for name, content in {"executed.csv": write_rows([*rows, row]), "executed.svg": draw_badge(row)}.items():
        stored = run_git("hash-object", "-w", "--stdin", text=content)
        entries.append(f"100644 blob {stored}\t{name}\n")
    tree = run_git("mktree", text="".join(entries))
    message = f"{row['date']}: README's commands of {row['commit']} {row['outcome']}"
    commit = run_git(*AUTHOR, "commit-tree", tree, *parents, "-m", message)
    run_git("push", "--quiet", remote, f"{commit}:refs/heads/{BRANCH}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Publishes the badge of an execution of README's commands.")
    parser.add_argument("folder", type=Path, help="folder of .ci/executed.py")
    parser.add_argument("remote", help="remote of this checkout, such as origin")
    arguments = parser.parse_args()
    publish(read_last_row(arguments.folder), arguments.remote)
