"""Judges the studies by the ordinary analysis and renders their pages: `python -m stages.tools.pages`.

A study is a folder below reports/examples with `params.yaml` (how its models were trained), `analysis.yaml` (the
section `analysis` by which it is judged) and `observations`. Its comparisons go to `contrasts.csv`, as the stage
`analysis` makes them, and the means of its arms to `means.csv`; the comparisons of the released results go to
reports/examples/released.csv. The study of English also lists its runs at every learning rate, and the study of
self-attention compares two lengths. A page is a Jinja template in reports/pages; its numbers come from these files and
from the tables of the example reports.
"""

from functools import cache
from math import exp
from pathlib import Path

import pandas as pd

from stages.analysis import contrasts
from stages.evidence import convergence, measurements, released, survival
from stages.evidence.estimate import paired, welch
from stages.evidence.statistics import summaries
from stages.plumbing import observations
from stages.plumbing.documents import read_yaml
from stages.plumbing.files import REPORTS, write_atomically
from stages.report.tables import csv_of
from stages.report.words import ENVIRONMENT
from stages.tools import study_figures

EXAMPLES, TEMPLATES = REPORTS / "examples", REPORTS / "pages"
PAGES = {  # by the name of the template
    "readme": Path("README.md"),
    "findings": EXAMPLES / "README.md",
    "related_work": EXAMPLES / "related_work.md",
    "english": EXAMPLES / "english/README.md",
    "self_score": EXAMPLES / "self_score/README.md",
}
FIGURES = {  # by the folder of a study: the arms whose losses are drawn
    "self_score/8_tokens": ("original", "original_self", "symmetric_centred", "symmetric"),
    "self_score/16_tokens": ("original", "symmetric_centred", "symmetric"),
}
ENGLISH, SELF_SCORE = EXAMPLES / "english", EXAMPLES / "self_score"
LAPTOP = Path("stages/scales/laptop.yaml")
MEANS = ["arm", "at", "mean", "sd", "low", "high", "runs", "never"]
RUNS = ["learning_rate", "arm", "seed", "step", "reached", "final_loss"]
RELATIVE_DELAYS = ["tokens", "ratio", "low", "high", "p", "seeds"]


def find_studies() -> list[Path]:
    """Returns the folders below reports/examples that have an `analysis.yaml`, sorted."""
    return sorted(path.parent for path in EXAMPLES.rglob("analysis.yaml"))


def judge(folder: Path) -> dict[str, pd.DataFrame]:
    """Computes the comparisons (`contrasts`) and the means of the arms (`means`, MEANS) of a study.

    The means are of the final loss in nats (`at` is validation_loss) and of the steps to each level; a run that never
    gets there counts with the last step at which all runs are known.
    """
    options, operators = read_yaml(folder / "analysis.yaml"), read_yaml(folder / "params.yaml")["operators"]
    rows = observations.read(sorted((folder / "observations").iterdir()))
    rows = rows[rows["operator"].isin(operators)]
    rows = rows.sort_values("operator", key=lambda names: names.map(operators.index), kind="stable")
    measured = measurements.measurements(rows, options["levels"])
    quantities = contrasts.quantities(rows, measured, {})
    confidence, alpha = options["confidence"], options["alpha"]
    compared = contrasts.table({contrasts.REPRODUCED: quantities}, confidence, alpha, options["pairs"])
    losses = summaries(measured[measured["metric"] == "final_validation_loss"], ["operator"], confidence)
    losses = losses.assign(at=contrasts.FINAL_LOSS, never=0).rename(columns={"operator": "arm"})[MEANS]
    events = convergence.milestone_events(measured)
    steps = survival.restricted_means(events, ["milestone"], confidence)
    steps = steps.rename(columns={"operator": "arm", "milestone": "at"})[MEANS]
    return {"contrasts": compared, "means": pd.concat([losses, steps])}


def judge_released() -> pd.DataFrame:
    """Compares the operators in the results that Courtois et al. released, by the options of scale `laptop`."""
    options = read_yaml(LAPTOP)["analysis"]
    rows = released.observations()
    quantities = contrasts.quantities(rows, measurements.measurements(rows), {})
    return contrasts.table({contrasts.RELEASED: quantities}, options["confidence"], options["alpha"])


def list_runs(folder: Path, level: float) -> pd.DataFrame:
    """Lists the pre-training runs in the observations of a folder, with the columns RUNS.

    step: the step at which the validation loss first falls below `level`, in nats, interpolated; the last step of a run
    whose loss never does (`reached` is False). final_loss: in nats.
    """
    learning_rate = read_yaml(folder / "params.yaml")["pretraining"]["learning_rate"]
    losses = convergence.validation_loss(observations.read(sorted((folder / "observations").iterdir())))
    runs = []
    for (arm, seed), run in losses.groupby(["operator", "pretraining_seed"], sort=False):
        step, reached = survival.crossing(run["step"], run["value"], level)
        runs.append((learning_rate, arm, int(seed), step, reached, run["value"].iloc[-1]))
    return pd.DataFrame(runs, columns=RUNS)


