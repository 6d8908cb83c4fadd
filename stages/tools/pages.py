"""Judges the studies by the ordinary analysis and renders their pages: `python -m stages.tools.pages`.

The comparisons of a study (studies.py) go to `contrasts.csv` in its folder, the means of the operators to `means.csv`,
and the comparisons of the released results to reports/examples/released.csv. The stage `analysis` judged study
own_score. Some studies have figures that are drawn from the observations.

A page is a Jinja template in reports/pages, where macros.md has the macros of several pages. The numbers come from
these files and from the tables of the example reports.
"""

import tomllib
from functools import cache
from math import exp
from pathlib import Path

import jinja2
import pandas as pd

from stages.evidence import convergence, published
from stages.evidence.fields import select_rows
from stages.files.documents import read_yaml
from stages.files.paths import REPORTS
from stages.files.storage import write_atomically
from stages.report.tables import write_csv
from stages.report.text_templates import ENVIRONMENT
from stages.runner.errors import clear_errors
from stages.tools import example_numbers, steps_benchmark, studies, study_figures

EXAMPLES = example_numbers.EXAMPLES
TEMPLATES = REPORTS / "pages"
# By the name of the template.
PAGES = {
    "readme": Path("README.md"),
    "findings": EXAMPLES / "README.md",
    "related_work": EXAMPLES / "related_work.md",
    "own_score": EXAMPLES / "own_score/README.md",
    "statistics": EXAMPLES / "statistics/README.md",
    "english": EXAMPLES / "english/README.md",
    "self_score": EXAMPLES / "self_score/README.md",
    "plateau": EXAMPLES / "plateau/README.md",
    "plateau_deep": EXAMPLES / "plateau_deep/README.md",
    "lengths": EXAMPLES / "lengths/README.md",
    "files": EXAMPLES / "files/README.md",
    "laptop": EXAMPLES / "laptop/README.md",
    "translation": EXAMPLES / "translation/README.md",
    "benchmark": EXAMPLES / "benchmark/README.md",
}
# The arms whose losses are drawn, by the figure of a study.
FIGURES = {
    "english/english.svg": ("original", "shared_kv", "symmetric", "shared", "pairwise"),
    "self_score/8_tokens/curves.svg": (
        "original",
        "original_self",
        "symmetric_centred",
        "symmetric",
    ),
    "self_score/16_tokens/curves.svg": ("original", "symmetric_centred", "symmetric"),
}

COSTS = (EXAMPLES / "own_score/8_tokens", EXAMPLES / "own_score/16_tokens")
SELF_WEIGHTS = ("original", "symmetric", "shared", "symmetric_masked", "identity_query", "shared_kv")


def draw_figure(folder: Path, curves: tuple[str, ...]) -> bytes:
    """Draws the figure of a study as SVG, with the losses of the operators `curves`."""
    params = read_yaml(folder / "params.yaml")
    return study_figures.draw(
        studies.read_observations(folder), params["operators"], studies.read_first_level(folder), curves
    )


def draw_cost_figures(folder: Path) -> dict[str, bytes]:
    """Draws the figures of a length of study own_score as SVG: the cost of every operator, and self-weights by step."""
    rows = studies.read_observations(folder)
    losses = select_rows(convergence.measure_losses(rows), metric="final_validation_loss")
    name = folder.relative_to(EXAMPLES)
    costs = list_rows(f"{name}/contrasts.csv", at="validation_loss", reference="original", source="reproduced")
    shares = list_rows("own_score/8_tokens/summaries.csv", metric="block_saved_percent", size="base")
    saved = {row["operator"]: row["mean"] for row in shares}
    arms = set(rows["operator"])
    return {
        "costs": study_figures.draw_costs(losses, pd.DataFrame(costs), saved),
        "self_weight": study_figures.draw_self_weights(rows, [arm for arm in SELF_WEIGHTS if arm in arms]),
    }


@cache
def _read_rows(path: str) -> pd.DataFrame:
    return pd.read_csv(EXAMPLES / path)


