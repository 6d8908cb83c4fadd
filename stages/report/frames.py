"""The data frames that tables of our own select from: those that the stage analysis left, and those derived here."""

import json
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

import pandas as pd

from stages.benchmarks.glue import TASK_OF
from stages.evidence import published
from stages.evidence.baselines import LABELS
from stages.evidence.scores import COLUMNS, GLUE_SCORE, MISMATCHED
from stages.files.paths import LEDGER, TOKENS
from stages.records.ledger import TOTAL, read_ledger
from stages.report import deviations, inputs, open_items, verdicts
from stages.report.inputs import select
from stages.report.words import content, facts_of, sentence
from stages.schema.settings import Settings

CURVE = ["protocol", "size", "operator", "evaluated_on", "kind"]  # kind of noise; evaluated_on: a split
MODEL = ["protocol", "size", "operator"]


def reader(settings: Settings) -> Callable[[str], pd.DataFrame]:
    """Returns a function from a frame's name to the frame: made here, or else read as the stage analysis left it."""
    makers = {
        "overview": partial(overview, settings),
        "further_pairs": partial(inputs.contrasts, further=True),
        "baselines": partial(baselines, settings.protocols[0]),
        "noise_measures": lambda: noise_measures(inputs.read("noise_measures"), inputs.read("noise_curves")),
        "transfer": lambda: transfer(inputs.read("transfer")),
        "milestones": lambda: in_order(inputs.read("milestones")),
        "contrasts": inputs.contrasts,
        "milestone_tests": milestone_tests,
        "noise_tests": noise_tests,
        "claim_totals": lambda: verdicts.claim_totals(inputs.read("claims").fillna("")),
        "audit_totals": lambda: verdicts.audit_totals(inputs.audited()),
        "corpus": corpus,
        "tokens": tokens,
        "sentence_pairs": inputs.pairs_ledger,
        "tasks": inputs.task_statistics,
        "studies": inputs.studies,
        "settings_own": lambda: deviations.without_counterpart(settings.model_dump(mode="json")),
        "checklist": partial(checklist, settings),
        "environment": lambda: inputs.environment(inputs.run_records(), Path("dvc.lock")),
        "stages": stages,
    }
    makers |= {of_settings(source): partial(compared, settings, source) for source in published.PAPERS}
    makers |= {f"open_{source}": partial(unspecified, settings, source) for source in published.PAPERS}
    return lambda name: makers[name]() if name in makers else inputs.read(name)


def of_settings(source: str) -> str:
    """Returns the name of the table, and of its frame, that compares the settings with a source's (a key of PAPERS)."""
    return "settings" if source == "courtois2024" else f"settings_{source}"


def overview(settings: Settings) -> pd.DataFrame:
    """Builds a row per size, protocol and operator of the run that has any summary; what was not measured is NaN.

    Losses are in nats; the GLUE score, and words_and_overlap, a baseline's, times 100; n: the units behind the score.
    at_chance: of the score. Of the comparison with the original, estimate, low, high and detectable are in points.
    """
    rows = select(inputs.summaries(), size=settings.sizes, operator=settings.operators)
    asked = pd.DataFrame(
        product(settings.sizes, settings.protocols, settings.operators), columns=["size", "protocol", "operator"]
    )
    models = asked[asked["operator"].isin(rows["operator"])]
    counted = {"masked_lm_parameters": "parameters", "saved_percent": "saved_percent"}
    for metric, name in (counted | {"final_validation_loss": "validation_loss"}).items():
        columns = {"mean": name} | ({} if metric in counted else {"sd": f"{name}_sd"})
        means = select(rows, metric=metric)[[*MODEL[1:], *columns]].rename(columns=columns)
        models = models.merge(means, on=MODEL[1:], how="left")
    score = select(rows, stage="finetuning", metric="score", evaluated_on=GLUE_SCORE)
    score = score[[*MODEL, "mean", "sd", "n", "words_and_overlap", "at_chance"]].copy()
    score[["mean", "sd", "words_and_overlap"]] *= 100
    models = models.merge(score.rename(columns={"mean": "glue_score", "sd": "glue_score_sd"}), on=MODEL, how="left")
    against = inputs.contrasts(source="reproduced", at=GLUE_SCORE).rename(columns={"arm": "operator"})
    shown = ["estimate", "low", "high", "detectable", "verdict", "direction"]
    return models.merge(against[[*MODEL, *shown]], on=MODEL, how="left")


def baselines(protocol: str) -> pd.DataFrame:
    """Selects each baseline's (`operator`) scores by a protocol: in per cent, `value` and `best`, the column's highest.

    The rows are sorted by column of the GLUE tables, with the GLUE score last, and then in the order of LABELS.
    """
    order = [*COLUMNS, GLUE_SCORE]
    rows = select(inputs.read("baselines"), protocol=protocol, evaluated_on=order, operator=list(LABELS))
    rows = rows.assign(value=100 * rows["value"])
    rows = rows.assign(best=rows.groupby("evaluated_on")["value"].transform("max"))
    place = rows["evaluated_on"].map(order.index) * len(LABELS) + rows["operator"].map(list(LABELS).index)
    return rows.iloc[place.argsort(kind="stable")]


def noise_measures(measured: pd.DataFrame, curves: pd.DataFrame) -> pd.DataFrame:
    """Adds, to the measure `lost` only, whether a model is `at_chance` without noise, at level 0 of `curves`."""
    clean = select(curves, level=0)[[*CURVE, "at_chance"]]
    rows = measured.merge(clean, on=CURVE, how="left")
    return rows.assign(at_chance=rows["at_chance"].where(rows["measure"] == "lost"))


