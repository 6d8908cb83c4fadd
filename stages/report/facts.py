"""The facts that texts of the report name: settings and data of a run, and what this run and our studies found."""

from pathlib import Path

import pandas as pd

from stages.evidence.fields import THIS_RUN, select_rows
from stages.evidence.scores import GLUE_SCORE
from stages.evidence.statistics import FLIPPED
from stages.evidence.verdicts import TESTED, Difference, Statement
from stages.files.yaml_files import list_values, read_yaml
from stages.report.claims_and_audit import BY_THIS_RUN, WORDS
from stages.report.differences import select_main
from stages.report.looks import find_style
from stages.report.names import name_key
from stages.report.read_results import select_contrasts
from stages.report.tables import Reader, format_number
from stages.report.text_templates import fill_sentence, list_words, read_content
from stages.schema import scales
from stages.schema.settings import REFERENCE, Settings


def gather_facts(settings: Settings) -> dict[str, object]:
    """Gathers facts that most texts may name: settings, data, the words of all verdicts, and levels of confidence."""
    options = settings.analysis
    return {
        "settings": settings,
        "data": settings.report.data or describe_data(settings),
        # texts write a verdict as `{{ difference.NOT_RUN }}`
        "difference": Difference,
        "statement": Statement,
        "confidence": f"{100 * options.confidence:g} %",
        "simultaneous": f"simultaneous {100 * (1 - options.alpha):g} %",
    }


def describe_banner(settings: Settings) -> str:
    """Describes scale, models and data of a run, such as `This run trains BERT-tiny ...`."""
    models = []
    for size in settings.sizes:
        model = settings.models[size]
        layers = f"{model.layers} layer{'s' if model.layers > 1 else ''}"
        models.append(f"BERT-{size} ({layers}, width {model.hidden})")
    facts = gather_facts(settings)
    return fill_sentence("banner", models=", ".join(models), base="base" in settings.sizes, **facts)


def describe_data(settings: Settings) -> str:
    """Describes the sources of the text and the tasks of a run, such as `files on disk`."""
    # the words for a source by use: `text`, `tasks`, or `both` from one source
    sources = read_content("sentences")["sources"]
    text, tasks = sources[settings.data.source], sources[settings.task_source]
    if not settings.has_tasks:
        return f"{text['text']}, without tasks"
    if text == tasks:
        return text["both"]
    return f"{text['text']} and {tasks['tasks']}"


def gather_findings(settings: Settings, read: Reader) -> dict[str, object]:
    """Gathers the findings that the sentences of the report name; `read` returns a frame by name.

    `run` and `studies` have a text by quantity, such as `lower (pairwise), at chance (shared)`, or an empty text if
    nothing was compared.
    """
    rows = select_main(read("differences"), settings)
    # of all scores, only the GLUE score
    rows = rows[(rows["quantity"] != "score") | (rows["at"] == GLUE_SCORE)]
    seeds = len(settings.pretraining.seeds)
    # F1 on SQuAD 1.1, in per cent
    answers = select_rows(
        read("answers"),
        source=THIS_RUN,
        size=settings.sizes[-1],
        questions="squad1",
        measure="f1",
        trained="single",
    )
    # the GLUE scores with a confidence interval
    compared = select_contrasts(
        source=THIS_RUN,
        quantity="score",
        at=GLUE_SCORE,
        size=settings.sizes[-1],
        protocol=settings.protocols[0],
        verdict=list(TESTED),
    )
    return {
        "run": list_by_quantity(select_rows(rows, source=THIS_RUN)),
        "studies": list_by_quantity(select_rows(rows, source="study")),
        "operators": describe_trained(settings),
        "saved": describe_range(select_rows(rows, quantity="saved", source="counted")["estimate"]),
        "seeds": seeds,
        "base": "base" in settings.sizes,
        # too few for a check of the intervals by sign flips
        "few": seeds < FLIPPED.start,
        # the range of the smallest differences that this run would detect with 80 % power
        "detectable": describe_range(compared["detectable"]),
        "answered": describe_scores(answers),
        "translated": describe_translations(read("translation")),
        "claims": describe_counts(select_rows(read("claim_totals"), ledger=BY_THIS_RUN)),
        "facts": describe_counts(read("audit_totals")),
        "remark": find_remark(settings),
    }


def find_remark(settings: Settings) -> str:
    """Finds the remark on how a scale was planned, or an empty text if params.yaml differs from the scale."""
    values = list_values(read_yaml(Path("params.yaml")))
    if settings.scale not in scales.list_scales() or scales.list_edits(values, settings.scale):
        return ""
    return settings.report.remark or ""


def list_by_quantity(rows: pd.DataFrame) -> dict[str, str]:
    """Lists the operators by verdict for every quantity: `lower (pairwise), not significant (symmetric and shared)`."""
    # sections name the differences of these quantities
    quantities = ("score", "loss", "steps", "lost_noise", "transfer", "speed")
    return {name: list_by_verdict(select_rows(rows, quantity=name)) for name in quantities}


def list_by_verdict(rows: pd.DataFrame) -> str:
    """Lists operators by verdict, such as `lower (pairwise and shared)`.

    With several tasks in column `at`, the text is `higher (shared on QQP), lower (pairwise on QQP and RTE)`.
    """
    parts = []
    has_tasks = rows["at"].nunique() > 1
    for verdict in Difference:
        found = []
        for operator, tasks in select_rows(rows, verdict=verdict).groupby("operator", sort=False)["at"]:
            text = name_key(operator)
            if has_tasks:
                text += f" on {list_words([name_key(task) for task in tasks])}"
            found.append(text)
        if found:
            listed = "; ".join(found) if has_tasks else list_words(found)
            parts.append(f"{verdict} ({listed})")
    return ", ".join(parts)


def describe_trained(settings: Settings) -> dict[str, tuple[str, str]]:
    """Returns the description and the colour of each trained operator, by name."""
    known = read_content("sections")["operators"]
    described = settings.describe_operators()
    trained = {}
    # the description is a sentence of sections.yaml, or else equation and source
    for name in settings.operators:
        # a variant has the equation of its operator
        operator = described[settings.collect_operator_settings(name)["operator"]]
        text = known.get(name, f"{operator.equation} ({operator.source})")
        trained[name] = (text, find_style(name)[0])
    # the page describes only operators that are compared with the original
    trained.pop(REFERENCE, None)
    return trained


def describe_range(values: pd.Series) -> str:
    """Describes the range of numbers, such as `5.9 to 12.9`; without numbers, an empty text."""
    if values.isna().all():
        return ""
    ends = [format_number(end, 1) for end in (values.min(), values.max())]
    # equal ends are one number
    return " to ".join(dict.fromkeys(ends))


def describe_scores(rows: pd.DataFrame) -> str:
    """Describes a score by operator, such as `original 79.3, shared 65.4`."""
    scores = [f"{name_key(row.operator)} {format_number(row.estimate, 1)}" for row in rows.itertuples()]
    return ", ".join(scores)


def describe_translations(rows: pd.DataFrame) -> str:
    """Describes the BLEU of translation by protocol and operator."""
    rows = select_rows(rows, metric="beam_bleu").rename(columns={"mean": "estimate"})
    groups = rows.groupby("protocol", sort=False)
    return "; ".join(f"protocol {protocol}, {describe_scores(group)}" for protocol, group in groups)


def describe_counts(counts: pd.DataFrame) -> str:
    """Describes how many statements of all sources have each verdict: `11 holds, 3 partly, 4 fails`."""
    totals = counts.groupby("word")["estimate"].sum()
    return ", ".join(f"{totals[word]} {word}" for word in WORDS if word in totals)