def look_up(path: str, **where: str | float) -> dict:
    """Looks up the single row of a CSV file that has given values in given columns.

    Args:
        path: below reports/examples, such as `english/contrasts.csv`.
        where: the values by column, such as arm="symmetric".

    Returns:
        The row, by column; missing texts are NaN.

    Raises:
        ValueError: no row or several rows have these values.
    """
    rows = list_rows(path, **where)
    if len(rows) != 1:
        raise ValueError(f"{path}: {len(rows)} rows with {where}; expected one")
    return rows[0]


def list_rows(path: str, **where: str | float) -> list[dict]:
    """Lists the rows of a CSV file that have given values in given columns, as dictionaries by column.

    Args:
        path: below reports/examples, such as `english/contrasts.csv`.
        where: the values by column, such as arm="symmetric".
    """
    rows = _read_rows(path)
    for column, value in where.items():
        rows = rows[rows[column] == value]
    return rows.to_dict("records")


def look_up_contrast(folder: str, arm: str, at: str, reference: str = "original") -> dict:
    """Looks up a comparison of a study: the row of contrasts.csv. `direction` is empty without a verdict.

    Args:
        folder: below reports/examples, such as `self_score/8_tokens`.
        arm: the operator, such as `symmetric`.
        at: `validation_loss`, or `loss=5.5` for the steps to that loss.
        reference: the operator to compare with.

    Raises:
        ValueError: the study has no such comparison.
    """
    row = look_up(f"{folder}/contrasts.csv", arm=arm, reference=reference, at=at, source="reproduced")
    # An empty text in a CSV file is read as NaN.
    if not isinstance(row["direction"], str):
        row["direction"] = ""
    return row


def look_up_mean(folder: str, arm: str, at: str) -> dict:
    """Looks up the mean of an operator over the seeds of a study: the row of means.csv.

    Args:
        folder: below reports/examples, such as `self_score/8_tokens`.
        arm: the operator, such as `symmetric`.
        at: `validation_loss`, or `loss=5.5` for the steps to that loss.

    Raises:
        ValueError: the study has no such mean.
    """
    return look_up(f"{folder}/means.csv", arm=arm, at=at)


def read_addresses() -> dict[str, str]:
    """Reads the web addresses of the repository and of the published pages, `[project.urls]` of pyproject.toml."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project["urls"]


def render(name: str) -> str:
    """Renders a documentation page, such as `english`, from a Markdown template.

    The template looks most numbers up in the CSV files of the studies and of the example reports.
    """
    environment = ENVIRONMENT.overlay(loader=jinja2.FileSystemLoader(TEMPLATES))
    facts = {
        "contrast": look_up_contrast,
        "mean": look_up_mean,
        "look_up": look_up,
        "list_rows": list_rows,
        "glue_scores": example_numbers.list_glue_scores,
        "compare_scores": example_numbers.compare_glue_scores,
        "columns_below": example_numbers.list_columns_below,
        "loss_range": example_numbers.find_loss_range,
        "count_claims": example_numbers.count_claims,
        "papers": published.PAPERS,
        "addresses": read_addresses(),
        "fixed": steps_benchmark.read_fixed_settings(),
        "fewest_seeds": steps_benchmark.FEWEST_SEEDS,
        "highest_alpha": steps_benchmark.HIGHEST_ALPHA,
        "exp": exp,
    }
    return environment.get_template(f"{name}.md").render(facts).rstrip() + "\n"


def main() -> None:
    """Writes the CSV files of the released results and of every study, the figures, and then the pages."""
    write_atomically(EXAMPLES / "released.csv", write_csv(studies.judge_released()))
    for folder in studies.find_studies():
        for name, frame in studies.compute_study(folder).items():
            write_atomically(folder / f"{name}.csv", write_csv(frame))
        print(f"{folder}: judged")
    write_atomically(EXAMPLES / "benchmark/results.csv", write_csv(steps_benchmark.list_results()))
    for path, curves in FIGURES.items():
        figure = EXAMPLES / path
        write_atomically(figure, draw_figure(figure.parent, curves))
    for folder in COSTS:
        for name, drawn in draw_cost_figures(folder).items():
            write_atomically(folder / f"{name}.svg", drawn)
    # the pages look numbers up in the tables above, and so are rendered last
    for name, path in PAGES.items():
        write_atomically(path, render(name))
        print(f"{path}: written")


if __name__ == "__main__":
    with clear_errors():
        main()
