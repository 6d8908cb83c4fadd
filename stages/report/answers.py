"""The facts that the sentences of the report name: what was found, by verdict, in this run and in our studies."""

from pathlib import Path

import pandas as pd

from stages.evidence.baselines import WORDS_AND_OVERLAP
from stages.evidence.fields import select_rows
from stages.evidence.scores import GLUE_SCORE
from stages.evidence.statistics import FLIPPED
from stages.evidence.verdicts import TESTED, Difference
from stages.files.documents import read_yaml
from stages.report import claims_and_audit, names, read_results
from stages.report.differences import build_differences
from stages.report.figure_rows import list_answers
from stages.report.figures import RUN
from stages.report.looks import find_style
from stages.report.tables import format_interval, format_number, format_signed
from stages.report.text_templates import list_words, read_content
from stages.schema import scales
from stages.schema.operators import describe_operators
from stages.schema.settings import REFERENCE, Settings

# quantities whose differences sections name, with the readers' names
QUANTITIES = ("score", "loss", "steps", "lost_noise", "transfer", "speed")


def gather_facts(settings: Settings, screen: pd.DataFrame) -> dict[str, object]:
    """Gathers the values that the sentences of the report name; `screen` has the rows of the first screen.

    `run` and `studies` have, by quantity, the operators by verdict, such as `lower (pairwise), at chance (shared)`; an
    empty text where nothing was compared.
    """
    rows = build_differences(settings)
    whole = (rows["quantity"] != "score") | (rows["at"] == GLUE_SCORE)
    rows = rows[whole & (rows["size"].isin(["", settings.sizes[-1]]))]
    run, studies = select_rows(rows, source=RUN), select_rows(rows, source="study")
    totals = claims_and_audit.count_verdicts(read_results.read_claims())
    trained = [name for name in settings.operators if name != REFERENCE]
    seeds = len(settings.pretraining.seeds)
    return {
        "run": list_by_quantity(run),
        "studies": list_by_quantity(studies),
        "operators": describe_trained(settings, trained),
        "saved": describe_saved(screen),
        "words": describe_words(settings),
        "seeds": seeds,
        "base": "base" in settings.sizes,
        "few": seeds < FLIPPED.start,
        "detectable": describe_detectable(settings),
        "released": describe_released(),
        "answered": describe_scores(select_answers(settings)),
        "translated": describe_translations(),
        "generated": list_words(list_generated(settings)),
        "claims": describe_counts(select_rows(totals, ledger=claims_and_audit.THIS_RUN)),
        "facts": describe_counts(claims_and_audit.count_facts(read_results.read_audit())),
        "remark": find_remark(settings),
    }


def find_remark(settings: Settings) -> str:
    """Finds the note on the plan of a scale; an edited params.yaml has another plan, and an empty text."""
    values = scales.list_values(read_yaml(Path("params.yaml")))
    known = settings.scale in scales.list_scales()
    if not known or scales.list_edits(values, settings.scale):
        return ""
    return settings.report.remark or ""


def list_by_quantity(rows: pd.DataFrame) -> dict[str, str]:
    """Lists the operators by verdict for every quantity: `lower (pairwise), not significant (symmetric and shared)`."""
    return {name: list_by_verdict(select_rows(rows, quantity=name)) for name in QUANTITIES}


def list_by_verdict(rows: pd.DataFrame) -> str:
    """Lists operators by verdict in the order of the enumeration, each with the tasks if there are several."""
    parts = []
    several = rows["at"].nunique() > 1
    for verdict in Difference:
        found = []
        for operator, of_operator in rows[rows["verdict"] == verdict].groupby("operator", sort=False):
            places = [names.name_key(at) for at in of_operator["at"]]
            found.append(names.name_key(operator) + (f" on {list_words(places)}" if several else ""))
        if found:
            parts.append(f"{verdict} ({'; '.join(found) if several else list_words(found)})")
    return ", ".join(parts)


