"""The rows that figures select from, by the name of the frame; every frame has `source`, `operator` and `estimate`.

`low` and `high` are the ends of an interval or of a band. Published numbers stand first, then released results, our
studies and this run.
"""

from collections.abc import Callable
from functools import partial

import pandas as pd

from stages.benchmarks.glue import COLUMN_OF
from stages.evidence import baselines, published
from stages.evidence.convergence import SHARE
from stages.evidence.fields import select_rows, stack_frames
from stages.evidence.scores import COLUMNS, GLUE_SCORE, MISMATCHED
from stages.evidence.statistics import summarise_groups
from stages.report import claims_and_audit, names, read_results
from stages.report.differences import build_differences, read_study_differences, sort_sources
from stages.report.first_screen import build_first_screen
from stages.report.looks import find_tone
from stages.report.table_rows import read_corpus
from stages.schema.settings import Settings

NOISE = "kowsher2025_naacl_table5_noise"
TRANSFER = "kowsher2025_naacl_table6_cross_domain"
ANSWERS = "kowsher2025_naacl_table2_squad"
# fields in the keys of rows and columns of the table of answers
ANSWERED = r"^(?P<size>\w+)\.(?P<operator>\w+)\.(?P<trained>\w+)$"
ASKED = r"^(?P<questions>squad\d)_(?P<measure>\w+)$"
BAND = {"mean": "estimate", "minimum": "low", "maximum": "high"}
MODEL = ["source", "protocol", "size", "operator"]
# the most frequent answer: a row of a heat map without a model
MAJORITY = "majority"
ACCURACIES = {"training_accuracy": "training, all positions", "accuracy": "held out, tokens"}
# the highest possible training accuracy, which counts padding as errors
CEILING = "accuracy_ceiling"
CONSTANT = "constant answer"


def make_reader(settings: Settings) -> Callable[[str], pd.DataFrame]:
    """Makes a function from the name of a frame to the frame."""
    makers = {
        "first_screen": partial(build_first_screen, settings),
        "differences": partial(build_differences, settings),
        "task_differences": partial(select_task_differences, settings),
        "step_differences": partial(select_step_differences, settings),
        "seeds": list_seeds,
        "curves": build_curves,
        "study_curves": read_study_curves,
        "studies": read_study_differences,
        "answers": list_answers,
        "noise": build_noise,
        "transfer_matrices": build_transfer,
        "times_saved": read_times_saved,
        "drops": list_drop_shares,
        "translation_by_epoch": build_translation,
        "claim_shares": lambda: list_shares(claims_and_audit.count_verdicts(read_results.read_claims())),
        "audit_shares": lambda: list_shares(claims_and_audit.count_facts(read_results.read_audit())),
    }

    return lambda name: makers[name]()


def select_task_differences(settings: Settings) -> pd.DataFrame:
    """Selects the differences in the scores of single tasks, in the order of the GLUE tables."""
    rows = select_rows(build_differences(settings), quantity="score", at=list(COLUMNS))
    return rows.iloc[rows["at"].map(COLUMNS.index).argsort(kind="stable")]


def select_step_differences(settings: Settings) -> pd.DataFrame:
    """Selects the differences in steps: printed, of studies, and of this run to the lowest loss that most reach."""
    rows = select_rows(build_differences(settings), quantity="steps")
    run = rows[(rows["source"] == "reproduced") & rows["at"].str.startswith("loss=") & rows["low"].notna()]
    operators = run.groupby("at")["operator"].nunique()
    reached = operators[operators == operators.max()].index
    lowest = sorted(reached, key=lambda at: float(at.removeprefix("loss=")))[:1]
    # with operators some of whose runs never get there
    return pd.concat(
        [select_rows(rows, source=["published", "study"]), select_rows(rows, source="reproduced", at=lowest)]
    )


