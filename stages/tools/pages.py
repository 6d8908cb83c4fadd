"""Renders README.md and the findings from the CSV files of the example reports: `python -m stages.tools.pages`.

A page is a Jinja template in reports/pages.
"""

import tomllib
from functools import cache
from pathlib import Path

import jinja2
import pandas as pd

from stages.evidence import published
from stages.evidence.fields import select_rows
from stages.evidence.statistics import compute_critical_value
from stages.evidence.verdicts import AUDITED, Difference, Statement
from stages.files.paths import REPORTS
from stages.files.storage import write_atomically
from stages.report.tables import format_interval, format_number, format_signed
from stages.report.text_templates import ENVIRONMENT
from stages.runner.errors import clear_errors

EXAMPLES = REPORTS / "examples"
TEMPLATES = REPORTS / "pages"
# by the name of the template
PAGES = {"readme": Path("README.md"), "findings": EXAMPLES / "README.md"}

# the words of the audit in the table of the findings
SHOWN_STATEMENTS = (
    Statement.HOLDS,
    Statement.TRUNCATED,
    Statement.PARTLY,
    Statement.UNSUPPORTED,
    Statement.FAILS,
    Statement.NOT_CHECKABLE,
)


@cache
def _read_rows(path: str) -> pd.DataFrame:
    return pd.read_csv(EXAMPLES / path)


def list_rows(path: str, **where: str | float) -> list[dict]:
    """Lists the rows of a CSV file below reports/examples that have the given values by column."""
    return select_rows(_read_rows(path), **where).to_dict("records")


def look_up(path: str, **where: str | float) -> dict:
    """Looks up the only row of a CSV file below reports/examples with given values, such as arm="symmetric".

    An empty cell of a column of texts is NaN. ValueError for no row or several rows.
    """
    rows = list_rows(path, **where)
    if len(rows) != 1:
        raise ValueError(f"{path}: {len(rows)} rows with {where}; expected one")
    return rows[0]


def look_up_contrast(folder: str, arm: str, at: str = "validation_loss", reference: str = "original") -> dict:
    """Looks up a comparison in contrasts.csv of a study, such as `self_score/8_tokens`.

    `at` is `validation_loss`, a score, or, for the steps to a loss, `loss=5.5`.
    """
    return look_up(f"{folder}/contrasts.csv", arm=arm, reference=reference, at=at, source="reproduced")


def format_difference(row: dict, decimals: int = 3, unit: str = "", reverse: bool = False, signed: bool = True) -> str:
    """Formats a difference with its interval, as in `+0.33 nats (0.23 to 0.44)`; `reverse` swaps arm and reference."""
    estimate, low, high = row["estimate"], row["low"], row["high"]
    if reverse:
        estimate, low, high = -estimate, -high, -low
    number = format_signed(estimate, decimals) if signed else format_number(estimate, decimals)
    return f"{number}{unit} ({format_interval(low, high, decimals)})"


def describe_claimed(operator: str, quantity: str, decimals: int = 2) -> str:
    """Describes the difference from the original that an operator's source prints, by edition: `+0.10 and +0.12`."""
    rows = select_rows(published.read_claimed(), operator=operator, quantity=quantity)
    return " and ".join(format_signed(value, decimals) for value in rows["estimate"])


def count_leaving_runs(path: str, **where: str) -> str:
    """Counts the runs that leave the plateau, as in `3 of 40`, of the arms whose scores start at a spread <= 1."""
    rows = select_rows(_read_rows(path), kind="scaled", **where)
    rows = rows[rows["spread"] <= 1]
    # `never`: the runs of an arm that stay on the plateau
    runs = rows["runs"].sum()
    return f"{runs - rows['never'].sum()} of {runs}"


def look_up_saved_parameters(operator: str) -> float:
    """Looks up the per cent of the parameters of BERT-base that an operator saves."""
    return look_up("laptop/tables/first_screen.csv", operator=operator, column="saved", source="counted")["estimate"]


def format_saved_attention(operator: str, size: str = "base") -> str:
    """Formats the per cent of the parameters of an attention block that an operator saves, as in `33 %`."""
    row = look_up("own_score/8_tokens/summaries.csv", metric="block_saved_percent", operator=operator, size=size)
    return f"{row['mean']:.0f} %"


def render(name: str) -> str:
    """Renders a page, `readme` or `findings`, from the Markdown template."""
    environment = ENVIRONMENT.overlay(loader=jinja2.FileSystemLoader(TEMPLATES))
    package = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
    facts = {
        "contrast": look_up_contrast,
        "difference": format_difference,
        "claimed": describe_claimed,
        "left": count_leaving_runs,
        "saved": look_up_saved_parameters,
        "attention": format_saved_attention,
        "critical": compute_critical_value,
        "not_run": Difference.NOT_RUN,
        "papers": published.PAPERS.values(),
        "words": [AUDITED.get(statement, statement) for statement in SHOWN_STATEMENTS],
        "look_up": look_up,
        "list_rows": list_rows,
        # of the repository and of the published pages
        "addresses": package["project"]["urls"],
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