def list_rates() -> pd.DataFrame:
    """Lists the runs of the study of English at every learning rate: RUNS, in the order of the rates."""
    level = read_yaml(ENGLISH / "analysis.yaml")["levels"][0]
    folders = [ENGLISH, *sorted((ENGLISH / "rates").iterdir())]
    return pd.concat([list_runs(folder, level) for folder in folders]).sort_values("learning_rate", kind="stable")


def compare_relative_delays() -> pd.DataFrame:
    """Compares the relative delay of symmetric attention between 8 and 16 tokens, as scale `self_score` plans it.

    The relative delay of a seed is the step at which its symmetric run falls below the first level, divided by the step
    of its original run; a run whose loss never does counts with its last step. The logarithms are compared by Welch's
    test over seeds.

    Returns:
        RELATIVE_DELAYS: the geometric mean for `8` and for `16` tokens, then `16 / 8`, the ratio of these two, with
        its p. low, high: unadjusted intervals.
    """
    rows, delays = [], []
    for tokens in (8, 16):
        folder = SELF_SCORE / f"{tokens}_tokens"
        options = read_yaml(folder / "analysis.yaml")
        steps = list_runs(folder, options["levels"][0]).pivot(index="seed", columns="arm", values="step")
        mean = paired(steps["symmetric"].to_numpy(), steps["original"].to_numpy(), options["confidence"], ratio=True)
        rows.append((str(tokens), mean.value, mean.low, mean.high, None, len(steps)))
        delays.append((steps["symmetric"] / steps["original"]).to_numpy())
    short, long = delays
    change = welch(long, short, options["confidence"], ratio=True)
    p = 2 * min(change.p_above(1.0), change.p_below(1.0))
    rows.append(("16 / 8", change.value, change.low, change.high, p, None))
    return pd.DataFrame(rows, columns=RELATIVE_DELAYS)


@cache
def _read(path: str) -> pd.DataFrame:
    """Reads a CSV file below reports/examples, once."""
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
    rows = _read(path)
    for column, value in where.items():
        rows = rows[rows[column] == value]
    if len(rows) != 1:
        raise ValueError(f"{path}: {len(rows)} rows with {where}; expected one")
    return rows.iloc[0].to_dict()


def look_up_contrast(folder: str, arm: str, at: str, reference: str = "original") -> dict:
    """Looks up one comparison of a study: a row of its contrasts.csv. `direction` is empty without a verdict.

    Args:
        folder: below reports/examples, such as `self_score/8_tokens`.
        arm, reference: as contrasts.csv names them, such as `symmetric` and `original`.
        at: `validation_loss`, or a milestone such as `loss=5.5`.

    Raises:
        ValueError: the study has no such comparison.
    """
    row = look_up(f"{folder}/contrasts.csv", arm=arm, reference=reference, at=at)
    return row | {"direction": row["direction"] if isinstance(row["direction"], str) else ""}


def look_up_mean(folder: str, arm: str, at: str) -> dict:
    """Looks up the mean of one arm over its seeds: a row of MEANS. Arguments and errors as for `look_up_contrast`."""
    return look_up(f"{folder}/means.csv", arm=arm, at=at)


def render(name: str) -> str:
    """Renders a page from its template and the CSV files of its studies. name: a key of PAGES."""
    text = (TEMPLATES / f"{name}.md").read_text(encoding="utf-8")
    template = ENVIRONMENT.from_string(text)
    facts = {"contrast": look_up_contrast, "mean": look_up_mean, "look_up": look_up, "exp": exp}
    return template.render(facts).rstrip() + "\n"


def main() -> None:
    """Writes the CSV files of the released results and of every study, the figures, and then the pages."""
    write_atomically(EXAMPLES / "released.csv", csv_of(judge_released()))
    for folder in find_studies():
        for name, frame in judge(folder).items():
            write_atomically(folder / f"{name}.csv", csv_of(frame))
        print(f"{folder}: judged")
    write_atomically(ENGLISH / "runs.csv", csv_of(list_rates()))
    write_atomically(SELF_SCORE / "relative_delays.csv", csv_of(compare_relative_delays()))
    for folder, curves in FIGURES.items():
        write_atomically(EXAMPLES / folder / "curves.svg", study_figures.draw(EXAMPLES / folder, curves))
    for name, path in PAGES.items():
        write_atomically(path, render(name))
        print(f"{path}: written")


if __name__ == "__main__":
    main()
