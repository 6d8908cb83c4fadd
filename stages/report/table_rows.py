"""The rows that our own tables select from: frames that are computed for a table from the files of earlier stages.

`make_reader` lists the functions. A frame without an entry there is a file of data/analysis.
"""

import hashlib
import json
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

import pandas as pd
import yaml

from stages.evidence import derived, published
from stages.evidence.baselines import LABELS
from stages.evidence.fields import select_rows
from stages.evidence.scores import COLUMNS, GLUE_SCORE
from stages.files.paths import LEDGER, STATISTICS, TOKENS
from stages.records.ledger import TOTAL, read_ledger
from stages.report import claims_and_audit, deviations, read_results
from stages.report.first_screen import build_first_screen
from stages.report.text_templates import describe_data, gather_facts, read_content
from stages.schema.settings import Settings

# evaluated_on: a split
CURVE = ["protocol", "size", "operator", "evaluated_on"]
MODEL = ["protocol", "size", "operator"]
# metrics of the overview, with the names of the columns
COUNTS = {
    "masked_lm_parameters": "parameters",
    "saved_percent": "saved_percent",
    "final_validation_loss": "validation_loss",
}
# fates of documents, in the order of the table
FATES = ["in", "kept", "not_selected", "malformed", "dropped"]
# fields of an open point of protocol.yaml
OPEN = ["item", "candidates", "inferred", "released_code", "here"]


def make_reader(settings: Settings) -> Callable[[str], pd.DataFrame]:
    """Makes a function from the name of a frame to the frame: computed here, or read from data/analysis."""
    params = settings.model_dump(mode="json")
    makers = {
        "first_screen": partial(build_first_screen, settings),
        "overview": partial(build_overview, settings),
        "contrasts": read_results.read_contrasts,
        "further_pairs": partial(read_results.read_contrasts, further=True),
        "milestones": read_milestones,
        "milestone_tests": select_milestone_tests,
        "noise_measures": read_noise_measures,
        "noise_tests": partial(read_tests, "lost_noise", arm="operator", at="evaluated_on"),
        "speed_tests": select_speed_tests,
        "transfer": read_transfer,
        "baselines": partial(select_baselines, settings.protocols[0]),
        "claim_totals": lambda: claims_and_audit.count_verdicts(read_results.read_claims()),
        "audit_totals": lambda: claims_and_audit.count_facts(read_results.read_audit()),
        "corpus": read_corpus,
        "tokens": read_tokens,
        "sentence_pairs": read_results.read_sentence_pairs,
        "tasks": partial(pd.read_csv, STATISTICS),
        "studies": read_studies,
        "settings_own": partial(deviations.list_without_counterpart, params),
        "checklist": partial(fill_checklist, settings),
        "environment": list_environment,
        "stages": list_stages,
    }
    for source in published.PAPERS:
        makers[f"settings_{source}"] = partial(deviations.compare, params, source)
        makers[f"open_{source}"] = partial(list_unspecified, source)

    return lambda name: makers.get(name, partial(read_results.read_table, name))()


def build_overview(settings: Settings) -> pd.DataFrame:
    """Builds the rows of the overview, per size, protocol and operator; missing measurements are NaN.

    Scores and words_and_overlap (a linear model of words) are times 100; estimate, low, high and detectable are points.
    """
    rows = select_rows(read_results.read_summaries(), size=settings.sizes, operator=settings.operators)
    asked = product(settings.sizes, settings.protocols, settings.operators)
    models = pd.DataFrame(asked, columns=["size", "protocol", "operator"])
    models = models[models["operator"].isin(rows["operator"])]
    # parameters and losses belong to no protocol
    shared = ["size", "operator"]
    counted = select_rows(rows, metric=list(COUNTS))
    means = counted.pivot(index=shared, columns="metric", values="mean").reindex(columns=list(COUNTS))
    spread = select_rows(rows, metric="final_validation_loss").set_index(shared)["sd"]
    models = models.join(means.rename(columns=COUNTS), on=shared).join(spread.rename("validation_loss_sd"), on=shared)
    # scores belong to a protocol
    score = select_rows(rows, stage="finetuning", metric="score", evaluated_on=GLUE_SCORE)
    score = score[[*MODEL, "mean", "sd", "n", "words_and_overlap", "at_chance"]].copy()
    score[["mean", "sd", "words_and_overlap"]] *= 100
    score = score.rename(columns={"mean": "glue_score", "sd": "glue_score_sd"})
    contrasts = read_results.read_contrasts(source="reproduced", at=GLUE_SCORE).rename(columns={"arm": "operator"})
    contrasts = contrasts[[*MODEL, "estimate", "low", "high", "detectable", "verdict", "reason"]]
    return models.merge(score, on=MODEL, how="left").merge(contrasts, on=MODEL, how="left")