def list_seeds() -> pd.DataFrame:
    """Lists the GLUE score (times 100) of every run, and the mean over the units of inference with its interval."""
    runs = read_results.read_table("runs")
    runs = runs[runs["evaluated_on"] == GLUE_SCORE].assign(stage="finetuning", group=lambda rows: rows["source"])
    runs["value"] *= 100
    means = summarise_groups(runs, ["group", *MODEL], 0.95).rename(columns={"mean": "estimate"})
    single = runs.rename(columns={"value": "estimate"}).assign(source="seed")
    columns = ["group", *MODEL, "estimate", "low", "high", "n", "unit"]
    means = means[columns].rename(columns={"unit": "unit_of_inference"})
    rows = sort_sources(stack_frames([single.drop(columns=["stage", "evaluated_on"]), means]), "group")
    constant = {}
    for protocol in runs["protocol"].unique():
        scores = read_results.read_baseline_scores(baselines.MOST_FREQUENT, "score", protocol)
        constant[protocol] = scores.get(GLUE_SCORE)
    # the baseline is fitted to the data of this run
    known = rows["protocol"].map(constant).where(rows["group"] == "reproduced").astype(float)
    return rows.assign(reference=known, reference_label=known.notna().map({True: CONSTANT, False: None}))


def build_curves() -> pd.DataFrame:
    """Builds the curves of losses and GLUE scores by step, the latter with a line at 95 % of pairwise's last score."""
    rows = sort_sources(read_results.read_table("curves")).rename(columns=BAND)
    scores = select_rows(rows, quantity=GLUE_SCORE, operator="pairwise").sort_values("step")
    goals = SHARE * scores.groupby(["source", "size"])["estimate"].last().rename("reference")
    rows = rows.join(goals, on=["source", "size"])
    goal = (rows["quantity"] == GLUE_SCORE) & rows["reference"].notna()
    rows["reference"] = rows["reference"].where(goal)
    return rows.assign(reference_label=goal.map({True: f"{SHARE:.0%} of pairwise's last", False: None}))


def read_study_curves() -> pd.DataFrame:
    """Reads the losses by step of our studies."""
    rows = pd.read_csv(published.FOLDER / "study_curves.csv").rename(columns=BAND)
    return rows.assign(source="study")


def list_answers() -> pd.DataFrame:
    """Lists the scores of question answering in per cent: F1 and exact match, published and of this run."""
    cells = select_rows(read_results.read_cells(), table=ANSWERS)
    # averages and answers without a model are left out
    keys = cells["row_key"].str.extract(ANSWERED).join(cells["column_key"].str.extract(ASKED)).dropna()
    cells = cells.join(keys, how="inner")
    printed = cells[[*keys, "published"]].rename(columns={"published": "estimate"}).assign(source="published")
    ends = {"interval_low": "low", "interval_high": "high"}
    run = cells[[*keys, "reproduced", *ends]].rename(columns={"reproduced": "estimate", **ends})
    rows = pd.concat([printed, run.assign(source="reproduced")]).dropna(subset="estimate")
    measures = rows["measure"].map({"f1": "F1", "em": "exact match"})
    return rows.assign(measure=measures, trained=rows["trained"].map({"single": "", "triviaqa": "after TriviaQA"}))


def read_printed(table: str) -> pd.DataFrame:
    """Reads the numbers of a published table of BERT-base by `row` (a level or task), `column` and operator."""
    cells = select_rows(read_results.read_cells(), table=table)
    cells = cells[cells["published"].notna()]
    parts = cells["column_key"].str.extract(r"^(?:col_)?(?P<column>\w+)\.(?P<operator>\w+)$")
    row = cells["row_key"].str.removeprefix("noise_").str.removeprefix("row_")
    return parts.assign(source="published", size="base", protocol="", row=row, estimate=cells["published"])


