"""Study: what decides how soon a run leaves the plateau, the operator or the spread of its first scores?

FOLDER holds `params.yaml` and `observations/`, those (as they are, or gzipped) that the chain's stages `parameters` and
`pretraining` leave at scale `plateau` or `plateau_deep`: to judge your own run, copy both. Writes FOLDER/tables and
FOLDER/figures, which are replaced as a whole, and the page FOLDER/report.html.

A run leaves the plateau at the first evaluation whose validation loss is below LEVEL, which was set before the runs;
one that never does is right-censored at its last step. The arm of a run is a name in `operators`: an operator whose
own parameters start as in its source, or a variant of one with first scores of a given spread, or with a learning rate
of its own for what makes the scores. comparisons.py compares the arms, in pairs of equal seeds.
"""

from io import StringIO
from math import ceil, nan
from pathlib import Path

import pandas as pd

from stages.evidence import convergence, released, survival
from stages.evidence.measurements import measurements
from stages.evidence.statistics import bands
from stages.plumbing.files import temporary_sibling, write_atomically
from stages.report import drawing, html
from stages.report.tables import csv_of
from stages.report.words import TEMPLATES
from stages.studies.command import read
from stages.studies.plateau import comparisons, figures
from stages.studies.plateau.comparisons import LATER, RATE, SCALED, SOONER, SOURCE

LEVEL = 2.5  # nats: half way between the plateau and the final loss of the best arm of a pilot of one other seed
OTHER = "other start"  # a kind of arms that the study shows and does not compare
ARM = ["size", "arm", "operator", "kind", "spread"]
ARMS = [*ARM, *survival.MEANS, "loss", "loss_sd", "moved"]  # times in steps, final losses in nats, a text
LINES = [*ARM, "metric", "step", "mean", "minimum", "maximum", "n"]  # `metric`: one of figures.PROBES; n: runs
AUTHORS_RANGE = 0.02  # standard deviation of new weights but those of S, in the code that Courtois et al. released
ENOUGH = 0.9  # share of the runs of the best arm that must leave the plateau; below it, we take the runs as too short
OPENINGS = {  # beginnings of the page's answers, by question; the first is the main test
    "operator": "At equal spread of the first scores",
    "source": "With only their own matrices started as in their sources",
    "spread": "At equal operator",
    "rate": "With a larger learning rate for what makes the scores",
    "diagonals": "What the diagonals of shared do, at equal spread",
}


def main(folder: Path) -> None:
    """Judges the runs of a folder, which has params.yaml and observations, and writes its tables, figures and page.

    Raises FileNotFoundError without params.yaml, and ValueError for a damaged file, and for settings as in `study`.
    """
    params, rows = read(folder)
    frames = {name: stored(frame) for name, frame in study(rows, params).items()}
    frames["tests"] = frames["tests"].fillna({"place": ""})  # averages have an empty place, which `stored` made NaN
    options = params["analysis"]["confidence"], params["analysis"]["alpha"]
    grids = figures.grids(frames["tests"], frames["arms"], *options)
    drawings = figures.drawings(frames["arms"], frames["waiting"], frames["probes"])
    with temporary_sibling(folder / "tables") as new:
        for grid in grids:
            write_atomically(new / f"{grid.name}.csv", csv_of(grid.csv))
    drawing.write(folder / "figures", drawings)
    page = html.environment(Path(__file__).parent, TEMPLATES).get_template("page.html")
    values = {"params": params, "level": LEVEL, "theirs": AUTHORS_RANGE, "authors": authors(), "openings": OPENINGS}
    values |= {"undecided": why_undecided(frames["arms"], frames["tests"]), "answers": answers(frames["tests"])}
    values |= {"tables": grids, "figures": drawings, "departed": figures.departed}
    # A family of m comparisons can be decided only if m times the smallest p is below alpha.
    smallest_p = comparisons.smallest_flip_p(len(params["pretraining"]["seeds"]))
    most = ceil(params["analysis"]["alpha"] / smallest_p) - 1
    single = frames["tests"][frames["tests"]["place"] != ""]
    values["singles"] = single.groupby("question")["flip_p"].count().tolist()
    values |= {"smallest_p": smallest_p, "most": most, "confidence": f"{params['analysis']['confidence']:.0%}"}
    write_atomically(folder / "report.html", page.render(values))


def study(rows: pd.DataFrame, params: dict) -> dict[str, pd.DataFrame]:
    """Computes the study from observations of the stages `parameters` and `pretraining`, and params.yaml's content.

    Returns frames by name, with their columns: `arms` (ARMS), `waiting` (ARM and survival.CURVE), `tests`
    (comparisons.TESTS) and `probes` (LINES). Raises ValueError for several sizes, or no arms of given spreads.
    """
    if len(params["sizes"]) > 1:
        raise ValueError(f"sizes: {', '.join(params['sizes'])}; a study of the plateau has one")
    arms = arms_of(rows, params)
    if not (arms["kind"] == SCALED).any():
        raise ValueError("operators: none is a variant with a `score_spread`; the scale `plateau` has a study of them")
    confidence, alpha = params["analysis"]["confidence"], params["analysis"]["alpha"]
    runs = arms.merge(departures(rows), on=["size", "arm"])
    probes = bands(_by_step(rows[rows["metric"].isin([*figures.PROBES])]), ["size", "arm", "metric", "step"])
    return {
        "arms": _summarised(runs, rows, confidence),
        "waiting": survival.curves(runs, ARM),
        "tests": comparisons.tests(runs, confidence, alpha).assign(size=params["sizes"][0]),
        "probes": arms.merge(probes, on=["size", "arm"])[LINES],
    }