def transfer(rows: pd.DataFrame) -> pd.DataFrame:
    """Adds rows to the frame `transfer` of analysis: MODEL, task (trained on), evaluated_on (tested on), metric, mean.

    For each model and task trained on, a row of the metric `elsewhere`: the mean balanced accuracy over the splits of
    other tasks, without MNLI's mismatched one. For two answers without a model, named under `operator`, rows of
    `accuracy` and `elsewhere` without protocol, size and task. All means are fractions.
    """
    away = (rows["task"] != rows["evaluated_on"].map(TASK_OF)) & (rows["evaluated_on"] != MISMATCHED)
    elsewhere = rows[(rows["metric"] == "balanced_accuracy") & away]
    elsewhere = elsewhere.groupby([*MODEL, "task"], sort=False)["mean"].mean().reset_index()
    prior = select(rows, metric="majority_accuracy").drop_duplicates("evaluated_on")[["evaluated_on", "mean"]]
    prior = prior.assign(operator="the more frequent answer", metric="accuracy")
    without = [prior, prior.assign(operator="chance", mean=0.5)]
    without += [answers.head(1).assign(metric="elsewhere", mean=0.5, evaluated_on=None) for answers in without]
    return pd.concat([rows, elsewhere.assign(metric="elsewhere"), *without], ignore_index=True)


def in_order(rows: pd.DataFrame) -> pd.DataFrame:
    """Sorts rows by `milestone`: losses (`loss=3`) from the highest on, then others, as level -1; ties keep order."""
    loss = rows["milestone"].str.startswith("loss=")
    level = rows["milestone"].str.removeprefix("loss=").where(loss, "-1").astype(float)
    return rows.iloc[(-level).argsort(kind="stable")]


def milestone_tests() -> pd.DataFrame:
    """Selects comparisons of steps that have a p value, but for milestones where no operator of that size differs."""
    tests = in_order(inputs.contrasts(quantity="steps").rename(columns={"at": "milestone"}))
    tested = tests[tests["p"].notna()]
    differs = tested.groupby(["size", "milestone"])["estimate"].transform(lambda steps: (steps != 0).any())
    return tested[differs.astype(bool)]


def noise_tests() -> pd.DataFrame:
    """Selects, of `inputs.contrasts`, those of accuracy lost to noise; columns that CURVE has are called as there."""
    rows = inputs.contrasts()
    rows = rows[rows["quantity"].str.startswith("lost_")].rename(columns={"arm": "operator", "at": "evaluated_on"})
    return rows.assign(kind=rows["quantity"].str.removeprefix("lost_"))


def corpus() -> pd.DataFrame:
    """Selects the totals of the filter's ledger: documents read, kept, not selected and malformed, then those dropped.

    Those dropped have a row per rule and reason, the most frequent first: `documents` counts what it was first to drop,
    `all_documents` all to which it applies; `bytes`, `all_bytes`: likewise. Rows where both counts are 0 are left out.
    """
    total = select(read_ledger(LEDGER), shard=TOTAL)
    dropped = select(total, fate="dropped").sort_values(["documents", "rule", "reason"], ascending=[False, True, True])
    frame = pd.concat([*(select(total, fate=fate) for fate in ("in", "kept", "not_selected", "malformed")), dropped])
    return frame[(frame["documents"] > 0) | (frame["all_documents"] > 0)].drop(columns="shard")


def tokens() -> pd.DataFrame:
    """Reads documents, tokens, sequences and dropped_tokens of the two splits of the corpus, a row per `split`."""
    splits = json.loads((TOKENS / "index.json").read_text(encoding="utf-8"))["splits"]
    names = ["documents", "tokens", "sequences", "dropped_tokens"]
    return pd.DataFrame.from_dict(splits, orient="index")[names].rename_axis("split").reset_index()


def compared(settings: Settings, source: str) -> pd.DataFrame:
    """Compares the settings with a source's, as `deviations.compare` does."""
    filtered = inputs.records(["filtering"])  # `unknown`: by kind of metadata, the documents that lack it
    unknown = filtered[0].get("unknown") if filtered else None
    return deviations.compare(settings.model_dump(mode="json"), published.protocol(), source, unknown)


def unspecified(settings: Settings, source: str) -> pd.DataFrame:
    """Lists what a source leaves open next to what is done here, as `open_items.unspecified` returns it."""
    return open_items.unspecified(settings.model_dump(mode="json"), published.protocol(), source)


def checklist(settings: Settings) -> pd.DataFrame:
    """Fills the `{names}` in the reproducibility checklist with facts of the run; columns: item, answer, where."""
    facts = checklist_facts(settings)
    return pd.DataFrame(
        [{name: text.format(**facts) for name, text in entry.items()} for entry in content("checklist")]
    )


def checklist_facts(settings: Settings) -> dict[str, object]:
    """Gathers the facts of this run that the `{names}` in the reproducibility checklist stand for, by name."""
    differing = {source: deviations.differing(compared(settings, source)) for source in published.PAPERS}
    return facts_of(settings) | {
        "differences": sentence("differences", papers=published.PAPERS, differing=differing),
        "generated": "yes" if settings.data.generated else "does not apply",
        "source": content("sentences")["sources"][settings.data.source],
        "pretraining_seeds": len(settings.pretraining.seeds),
        "finetuning_seeds": " and ".join(str(len(settings.finetuning[name].seeds)) for name in settings.protocols),
    }


def stages() -> pd.DataFrame:
    """Selects of every stage: stage, seconds, seconds_of_jobs (NaN where not recorded), started (a text)."""
    records = pd.DataFrame(inputs.run_records(), columns=["stage", "seconds", "seconds_of_jobs", "started"])
    return records.astype({"seconds": float, "seconds_of_jobs": float})