def select_baselines(protocol: str) -> pd.DataFrame:
    """Selects the baselines' scores for a fine-tuning protocol, in per cent; `best` is the highest of the column."""
    columns = [*COLUMNS, GLUE_SCORE]
    operators = list(LABELS)
    rows = select_rows(
        read_results.read_table("baselines"),
        protocol=protocol,
        evaluated_on=columns,
        operator=operators,
    )
    rows = rows.assign(value=100 * rows["value"])
    rows["best"] = rows.groupby("evaluated_on")["value"].transform("max")
    return sort_by_order(sort_by_order(rows, "operator", operators), "evaluated_on", columns)


def sort_by_order(rows: pd.DataFrame, field: str, order: list[str]) -> pd.DataFrame:
    """Sorts rows by the places of a field's values in `order`; rows with equal values stay in order."""
    return rows.sort_values(field, key=lambda values: values.map(order.index), kind="stable")


def read_noise_measures() -> pd.DataFrame:
    """Reads the measures of the curves of noise, marked by `mark_chance`."""
    return mark_chance(read_results.read_table("noise_measures"), read_results.read_table("noise_curves"))


def mark_chance(measured: pd.DataFrame, curves: pd.DataFrame) -> pd.DataFrame:
    """Adds, to the measure `lost` only, whether a model is `at_chance` at level 0 of `curves`."""
    clean = select_rows(curves, level=0)[[*CURVE, "at_chance"]]
    rows = measured.merge(clean, on=CURVE, how="left")
    return rows.assign(at_chance=rows["at_chance"].where(rows["measure"] == "lost"))


def read_tests(quantity: str, **columns: str) -> pd.DataFrame:
    """Reads the comparisons of a quantity with the original, and renames columns."""
    return read_results.read_contrasts(quantity=quantity).rename(columns=columns)


def select_speed_tests() -> pd.DataFrame:
    """Selects the comparisons of the speed of pre-training, with the metric `speed`.

    `allowed`: how much faster (%) an operator would be, if it and the original had the same share of the peak.
    """
    tests = read_tests("speed", arm="operator")
    if tests.empty:
        return tests
    measured = read_results.read_table("speed")
    means = measured.pivot_table("mean", ["size", "operator"], "metric")
    # operations per token, as a share of the operations that the machine could do in a second
    work = means["share_of_peak"] / means["tokens_per_second"]
    ratios = [work[row.size, row.reference] / work[row.size, row.operator] for row in tests.itertuples()]
    return tests.assign(metric="speed", allowed=100 * (pd.Series(ratios, tests.index) - 1))


def read_studies() -> pd.DataFrame:
    """Reads the differences that our studies found, sorted by operator."""
    rows = read_results.read_studies()
    return sort_by_order(rows, "operator", list(rows["operator"].unique()))


def read_transfer() -> pd.DataFrame:
    """Reads the results of transfer between tasks, completed by `complete_transfer`."""
    return complete_transfer(read_results.read_table("transfer"))


def complete_transfer(rows: pd.DataFrame) -> pd.DataFrame:
    """Adds averages and answers without a model to the results of transfer between tasks. All means are fractions.

    The metric `elsewhere` is the mean balanced accuracy on the tasks that a model was not trained on.
    """
    away = derived.select_elsewhere(rows).groupby([*MODEL, "task"], sort=False)
    elsewhere = away["mean"].mean().reset_index()
    frequent = select_rows(rows, metric="majority_accuracy").drop_duplicates("evaluated_on")[["evaluated_on", "mean"]]
    frequent = frequent.assign(operator="the more frequent answer")
    answers = pd.concat([frequent, frequent.assign(operator="chance", mean=0.5)]).assign(metric="accuracy")
    # balanced accuracy of any constant answer is one half
    ends = answers.drop_duplicates("operator").assign(metric="elsewhere", mean=0.5, evaluated_on=None)
    return pd.concat([rows, elsewhere.assign(metric="elsewhere"), answers, ends], ignore_index=True)