def stored(frame: pd.DataFrame) -> pd.DataFrame:
    """Rounds a frame to ten significant digits, as the chain stores its tables, so that it is equal on every machine.

    Texts stay texts, though some read as numbers (a spread of `0.3`); empty ones become NaN.
    """
    texts = dict.fromkeys({"place", "term", "reference"} & set(frame), "str")
    return pd.read_csv(StringIO(frame.to_csv(index=False, float_format="%.10g")), dtype=texts)


def arms_of(rows: pd.DataFrame, params: dict) -> pd.DataFrame:
    """Describes every arm by its operator, its kind, and the spread of its first scores. Columns: ARM.

    rows: observations. params: the content of params.yaml. kind: SCALED where only `score_spread` is set, RATE where
    only `score_rate` is, SOURCE where neither these nor `start` are, otherwise OTHER. spread: as it is set or, where it
    is not, as stage parameters computed it (the metric `first_score_spread`), or NaN.
    """
    [size] = params["sizes"]
    counted = rows[(rows["metric"] == "first_score_spread") & (rows["size"] == size)]
    spreads = counted.set_index("operator")["value"].to_dict()
    kinds = {(): SOURCE, ("score_spread",): SCALED, ("score_rate",): RATE}
    arms = []
    for name in params["operators"]:
        variant = params["variants"].get(name, {"operator": name})
        changed = tuple(key for key in ("start", "score_spread", "score_rate") if variant.get(key) is not None)
        spread = variant.get("score_spread") or spreads.get(name, nan)
        arms.append((size, name, variant["operator"], kinds.get(changed, OTHER), spread))
    return pd.DataFrame(arms, columns=ARM)


def departures(rows: pd.DataFrame) -> pd.DataFrame:
    """Determines when every run left the plateau, or until when it had not; and its last validation loss.

    Columns: size, arm, seed, step (the first evaluation below LEVEL, or the last), reached (whether it left), loss.
    """
    events = []
    for (arm, size, seed), run in convergence.validation_loss(rows).groupby(convergence.RUN, sort=False):
        run = run.sort_values("step")
        step, reached = survival.first_below(run["step"], run["value"], LEVEL)
        events.append((size, arm, seed, float(step), reached, float(run["value"].iloc[-1])))
    return pd.DataFrame(events, columns=["size", "arm", "seed", "step", "reached", "loss"])


def _summarised(runs: pd.DataFrame, rows: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Computes the restricted mean and the final loss of every arm, and how far its weights moved. Columns: ARMS."""
    means = survival.restricted_means(runs, ["size"], confidence, "arm")
    losses = runs.groupby(["size", "arm"], sort=False)["loss"].agg(loss="mean", loss_sd="std").reset_index()
    whole = runs[ARM].drop_duplicates().merge(means, on=["size", "arm"]).merge(losses, on=["size", "arm"])
    return whole.merge(_moved(rows), on=["size", "arm"], how="left").fillna({"moved": ""})[ARMS]


def _moved(rows: pd.DataFrame) -> pd.DataFrame:
    """Says how far weights moved, relatively, by the last evaluation (`query 0.3, S 2`). Columns: size, arm, moved."""
    rows = _by_step(rows[rows["metric"].str.startswith("movement_")])
    rows = rows[rows["step"] == rows.groupby(["size", "arm"])["step"].transform("max")]
    means = rows.groupby(["size", "arm", "metric"], sort=False)["value"].mean().reset_index()
    moved = means["metric"].str.removeprefix("movement_") + means["value"].map(" {:.2g}".format)
    return means.assign(moved=moved).groupby(["size", "arm"], sort=False)["moved"].agg(", ".join).reset_index()


def _by_step(rows: pd.DataFrame) -> pd.DataFrame:
    """Selects pre-training's rows, all of condition `step=NUMBER`; adds this `step`, and renames operator to `arm`."""
    return convergence.with_steps(rows[rows["stage"] == "pretraining"].rename(columns={"operator": "arm"}))


def authors() -> dict[str, float]:
    """Finds the step at which released runs of BERT-base leave their plateau, by operator; as the report measures it.

    This is the plateau of `convergence.plateau`, and not the study's own LEVEL. Runs that never leave it are missing.
    """
    steps = measurements(released.validation_loss())
    steps = steps[(steps["metric"] == "plateau_end_step") & (steps["size"] == "base")]
    return steps.set_index("operator")["value"].to_dict()


def why_undecided(arms: pd.DataFrame, tests: pd.DataFrame) -> str:
    """Says why the study decides nothing, as a clause; an empty text where it can decide something."""
    best = arms.sort_values(["never", "mean"]).iloc[0]
    if 1 - best["never"] / best["runs"] < ENOUGH:
        return f"even in its best arm only {figures.departed(best['never'], best['runs'])} runs leave the plateau"
    main = tests[(tests["question"] == "operator") & (tests["place"] == "")]
    return "its comparisons of operators have no interval" if main["low"].isna().all() else ""


def answers(tests: pd.DataFrame) -> dict[str, list[dict]]:
    """Groups the averaged comparisons, rows of `tests` (comparisons.TESTS) as dicts, by question.

    Each has in `singly` the single places at which its term is SOONER or LATER: {verdict: places}.
    """
    decided = tests[(tests["place"] != "") & tests["verdict"].isin((SOONER, LATER))]
    by_question = {}
    for row in tests[tests["place"] == ""].to_dict("records"):
        single = decided[(decided["question"] == row["question"]) & (decided["term"] == row["term"])]
        singly = {verdict: list(rows["place"]) for verdict, rows in single.groupby("verdict")}
        by_question.setdefault(row["question"], []).append(row | {"singly": singly})
    return by_question
