"""Files next to the report: a model card for every pre-trained operator and size, and the page of results.parquet.

Their templates are Markdown, which may hold HTML: values such as `report.data` and `report.remark` are escaped for it.
"""

from pathlib import Path

import pandas as pd

from stages.evidence.scores import COLUMNS, GLUE_SCORE
from stages.files.model_folders import card
from stages.files.paths import pretrained
from stages.report import first_screen, html, names
from stages.report.inputs import select
from stages.report.words import TEMPLATES, content, sentence
from stages.schema.operators import described


def cards(settings, summaries: pd.DataFrame) -> dict[str, str]:
    """Renders the model cards of a run (`Settings`) in Markdown, by `OPERATOR-SIZE`; summaries: `inputs.summaries`."""
    template = html.environment(TEMPLATES).get_template("model_card.md")
    texts = {}
    for size in settings.sizes:
        for operator in settings.operators:
            text = template.render(_values(operator, size, settings, summaries)).strip()
            weights = pretrained(operator, size, settings.pretraining.seeds[0])  # an example: the card is of all seeds
            title = f"BERT-{size} with {names.operator(operator)} attention"
            variant = settings.variant(operator)  # below, the hub's task of such models, and no scores as metadata
            texts[f"{operator}-{size}"] = card(weights, title, text, operator, variant, "fill-mask", {})
    return texts


def _values(operator: str, size: str, settings, summaries: pd.DataFrame) -> dict:
    """Gathers what the template model_card.md names, for the models of one operator and size."""
    rows = select(summaries, operator=operator, size=size)
    scores = select(rows, metric="score", stage="finetuning")
    facts = first_screen.of_run(settings, summaries)
    variant = settings.variant(operator)
    return facts | {
        "operator": operator,
        "size": size,
        "banner": sentence("banner", **facts),
        "model": settings.models[size],
        "described": described(Path(settings.operators_file))[variant.pop("operator")],  # the rest is `variant`
        "variant": variant,
        "counts": rows.set_index("metric")["mean"],  # read for counts alone, whose metric has one row
        "training": sentence("description", **facts),
        "source": content("sentences")["sources"][settings.data.source],
        "losses": select(rows, metric="final_validation_loss").to_dict("records"),
        "scores": [row for at in (GLUE_SCORE, *COLUMNS) for row in select(scores, evaluated_on=at).to_dict("records")],
        "chance": rows["at_chance"].eq(True).any(),
    }


def results_page(results: pd.DataFrame) -> str:
    """Renders the Markdown page on results.parquet; results: its content, all observations of the run."""
    stages = list(results["stage"].value_counts(sort=False).items())
    template = html.environment(TEMPLATES).get_template("results.md")
    return template.render(rows=len(results), stages=stages, columns=list(results.columns))
