"""Files beside the report: a model card for every pre-trained operator and size, and the page of results.parquet.

Their templates are Markdown, which may hold HTML: values such as `report.data` and `report.remark` are escaped for it.
"""

from pathlib import Path

import pandas as pd

from stages.evidence.scores import COLUMNS, GLUE_SCORE
from stages.plumbing.files import PRETRAINED
from stages.plumbing.model_folders import card
from stages.plumbing.operators import described
from stages.report import first_screen, html, names
from stages.report.paper_lines import CHANCE
from stages.report.tables import number, spread
from stages.report.words import TEMPLATES, content, sentence


def cards(settings, summaries: pd.DataFrame) -> dict[str, str]:
    """Renders a model card for every operator and size of the run.

    Args:
        settings: the Settings of the run.
        summaries: the means over seeds, as `analysis` writes them.

    Returns:
        By `OPERATOR-SIZE`, the card in Markdown.
    """
    template = html.environment(TEMPLATES).get_template("model_card.md")
    made = {}
    for size in settings.sizes:
        for operator in settings.operators:
            text = template.render(_values(operator, size, settings, summaries)).strip()
            weights = PRETRAINED / f"{operator}-{size}" / f"seed-{settings.pretraining.seeds[0]}"
            title = f"BERT-{size} with {names.operator(operator)} attention"
            made[f"{operator}-{size}"] = card(
                weights, title, text, operator, settings.variant(operator), "fill-mask", {}
            )
    return made


def _values(operator: str, size: str, settings, summaries: pd.DataFrame) -> dict:
    rows = summaries[(summaries["operator"] == operator) & (summaries["size"] == size)]
    facts = first_screen.of_run(settings, summaries)
    counts = rows.set_index("metric")["mean"]
    variant = settings.variant(operator)
    description = described(Path(settings.operators_file))[variant.pop("operator")]
    generated = settings.data.source == "embedded"
    return {
        "operator": operator,
        "size": size,
        "banner": sentence("banner", **facts),
        "model": settings.models[size],
        "equation": description.equation,
        "setting": "".join(f"; {key}: {value}" for key, value in variant.items()),
        "operator_source": description.source,
        "exportable": description.exportable,
        "parameters": number(float(counts.get("masked_lm_parameters", float("nan"))), 0),
        "saved": number(float(counts.get("saved_percent", float("nan"))), 2),
        "seeds": ", ".join(map(str, settings.pretraining.seeds)),
        "training": sentence("description", **facts),
        "source": content("sentences")["sources"][settings.data.source],
        "rows": _rows(rows),
        "chance": rows["at_chance"].eq(True).any(),
        "caution": "They were trained on generated text and know nothing of English." if generated else "",
    }


def _rows(measured: pd.DataFrame) -> list[tuple[str, str, str]]:
    """What was measured, its mean and spread, and how many units of what they are over."""
    loss = measured[measured["metric"] == "final_validation_loss"]
    rows = [("Validation loss, nats a masked token", _mean(row, 3, 1), _over(row)) for row in loss.itertuples()]
    scores = measured[(measured["metric"] == "score") & (measured["stage"] == "finetuning")]
    for column in (GLUE_SCORE, *COLUMNS):
        for row in scores[scores["evaluated_on"] == column].itertuples():
            label = f"{names.task(column)}, protocol of {names.protocol(row.protocol)}"
            rows.append((label, _mean(row, 2, 100) + CHANCE * (row.at_chance is True), _over(row)))
    return rows


def _mean(row, decimals: int, scale: float) -> str:
    return f"{number(scale * row.mean, decimals)} {spread(scale * row.sd, decimals)}".strip()


def _over(row) -> str:
    return f"{row.n} {row.unit}"


def results_page(results: pd.DataFrame) -> str:
    """Renders the page in Markdown that says what results.parquet, whose content this is, has in its columns."""
    stages = list(results["stage"].value_counts(sort=False).items())
    template = html.environment(TEMPLATES).get_template("results.md")
    return template.render(rows=len(results), stages=stages, columns=list(results.columns))
