"""The report's tables of noise, transfer and probes, for whatever operators, sizes and protocols a run has."""

from dataclasses import replace
from functools import partial
from math import nan

import pandas as pd

from stages.common.evidence.scores import MISMATCHED
from stages.common.evidence.statistics import FEWEST, ONE_CHECKPOINT, TOO_FEW
from stages.report import names
from stages.report.paper_lines import CHANCE
from stages.report.tables import Grid, Heading, Value, mean_sd, number, plain, probability, text

MODEL = ["protocol", "size", "operator"]
FLOOR = (
    f"{CHANCE} marks accuracies at chance and, of what is lost, models that were so without noise, with little to lose."
)
percent = partial(number, decimals=1)


def words_of_kind(kind: str) -> str:
    """What the condition of an observation is called here."""
    return "embeddings" if kind == "noise" else kind.replace("_", " ")


def noise(curves: pd.DataFrame, summaries: pd.DataFrame, tests: pd.DataFrame) -> Grid:
    """Accuracy by level, a line a model, split and kind of noise; what is lost; tests at the strongest level."""
    keys = [*MODEL, "evaluated_on", "kind"]
    levels = sorted(curves["level"].unique())
    frame = _wide(curves, keys, "level").merge(_wide(_marked(summaries, curves), keys, "measure"), on=keys, how="left")
    tests = tests.rename(columns={"difference": "lost_more", "n": "pairs"})
    frame = frame.merge(tests, on=keys, how="left")
    frame = frame.assign(label=_labels(frame), kind=frame["kind"].map(words_of_kind))
    frame = frame.assign(test=[_tested(row) for row in frame.itertuples()])  # p_holm, as it is printed
    columns = {
        "label": (Heading("Model"), str),
        "evaluated_on": (Heading("Split"), _words),
        "kind": (Heading("Noise in"), _words),
    }
    columns |= {level: (Heading(f"{100 * level:g} %", "accuracy, %"), _mean_sd) for level in levels}
    columns |= {
        "lost": (Heading("Lost", "points, clean to strongest"), _mean_sd),
        "area": (Heading("Area", "mean over the range of levels, %"), _mean_sd),
        "slope": (Heading("Slope", "points for 1 % of noise"), lambda value: _mean_sd(value, scale=1)),
        "test": (Heading("p", "of points lost against original, paired, after Holm"), lambda value: value),
    }
    notes = (
        "Mean ± standard deviation over the units of inference; the same draws of noise for every operator. A p value "
        "compares what is lost with original in pairs of equal pre-training seeds, adjusted over operators and splits; "
        f"there is none where all pairs differ by the same, and none of fewer than {FEWEST} pairs. The CSV has the "
        "differences and the number of pairs.",
        FLOOR,
    )
    return _plain(frame, columns, name="noise", title="Accuracy under noise, this run", stage="noise", notes=notes)


def _tested(row) -> Value:
    few = row.unit_of_inference in (ONE_CHECKPOINT, TOO_FEW)
    return Value(row.unit_of_inference if few else probability(row.p_holm))


def noise_lost(curves: pd.DataFrame, summaries: pd.DataFrame) -> Grid:
    """Points that noise on the embeddings takes, a line a model, a column a split."""
    keys = [*MODEL, "evaluated_on", "kind"]
    lost = _wide(_marked(summaries, curves), keys, "measure")
    lost = lost[lost["kind"] == "noise"] if len(lost) else lost
    splits = list(dict.fromkeys(lost["evaluated_on"]))
    strongest = curves["level"].max() if len(curves) else 0.0
    rows = {}
    for row in lost.to_dict("records"):
        rows.setdefault(tuple(row[key] for key in MODEL), dict(zip(MODEL, (row[key] for key in MODEL), strict=True)))[
            row["evaluated_on"]
        ] = row["lost"]
    frame = pd.DataFrame(list(rows.values()), columns=None if rows else MODEL)
    frame = frame.assign(label=_labels(frame))
    columns = {"label": (Heading("Model"), str)}
    columns |= {split: (Heading(names.task(split), "points lost"), _mean_sd) for split in splits}
    note = f"Accuracy without noise less accuracy at {100 * strongest:g} % of noise, mean ± standard deviation."
    return _plain(
        frame,
        columns,
        name="noise_lost",
        title="What noise on the embeddings takes, this run",
        stage="noise",
        notes=(note, FLOOR),
    )


def _marked(summaries: pd.DataFrame, curves: pd.DataFrame) -> pd.DataFrame:
    """The summaries with `at_chance`: of what is lost, whether the accuracy without noise is at chance."""
    keys = [*MODEL, "evaluated_on", "kind"]
    clean = curves.loc[curves["level"] == 0, [*keys, "at_chance"]]
    marked = summaries.merge(clean, on=keys, how="left")
    return marked.assign(at_chance=marked["at_chance"].where(marked["measure"] == "lost"))