def describe_trained(settings: Settings, trained: list[str]) -> dict[str, tuple[str, str]]:
    """Describes each trained operator by the sentence of sections.yaml, or by equation and source, with a colour."""
    known = read_content("sections")["operators"]
    described = describe_operators(Path(settings.operators_file))
    texts = {}
    for name in trained:
        operator = described[settings.select_variant(name)["operator"]]
        colour, _ = find_style(name)
        texts[name] = (known.get(name, f"{operator.equation} ({operator.source})"), colour)
    return texts


def describe_saved(screen: pd.DataFrame) -> str:
    """Describes the range of the shares of parameters that are saved, such as `5.9 to 12.9 %`."""
    shares = select_rows(screen, column="saved", source="counted")["estimate"].dropna()
    if shares.empty:
        return ""
    ends = dict.fromkeys([format_number(shares.min(), 1), format_number(shares.max(), 1)])
    return f"{' to '.join(ends)} %"


def describe_words(settings: Settings) -> str:
    """Describes the GLUE score of a linear model of words on the tasks of this run, such as `55.3`."""
    scored = read_results.read_baseline_scores(WORDS_AND_OVERLAP, "score", settings.protocols[0])
    return format_number(scored[GLUE_SCORE], 1) if GLUE_SCORE in scored else ""


def describe_detectable(settings: Settings) -> str:
    """Describes the differences in GLUE score that this run finds with 80 % power, such as `24.8 to 30.3`."""
    place = {"at": GLUE_SCORE, "size": settings.sizes[-1], "protocol": settings.protocols[0]}
    compared = read_results.read_contrasts(source=RUN, quantity="score", **place)
    found = select_rows(compared, verdict=list(TESTED))["detectable"].dropna()
    if found.empty:
        return ""
    ends = dict.fromkeys([format_number(found.min(), 1), format_number(found.max(), 1)])
    return " to ".join(ends)


def describe_released() -> str:
    """Describes the differences of the released checkpoints in GLUE score, with intervals, by size."""
    rows = read_results.read_contrasts(source="released", quantity="score", at=GLUE_SCORE)
    parts = []
    for size, of_size in rows.groupby("size"):
        found = []
        for row in of_size.itertuples():
            interval = format_interval(row.low, row.high, 2)
            found.append(f"{names.name_key(row.arm)} {format_signed(row.estimate, 2)} ({interval})")
        parts.append(f"BERT-{size}: {', '.join(found)}")
    return "; ".join(parts)


def select_answers(settings: Settings) -> pd.DataFrame:
    """Selects the F1 of this run on SQuAD 1.1, at the last size, in per cent."""
    place = {"source": RUN, "questions": "squad1", "measure": "F1", "trained": ""}
    return select_rows(list_answers(), size=settings.sizes[-1], **place)


def describe_scores(rows: pd.DataFrame) -> str:
    """Describes a score by operator, such as `original 79.3, shared 65.4`."""
    scores = []
    for row in rows.itertuples():
        scores.append(f"{names.name_key(row.operator)} {format_number(row.estimate, 1)}")
    return ", ".join(scores)


def describe_translations() -> str:
    """Describes the BLEU of translation by protocol and operator."""
    rows = select_rows(read_results.read_table("translation"), metric="beam_bleu").rename(columns={"mean": "estimate"})
    groups = rows.groupby("protocol", sort=False)
    return "; ".join(f"protocol {protocol}, {describe_scores(of)}" for protocol, of in groups)


def list_generated(settings: Settings) -> list[str]:
    """Lists what this repository generated: text, tasks, both or nothing."""
    text = ["generated text"] if settings.text_generated else []
    tasks = ["generated tasks in the form of GLUE"] if settings.tasks_generated else []
    return text + tasks


def describe_counts(counts: pd.DataFrame) -> str:
    """Describes how many statements of each source have each verdict, by ledger: `This run. Courtois: 3 holds, ...`."""
    parts = []
    for ledger, of_ledger in counts.groupby("ledger", sort=False):
        sources = []
        for paper, of_paper in of_ledger.groupby("paper", sort=False):
            words = [f"{row.estimate} {row.word}" for row in of_paper.itertuples()]
            sources.append(f"{paper}: {', '.join(words)}")
        parts.append(f"{ledger}. {'; '.join(sources)}.")
    return " ".join(parts)
