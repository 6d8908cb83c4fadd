"""Renders README.md and the findings from the CSV files of the example reports: `python -m stages.tools.pages`.

A page is a Jinja template in reports/pages, where macros.md has the macros of both pages.
"""

import tomllib
from functools import cache
from pathlib import Path

import jinja2
import pandas as pd

from stages.files.paths import REPORTS
from stages.files.storage import write_atomically
from stages.report.text_templates import ENVIRONMENT
from stages.runner.errors import clear_errors

EXAMPLES = REPORTS / "examples"
TEMPLATES = REPORTS / "pages"
# by the name of the template
PAGES = {"readme": Path("README.md"), "findings": EXAMPLES / "README.md"}


@cache
def _read_rows(path: str) -> pd.DataFrame:
    return pd.read_csv(EXAMPLES / path)


def list_rows(path: str, **where: str | float) -> list[dict]:
    """Lists the rows of a CSV file below reports/examples that have the given values by column."""
    rows = _read_rows(path)
    for column, value in where.items():
        rows = rows[rows[column] == value]
    return rows.to_dict("records")


def look_up(path: str, **where: str | float) -> dict:
    """Looks up the only row of a CSV file with the given values, such as arm="symmetric"; missing texts are NaN.

    Raises ValueError for no row or several rows.
    """
    rows = list_rows(path, **where)
    if len(rows) != 1:
        raise ValueError(f"{path}: {len(rows)} rows with {where}; expected one")
    return rows[0]


def look_up_contrast(folder: str, arm: str, at: str, reference: str = "original") -> dict:
    """Looks up a comparison in contrasts.csv of a study, such as `self_score/8_tokens`.

    `at` is `validation_loss` or, for the steps to a loss, `loss=5.5`. `direction` is empty without a verdict.
    """
    row = look_up(f"{folder}/contrasts.csv", arm=arm, reference=reference, at=at, source="reproduced")
    # An empty text in a CSV file is read as NaN.
    if not isinstance(row["direction"], str):
        row["direction"] = ""
    return row


def read_addresses() -> dict[str, str]:
    """Reads the web addresses of repository and published pages from pyproject.toml."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project["urls"]


def render(name: str) -> str:
    """Renders a page, `readme` or `findings`, from the Markdown template."""
    environment = ENVIRONMENT.overlay(loader=jinja2.FileSystemLoader(TEMPLATES))
    facts = {
        "contrast": look_up_contrast,
        "look_up": look_up,
        "list_rows": list_rows,
        "addresses": read_addresses(),
    }
    return environment.get_template(f"{name}.md").render(facts).rstrip() + "\n"


def main() -> None:
    """Writes both pages."""
    for name, path in PAGES.items():
        write_atomically(path, render(name))
        print(f"{path}: written")


if __name__ == "__main__":
    with clear_errors():
        main()
