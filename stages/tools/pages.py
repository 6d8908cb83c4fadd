"""Judges the studies by the ordinary analysis and renders their pages: `python -m stages.tools.pages`.

A study is a folder below reports/examples with `params.yaml` (the settings of training), `analysis.yaml` (the section
`analysis` that judges the study) and `observations`. The comparisons of a study go to `contrasts.csv`, as the stage
`analysis` makes them, and the means of the arms to `means.csv`; the comparisons of the released results go to
reports/examples/released.csv. The study of English also lists the runs at every learning rate, the study of
self-attention compares two lengths, and benchmark/results.csv lists the entries of the open benchmark. FIGURES are
drawn from the observations, and one more from the study on a GPU.

A page is a Jinja template in reports/pages, where macros.md has the macros of several pages. The numbers come from
these files and from the tables of the example reports.
"""

import tomllib
from functools import cache
from math import exp
from pathlib import Path

import jinja2
import numpy as np
import pandas as pd

from stages.analysis import contrasts
from stages.evidence import convergence, measurements, published, released, survival
from stages.evidence.estimate import welch
from stages.evidence.statistics import mean_interval, summaries
from stages.files import observations
from stages.files.documents import read_yaml
from stages.files.paths import REPORTS
from stages.files.storage import write_atomically
from stages.report.tables import csv_of
from stages.report.text_templates import ENVIRONMENT
from stages.schema import scales
from stages.tools import example_numbers, steps_benchmark, study_figures

