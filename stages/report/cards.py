"""A model card for every pre-trained operator and size.

The template is Markdown, which may hold HTML: values such as `report.data` are escaped.
"""

from pathlib import Path

from stages.evidence.fields import select
from stages.files.model_folders import card
from stages.files.paths import pretrained
from stages.report import html, names, read_results
from stages.report.text_templates import TEMPLATES, describe_banner
from stages.schema.operators import described
from stages.schema.settings import Settings

# the summaries that a card shows
MEASURES = ["masked_lm_parameters", "saved_percent", "final_validation_loss", "score"]


def render_cards(settings: Settings) -> dict[str, str]:
    """Renders the model cards of a run in Markdown, by `OPERATOR-SIZE`."""
    template = html.environment(TEMPLATES).get_template("model_card.md")
    operators = described(Path(settings.operators_file))
    summaries = select(read_results.read_summaries(), metric=MEASURES)
    texts = {}
    for size in settings.sizes:
        for operator in settings.operators:
            variant = settings.variant(operator)
            text = template.render(
                banner=describe_banner(settings),
                variant=variant,
                described=operators[variant["operator"]],
                model=settings.models[size],
                folder=f"data/pretraining/{operator}-{size}/seed-N",
                seeds=settings.pretraining.seeds,
                rows=select(summaries, operator=operator, size=size).to_dict("records"),
            )
            # the folder of the first seed is the example of the card
            folder = pretrained(operator, size, settings.pretraining.seeds[0])
            title = f"BERT-{size} with {names.operator(operator)} attention"
            texts[f"{operator}-{size}"] = card(folder, title, text.strip(), operator, variant, "fill-mask", {})
    return texts