def read_milestones() -> pd.DataFrame:
    """Reads the steps to milestones, sorted by `sort_milestones`."""
    return sort_milestones(read_results.read_table("milestones"))


def sort_milestones(rows: pd.DataFrame) -> pd.DataFrame:
    """Sorts rows by `milestone`: losses (`loss=3`) from the highest on, then the rest in file order."""
    return rows.sort_values("milestone", key=_read_levels, ascending=False, kind="stable")


def _read_levels(milestones: pd.Series) -> pd.Series:
    """Reads the levels of losses; other milestones have NaN, which is last."""
    return milestones.str.extract("loss=(.*)", expand=False).astype(float)


def select_milestone_tests() -> pd.DataFrame:
    """Selects the differences in steps to milestones that have an interval."""
    return sort_milestones(read_tests("steps", at="milestone")).dropna(subset="low")


def read_corpus() -> pd.DataFrame:
    """Selects the totals of the filter's ledger: documents read, kept, not selected, malformed and dropped.

    Dropped documents have a row per rule and reason, the most frequent first; all_documents counts every document to
    which a reason applies. Rows with zero in both counts are left out.
    """
    total = select_rows(read_ledger(LEDGER), shard=TOTAL, fate=FATES)
    # a reason may apply to documents that an earlier reason drops
    counted = total[["documents", "all_documents"]].any(axis=1)
    rows = total[counted].sort_values(["documents", "rule", "reason"], ascending=[False, True, True])
    return sort_by_order(rows, "fate", FATES).drop(columns="shard")


def read_tokens() -> pd.DataFrame:
    """Reads documents, tokens, sequences and dropped_tokens of the two splits of the corpus, a row per `split`."""
    splits = json.loads((TOKENS / "index.json").read_text(encoding="utf-8"))["splits"]
    columns = ["documents", "tokens", "sequences", "dropped_tokens"]
    return pd.DataFrame.from_dict(splits, orient="index")[columns].rename_axis("split").reset_index()


def list_unspecified(source: str) -> pd.DataFrame:
    """Lists the points that a source leaves open, and our choices; columns: OPEN."""
    rows = pd.DataFrame(published.read_protocol()[source]["unspecified"], columns=OPEN, dtype=object).fillna("")
    return rows.assign(candidates=["; ".join(map(str, readings)) for readings in rows["candidates"]])


def fill_checklist(settings: Settings) -> pd.DataFrame:
    """Fills the `{names}` in the reproducibility checklist with facts of the run; columns: item, answer, where."""
    params = settings.model_dump(mode="json")
    differing = []
    for source, paper in published.PAPERS.items():
        differing.append(f"{deviations.count_differing(deviations.compare(params, source))} from {paper}")
    finetuning_seeds = [str(len(settings.finetuning[name].seeds)) for name in settings.protocols]
    facts = {
        **gather_facts(settings),
        "differences": "; ".join(differing),
        "generated": "yes" if settings.generated else "does not apply",
        "source": describe_data(settings),
        "pretraining_seeds": len(settings.pretraining.seeds),
        "finetuning_seeds": " and ".join(finetuning_seeds),
    }
    return pd.DataFrame(read_content("checklist")).map(lambda text: text.format(**facts))


def list_environment() -> pd.DataFrame:
    """Lists software and hardware of the run, below the digest of dvc.lock."""
    rows = read_results.list_environment(read_results.read_run_records())
    lock = Path("dvc.lock")
    if not lock.exists():
        return rows
    stages = yaml.safe_load(lock.read_text(encoding="utf-8"))["stages"]
    # DVC adds this stage after the report is written
    stages.pop("report", None)
    digest = hashlib.sha256(json.dumps(stages, sort_keys=True).encode()).hexdigest()
    text = f"SHA-256 {digest}, without the stage report"
    first = pd.DataFrame([("dvc.lock", text)], columns=rows.columns)
    return pd.concat([first, rows])


def list_stages() -> pd.DataFrame:
    """Selects stage, seconds, seconds_of_jobs (NaN if not recorded) and started of every record."""
    columns = ["stage", "seconds", "seconds_of_jobs", "started"]
    rows = pd.DataFrame(read_results.read_run_records(), columns=columns)
    return rows.astype({"seconds": float, "seconds_of_jobs": float})