EXAMPLES = example_numbers.EXAMPLES
TEMPLATES = REPORTS / "pages"
# By the name of the template.
PAGES = {
    "readme": Path("README.md"),
    "findings": EXAMPLES / "README.md",
    "related_work": EXAMPLES / "related_work.md",
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
ENGLISH = EXAMPLES / "english"
SELF_SCORE = EXAMPLES / "self_score"
MEANS = ["arm", "at", "mean", "sd", "low", "high", "runs", "never"]
RUNS = ["learning_rate", "arm", "seed", "step", "reached", "final_loss"]
STEP_RATIOS = ["tokens", "ratio", "low", "high", "p", "seeds"]


def find_studies() -> list[Path]:
    """Returns the folders below reports/examples that have an `analysis.yaml`, sorted."""
    return sorted(path.parent for path in EXAMPLES.rglob("analysis.yaml"))


def read_observations(folder: Path) -> pd.DataFrame:
    """Reads all observations of a study."""
    files = sorted((folder / "observations").iterdir())
    return observations.read(files)


def judge(folder: Path) -> dict[str, pd.DataFrame]:
    """Computes the comparisons and the means of a study.

    Returns:
        `contrasts`, the comparisons, and `means`, with the columns MEANS: of the final loss in nats (`at` is
        validation_loss) and of the steps to each level, where a run that never reaches the level counts with the last
        step at which all runs are known.
    """
    options = read_yaml(folder / "analysis.yaml")
    confidence = options["confidence"]
    rows = read_in_order(folder)
    measured = measurements.measurements(rows, options["levels"])
    quantities = contrasts.quantities(rows, measured, {})
    # no study planned to compare speed or transfer
    quantities = quantities[~quantities["quantity"].isin((contrasts.SPEED, contrasts.TRANSFER))]
    compared = contrasts.table(
        {contrasts.THIS_RUN: quantities},
        confidence,
        options["alpha"],
        options["pairs"],
    )
    final = measured[measured["metric"] == "final_validation_loss"]
    losses = summaries(final, ["operator"], confidence).assign(milestone=contrasts.FINAL_LOSS, never=0)
    steps = survival.restricted_means(convergence.milestone_events(measured), ["milestone"], confidence)
    means = pd.concat([losses, steps]).rename(columns={"operator": "arm", "milestone": "at"})[MEANS]
    return {"contrasts": compared, "means": means}


def read_in_order(folder: Path) -> pd.DataFrame:
    """Reads the observations of the operators in params.yaml of a study, in the order of params.yaml."""
    operators = read_yaml(folder / "params.yaml")["operators"]
    rows = read_observations(folder)
    rows = rows[rows["operator"].isin(operators)]
    return rows.sort_values(
        "operator",
        key=lambda names: names.map(operators.index),
        kind="stable",
    )


def judge_released() -> pd.DataFrame:
    """Compares the operators in the results that Courtois et al. released, by the options of scale `laptop`."""
    options = read_yaml(scales.FOLDER / "laptop.yaml")["analysis"]
    rows = released.observations()
    quantities = contrasts.quantities(rows, measurements.measurements(rows), {})
    return contrasts.table({contrasts.RELEASED: quantities}, options["confidence"], options["alpha"])


def list_english_runs() -> pd.DataFrame:
    """Lists all runs of the study of English, with the columns RUNS, by learning rate.

    step, reached, final_loss: as `convergence.crossings` returns these columns for the first level of the study.
    original and symmetric at 1e-3 were trained for part 2 of the study of self-attention.
    """
    level = read_first_level(ENGLISH)
    lists = []
    for folder in (
        ENGLISH,
        *sorted((ENGLISH / "rates").iterdir()),
        SELF_SCORE / "rate_1e-3",
    ):
        learning_rate = read_yaml(folder / "params.yaml")["pretraining"]["learning_rate"]
        runs = convergence.crossings(read_observations(folder), level)
        lists.append(runs.assign(learning_rate=learning_rate))
    runs = pd.concat(lists).rename(columns={"operator": "arm", "pretraining_seed": "seed"})[RUNS]
    keys = ["learning_rate", "arm", "seed"]
    # Part 2 repeats runs of rates/1e-3.
    return runs.drop_duplicates(keys).sort_values(keys)


def read_first_level(folder: Path) -> float:
    """Reads the first level of the validation loss in analysis.yaml of a study, in nats."""
    return read_yaml(folder / "analysis.yaml")["levels"][0]


def compute_step_ratios(folder: Path) -> np.ndarray:
    """Computes the step ratio of every seed of a study: the relative delay of the plan in scale `self_score`.

    A step ratio is the step at which the symmetric run of a seed falls below the first level, divided by the step of
    the original run. A run that never falls below the level counts with the last step of the run.
    """
    runs = convergence.crossings(read_observations(folder), read_first_level(folder))
    steps = runs.pivot(index="pretraining_seed", columns="operator", values="step")
    return (steps["symmetric"] / steps["original"]).to_numpy()


def compare_step_ratios() -> pd.DataFrame:
    """Compares the step ratios with 8 and with 16 tokens by Welch's test of their logarithms over seeds.

    Returns:
        STEP_RATIOS, with `tokens` of `8` and `16` for the geometric means and of `16 / 8` for the ratio of these two
        means, with its p. low, high: intervals of a single comparison.
    """
    confidence = read_yaml(SELF_SCORE / "16_tokens/analysis.yaml")["confidence"]
    logarithms = {}
    rows = []
    for tokens in ("8", "16"):
        values = np.log(compute_step_ratios(SELF_SCORE / f"{tokens}_tokens"))
        mean, _, low, high = mean_interval(values, confidence)
        rows.append((tokens, exp(mean), exp(low), exp(high), None, len(values)))
        logarithms[tokens] = values
    change = welch(logarithms["16"], logarithms["8"], confidence)
    rows.append(("16 / 8", exp(change.value), exp(change.low), exp(change.high), change.p, None))
    return pd.DataFrame(rows, columns=STEP_RATIOS).astype({"seeds": "Int64"})


def draw_figure(folder: Path, curves: tuple[str, ...]) -> bytes:
    """Draws the figure of a study, with the losses of the arms `curves`."""
    params = read_yaml(folder / "params.yaml")
    return study_figures.draw(read_observations(folder), params["operators"], read_first_level(folder), curves)


def draw_gpu_figure() -> bytes:
    """Draws the final losses of the study on a GPU: the fresh seeds of call 4 in h100/study.csv."""
    rows = pd.DataFrame(list_rows("h100/study.csv", call=4, phase="fresh"))
    final = rows[rows["step"] == rows["step"].max()].rename(columns={"validation_loss": "final_loss"})
    return study_figures.draw_final_losses(final, f"Validation loss after {final['step'].max():,} steps")


@cache
def _read(path: str) -> pd.DataFrame:
    """Reads a CSV file below reports/examples and keeps the rows for the next look-up."""
    return pd.read_csv(EXAMPLES / path)


def look_up(path: str, **where: str | float) -> dict:
    """Looks up the one row of a CSV file that has these values in these columns.

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
    """Lists the rows of a CSV file that have these values in these columns. Arguments and rows as for `look_up`."""
    rows = _read(path)
    for column, value in where.items():
        rows = rows[rows[column] == value]
    return rows.to_dict("records")


def look_up_contrast(folder: str, arm: str, at: str, reference: str = "original") -> dict:
    """Looks up one comparison of a study: a row of contrasts.csv. `direction` is empty without a verdict.

    Args:
        folder: below reports/examples, such as `self_score/8_tokens`.
        arm: as in contrasts.csv, such as `symmetric`.
        at: `validation_loss`, or a milestone such as `loss=5.5`.
        reference: as in contrasts.csv, such as `original`.

    Raises:
        ValueError: the study has no such comparison.
    """
    row = look_up(f"{folder}/contrasts.csv", arm=arm, reference=reference, at=at)
    # An empty text in a CSV file is read as NaN.
    if not isinstance(row["direction"], str):
        row["direction"] = ""
    return row


def look_up_mean(folder: str, arm: str, at: str) -> dict:
    """Looks up the mean of one arm over its seeds: a row of MEANS. Arguments and errors as for `look_up_contrast`."""
    return look_up(f"{folder}/means.csv", arm=arm, at=at)


def read_addresses() -> dict[str, str]:
    """Reads the addresses of the repository and of the published pages, `[project.urls]` of pyproject.toml."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project["urls"]


def render(name: str) -> str:
    """Renders a page, a key of PAGES, from the template and the CSV files of the studies."""
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
        "exp": exp,
    }
    return environment.get_template(f"{name}.md").render(facts).rstrip() + "\n"


def main() -> None:
    """Writes the CSV files of the released results and of every study, the figures, and then the pages."""
    write_atomically(EXAMPLES / "released.csv", csv_of(judge_released()))
    for folder in find_studies():
        for name, frame in judge(folder).items():
            write_atomically(folder / f"{name}.csv", csv_of(frame))
        print(f"{folder}: judged")
    write_atomically(ENGLISH / "runs.csv", csv_of(list_english_runs()))
    write_atomically(SELF_SCORE / "step_ratios.csv", csv_of(compare_step_ratios()))
    write_atomically(EXAMPLES / "benchmark/results.csv", csv_of(steps_benchmark.list_results()))
    for path, curves in FIGURES.items():
        figure = EXAMPLES / path
        write_atomically(figure, draw_figure(figure.parent, curves))
    write_atomically(EXAMPLES / "h100/last_losses.svg", draw_gpu_figure())
    for name, path in PAGES.items():
        write_atomically(path, render(name))
        print(f"{path}: written")


if __name__ == "__main__":
    main()