def transfer(cells: pd.DataFrame) -> Grid:
    """Accuracy by the task trained on (lines) and tested on (columns); below it what answers without a model score."""
    tested = list(dict.fromkeys(cells["evaluated_on"]))
    keys = [*MODEL, "task"]
    accuracy = _wide(cells[cells["metric"] == "accuracy"], keys, "evaluated_on")
    away = (cells["task"] != cells["evaluated_on"].str[:4]) & (cells["evaluated_on"] != MISMATCHED)
    balanced = cells[(cells["metric"] == "balanced_accuracy") & away]
    means = balanced.groupby(keys, sort=False)["mean"].mean().rename("balanced").reset_index()
    frame = accuracy.merge(means, on=keys, how="left")
    frame = frame.assign(label=_labels(frame))
    priors = cells[cells["metric"] == "majority_accuracy"].drop_duplicates("evaluated_on")
    prior = {row.evaluated_on: (row.mean, float("nan")) for row in priors.itertuples()}
    chance = dict.fromkeys(tested, (0.5, float("nan")))
    without = {"task": "", "balanced": 0.5}
    constant = pd.DataFrame(
        [{"label": "the more frequent answer", **without} | prior, {"label": "chance", **without} | chance]
    )
    columns = {"label": (Heading("Model"), str), "task": (Heading("Trained on"), _words)}
    columns |= {split: (Heading(names.task(split), "accuracy, %"), _mean_sd) for split in tested}
    columns["balanced"] = (Heading("Elsewhere", "balanced accuracy, mean, %"), lambda value: percent(100 * value))
    notes = (
        "Trained and tested on one task: accuracy on its own classes. Otherwise classes meet in yes (entailment, "
        "duplicate, paraphrase, answerable) and no, as the last two lines do; balanced accuracy is 50 % for any "
        "constant answer. Chance is a coin.",
    )
    frame = pd.concat([frame, constant]) if len(frame) else frame
    return _plain(
        frame, columns, name="transfer", title="Transfer between tasks, this run", stage="cross_domain", notes=notes
    )


def probes(cells: pd.DataFrame) -> Grid:
    """What the probes found, a line a model, split and layer."""
    keys = [*MODEL, "evaluated_on", "condition"]
    names = list(dict.fromkeys(cells["metric"]))
    frame = _wide(cells, keys, "metric")
    frame = frame.assign(label=_labels(frame), condition=frame["condition"].str.replace("=", " "))
    columns = {
        "label": (Heading("Model"), str),
        "evaluated_on": (Heading("Split"), _words),
        "condition": (Heading("Of"), _words),
    }
    columns |= {
        name: (Heading(name.replace("_", " ").capitalize()), lambda value: _mean_sd(value, scale=1)) for name in names
    }
    notes = (
        "Entropy as a share of uniform attention's; asymmetry |A - A'| / 2|A| of the scores; sensitivity: change of "
        "the logits for a step along a random direction of the embeddings, in units of their norm.",
    )
    return _plain(frame, columns, name="probes", title="Inside the tested models", stage="noise", notes=notes)


def _plain(frame: pd.DataFrame, columns: dict, **more) -> Grid:
    """A table as `plain` makes it; its CSV has means and standard deviations in columns of their own."""
    made = {}
    for name, values in frame.drop(columns="test", errors="ignore").items():
        if values.map(lambda value: isinstance(value, tuple)).any():
            pairs = [value if isinstance(value, tuple) else (value, nan) for value in values]
            made |= {str(name): [pair[0] for pair in pairs], f"{name}_sd": [pair[1] for pair in pairs]}
        else:
            made[str(name)] = values
    return replace(plain(frame, columns, **more), csv=pd.DataFrame(made, index=frame.index))


def _wide(rows: pd.DataFrame, keys: list[str], column: str) -> pd.DataFrame:
    """One line for every combination of keys; (mean, sd, whether it is at chance) under each value of `column`."""
    chance = rows["at_chance"].eq(True).fillna(False) if "at_chance" in rows else [False] * len(rows)
    pairs = rows.assign(pair=list(zip(rows["mean"], rows["sd"], chance, strict=True)))
    wide = {}
    for row in pairs.to_dict("records"):
        wide.setdefault(tuple(row[key] for key in keys), {})[row[column]] = row["pair"]
    return pd.DataFrame(
        [dict(zip(keys, line, strict=True)) | values for line, values in wide.items()], columns=None if wide else keys
    )


def _labels(frame: pd.DataFrame) -> list[str]:
    several = frame["protocol"].nunique() > 1
    return [
        f"{names.model(r.size_, r.operator)}{', ' + names.protocol(r.protocol) if several else ''}"
        for r in frame.rename(columns={"size": "size_"}).itertuples()
    ]


def _mean_sd(pair: object, scale: float = 100) -> Value:
    """(mean, standard deviation, whether at chance) in per cent, or unscaled with three decimals."""
    if not isinstance(pair, tuple):
        return mean_sd(pair)
    mean, sd, *chance = pair
    made = mean_sd((scale * mean, scale * sd, 1 if scale == 100 else 3))
    return replace(made, text=made.text + CHANCE) if any(chance) else made


def _words(name: object) -> Value:
    return text(names.task(str(name)))
