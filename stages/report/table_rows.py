"""The rows that our own tables select from: frames that are computed for a table from the files of earlier stages."""

import json

import pandas as pd

from stages.evidence import derived, published
from stages.evidence.baselines import NOT_PRETRAINED
from stages.evidence.fields import THIS_RUN, select_rows, stack_frames
from stages.evidence.scores import COLUMNS, GLUE_SCORE
from stages.files.paths import LEDGER, TOKENS
from stages.records.ledger import TOTAL, read_ledger
from stages.report import deviations
from stages.report.facts import gather_facts
from stages.report.read_results import read_summaries, read_table, select_contrasts
from stages.report.text_templates import fill_template, read_content
from stages.schema.settings import Settings

# fields that tell noise curves apart; evaluated_on is a split
CURVE = ["protocol", "size", "operator", "evaluated_on"]
MODEL = ["protocol", "size", "operator"]
# metrics
OVERVIEW = ["masked_lm_parameters", "saved_percent", "final_validation_loss", "score"]
# fields of an open point of protocol.yaml
OPEN = ["item", "candidates", "inferred", "released_code", "here"]


def select_overview(settings: Settings) -> pd.DataFrame:
    """Selects the numbers of the table `overview`, a row per model and metric.

    The GLUE score compared with the original is the metric `difference`. The last row is the score of a model that was
    fine-tuned without pre-training.
    """
    measured = select_rows(
        read_summaries(),
        metric=OVERVIEW,
        evaluated_on=["", GLUE_SCORE],
        size=settings.sizes,
        operator=settings.operators,
    )
    measured = measured[["metric", *MODEL, "mean", "sd", "n", "words_and_overlap", "at_chance"]]
    compared = select_contrasts(source=THIS_RUN, at=GLUE_SCORE).rename(columns={"arm": "operator"})
    interval = ["estimate", "low", "high", "detectable"]
    compared = compared[[*MODEL, *interval, "verdict", "reason", "n", "n_reference", "paired"]]
    compared = compared.assign(metric="difference")
    untrained = select_rows(read_table("baselines"), operator=NOT_PRETRAINED, evaluated_on=GLUE_SCORE)
    untrained = untrained.rename(columns={"value": "mean"})[["protocol", "operator", "metric", "mean"]]
    return stack_frames([measured, compared, untrained.assign(size="")])


def select_baselines(protocol: str) -> pd.DataFrame:
    """Selects the baselines' scores for a protocol, in per cent; `best` is the highest score on the same data."""
    rows = select_rows(read_table("baselines"), protocol=protocol, evaluated_on=[*COLUMNS, GLUE_SCORE])
    rows = rows.assign(value=100 * rows["value"])
    return rows.assign(best=rows.groupby("evaluated_on")["value"].transform("max"))


def mark_chance(measured: pd.DataFrame, curves: pd.DataFrame) -> pd.DataFrame:
    """Adds, to rows of the measure `lost` only, whether a model is `at_chance` without noise (level 0 of `curves`)."""
    clean = select_rows(curves, level=0)[[*CURVE, "at_chance"]].assign(measure="lost")
    return measured.merge(clean, on=[*CURVE, "measure"], how="left")


def read_tests(quantity: str, /, **columns: str) -> pd.DataFrame:
    """Reads the comparisons of a quantity with the original; `arm="operator"` renames the column `arm`."""
    return select_contrasts(quantity=quantity).rename(columns=columns)


def complete_transfer(rows: pd.DataFrame) -> pd.DataFrame:
    """Adds averages and the accuracy of a constant answer to the results of transfer between tasks, all as fractions.

    An average, the metric `elsewhere`, is the mean balanced accuracy on the tasks that a model was not trained on.
    """
    of_model = derived.select_elsewhere(rows).groupby([*MODEL, "task"], sort=False)
    elsewhere = of_model["mean"].mean().reset_index().assign(metric="elsewhere")
    # the accuracy of the more frequent answer is the same for all models
    frequent = select_rows(rows, metric="majority_accuracy").drop_duplicates("evaluated_on")
    frequent = frequent[["evaluated_on", "mean"]].assign(operator="the more frequent answer", metric="accuracy")
    return pd.concat([rows, elsewhere, frequent], ignore_index=True)


def read_corpus() -> pd.DataFrame:
    """Selects the totals of the filter's ledger: documents read, kept, not selected, malformed and dropped.

    Dropped documents have a row per rule and reason, the most frequent first. `documents` counts a document by the
    first reason that applies, and `all_documents` by every reason; `share` is of the documents read.
    """
    totals = select_rows(read_ledger(LEDGER), shard=TOTAL)
    # a reason may apply only to documents that an earlier reason drops, so `documents` may be 0
    totals = totals[totals["all_documents"] > 0]
    # the highest number is the number of documents read
    share = totals["documents"] / totals["documents"].max()
    # in the order of the table
    fates = ["in", "kept", "not_selected", "malformed", "dropped"]
    totals = totals.assign(fate=pd.Categorical(totals["fate"], fates), share=share)
    order = ["fate", "documents", "rule", "reason"]
    return totals.sort_values(order, ascending=[True, False, True, True]).drop(columns="shard")


def read_tokens() -> pd.DataFrame:
    """Reads documents, tokens, sequences and dropped_tokens of the two splits of the corpus, a row per `split`."""
    index = json.loads((TOKENS / "index.json").read_text(encoding="utf-8"))
    counts = ["documents", "tokens", "sequences", "dropped_tokens"]
    return pd.DataFrame(index["splits"], counts).T.reset_index(names="split")


def list_unspecified(source: str) -> pd.DataFrame:
    """Lists the points that a source leaves open, and our choices; columns: OPEN."""
    points = published.read_protocol()[source]["unspecified"]
    rows = pd.DataFrame(points, columns=OPEN, dtype=object).fillna("")
    return rows.assign(candidates=["; ".join(map(str, readings)) for readings in rows["candidates"]])


def fill_checklist(settings: Settings) -> pd.DataFrame:
    """Fills the templates of the reproducibility checklist with facts of the run; columns: item, answer, where."""
    params = settings.model_dump(mode="json")
    # texts such as `14 of 60 from Courtois et al. 2024`
    differing = []
    for source, paper in published.PAPERS.items():
        compared = deviations.compare(params, source)
        differing.append(f"{deviations.count_differing(compared)} from {paper}")
    seeds = [str(len(settings.finetuning[name].seeds)) for name in settings.protocols]
    # every cell is a template
    return pd.DataFrame(read_content("checklist")).map(
        fill_template,
        **gather_facts(settings),
        differences="; ".join(differing),
        generated="yes" if settings.generated else "does not apply",
        finetuning_seeds=" and ".join(seeds),
    )