def build_noise() -> pd.DataFrame:
    """Builds the accuracies (%) by level of noise (%), published and of this run, with that of a constant answer."""
    printed = read_printed(NOISE)
    level = printed["row"].astype(float)
    printed = printed.assign(level=level, evaluated_on=printed["column"].replace(COLUMN_OF))
    run = read_results.read_table("noise_curves").rename(columns=BAND | {"low": "mean_low", "high": "mean_high"})
    run[["estimate", "low", "high", "level"]] *= 100
    constant = run["evaluated_on"].map(read_results.read_baseline_scores(baselines.MOST_FREQUENT, "accuracy"))
    run = run.assign(source="reproduced", reference=constant, reference_label=CONSTANT)
    columns = ["source", "protocol", "size", "operator", "evaluated_on", "level", "estimate", "low", "high"]
    rows = pd.concat([printed, run])[[*columns, "reference", "reference_label"]]
    return rows[rows["evaluated_on"] != MISMATCHED].sort_values("level", kind="stable")


def build_transfer() -> pd.DataFrame:
    """Builds the accuracies (%) by task of training and of testing, published and of this run.

    The last row of a matrix of this run has the accuracy of always giving the more frequent answer.
    """
    printed = read_printed(TRANSFER)
    printed = printed.assign(trained=printed["column"], evaluated_on=printed["row"].replace(COLUMN_OF))
    run = read_results.read_table("transfer").rename(columns={"mean": "estimate", "task": "trained"})
    run = run.assign(source="reproduced", estimate=100 * run["estimate"])
    majority = select_rows(run, metric="majority_accuracy").assign(trained=MAJORITY)
    majority = majority.drop_duplicates(["operator", "size", "protocol", "evaluated_on"])
    parts = [printed, select_rows(run, metric="accuracy"), majority]
    rows = stack_frames(parts)[["source", "protocol", "size", "operator", "trained", "evaluated_on", "estimate"]]
    rows = rows[rows["evaluated_on"] != MISMATCHED]
    order = [*dict.fromkeys(rows["trained"].drop(rows.index[rows["trained"] == MAJORITY])), MAJORITY]
    rows = rows.sort_values("trained", key=lambda tasks: tasks.map(order.index), kind="stable")
    # a task that is tested on itself stands on the diagonal
    tested = rows["evaluated_on"].map(names.name_key).str.removesuffix("-m")
    return rows.assign(tested=tested)


def read_times_saved() -> pd.DataFrame:
    """Reads the per cent of an epoch's time that operators save against the original, by task."""
    rows = read_results.read_table("bars")
    return rows.rename(columns={"value": "estimate", "label": "task"})


def list_drop_shares() -> pd.DataFrame:
    """Computes the share of documents (%) that each reason is first to drop, from totals of the filter's ledger."""
    corpus = read_corpus()
    dropped = select_rows(corpus[corpus["documents"] > 0], fate="dropped")
    everything = select_rows(corpus, fate="in")["documents"].sum()
    labels = dropped["rule"] + ": " + dropped["reason"]
    frame = pd.DataFrame({"reason": labels, "estimate": 100 * dropped["documents"] / max(everything, 1)})
    return frame.assign(source="reproduced", operator="")


def build_translation() -> pd.DataFrame:
    """Builds the accuracies (%) of translation by epoch, with the highest possible training accuracy as a line."""
    rows = read_results.read_table("translation_curves")
    rows[["mean", "minimum", "maximum"]] *= 100
    ceilings = select_rows(rows, metric=CEILING).groupby("protocol")["mean"].mean().rename("reference")
    rows = select_rows(rows, metric=list(ACCURACIES)).join(ceilings, on="protocol").rename(columns=BAND)
    training = rows["metric"] == "training_accuracy"
    label = training.map({True: "ceiling", False: None})
    return rows.assign(
        source="reproduced",
        measure=rows["metric"].map(ACCURACIES),
        reference=rows["reference"].where(training),
        reference_label=label,
    )


def list_shares(counts: pd.DataFrame) -> pd.DataFrame:
    """Lists the parts of the stacked bars of verdicts: a row per ledger, paper and word."""
    looks = [find_tone(row.tone, row.number) for row in counts.itertuples()]
    shares = pd.DataFrame(looks, columns=["colour", "alpha"], index=counts.index).join(counts)
    return shares.assign(source="reproduced", operator="", mark=counts["word"], text=counts["estimate"].astype(str))
