"""Counts the parameters of every operator at every size of `models`.

Reads only params.yaml. Writes data/observations/parameters.csv: parameters of a layer's self-attention and feed-forward
network (closed formulas, checked against a built layer), and of the whole masked-LM model and the two-label classifier
with BERT's vocabulary; and the spread (standard deviation) of the attention scores before training, the only number
that `variants` change here. At separate sizes, the file has the layers that the blog post on Hadamard attention
(`blog`) and the draft section "Attention over Parameters" (`draft`) count.
"""

import torch

from stages.attention import counts
from stages.attention.operators import OPERATORS
from stages.encoder_decoder.run import TranslationRun
from stages.encoder_decoder.steps import assemble_model
from stages.files import observations
from stages.files.observations import Observation
from stages.schema.settings import Settings
from stages.schema.translation_sections import TranslationProtocol

# as in the blog post's text; 8 heads follow from the blog's count
BLOG = {"hidden": 512, "heads": 8, "positions": 40}
# Vaswani et al. 2017, Table 3, base; the number of parameters depends neither on dropout nor on positions
BASE = {
    "layers": 6,
    "hidden": 512,
    "heads": 8,
    "intermediate": 2048,
    "vocabulary": "shared",
    "dropout": 0.1,
    "positions": 256,
}
# width of a head in the draft, whose sublayers have the width of BASE
HEAD_WIDTH = 64
# about the size of the shared vocabulary (Vaswani et al. 2017, section 5.1)
SUB_WORDS = 37_000
# operator, condition of the observation, heads, pairs of a key and a value per head
DRAFT_SUBLAYERS = (
    ("over_parameters", None, 8, 1536),
    # as in the draft's table
    ("over_parameters_wide", None, 16, 512),
    # as in the draft's text
    ("over_parameters_wide", "heads=8", 8, 512),
)


def count_operator(name: str, variant: dict, size: str, model: dict[str, int], deviation: float) -> list[Observation]:
    """Counts the parameters of an operator or a variant at a size, and computes the spread of the first scores.

    `model` is an entry of `models`; `deviation` is the standard deviation of a new weight. The metric
    `first_score_spread` exists if the operator has a formula.

    Raises:
        ValueError: a formula and the built layer differ.
    """
    values = counts.count_layer(variant, model)
    formulas = counts.compute_layer_formulas(variant, model)
    if not values.items() <= formulas.items():
        raise ValueError(
            f"{name} at {size}: {formulas} parameters by formula, {values} in the built layer; correct the formulas "
            "of the operator's class"
        )
    values.update(formulas)
    for kind in counts.MODELS:
        values[kind] = counts.count_model_parameters(kind, variant, model)
    spread = counts.compute_first_score_spread(variant, model, deviation)
    if spread is not None:
        values["first_score_spread"] = spread
    shared = {"stage": "parameters", "operator": name, "size": size}
    return [Observation(metric=metric, value=value, **shared) for metric, value in values.items()]


def count_small_sources() -> list[Observation]:
    """Counts the parameters whose numbers the two small sources print: a blog post, and a draft section.

    Returns:
        Rows of size `blog` with `attention_block_parameters`; rows of size `draft` with `feed_forward_weights` (of a
        feed-forward sublayer) and `translation_parameters` (of a whole model).
    """
    rows = []
    metric = "attention_block_parameters"
    for operator in ("original", "hadamard", "fixed"):
        value = counts.compute_attention_formulas(operator, BLOG)[metric]
        rows.append(Observation(stage="parameters", size="blog", metric=metric, operator=operator, value=value))
    sublayer = {"stage": "parameters", "size": "draft", "metric": "feed_forward_weights"}
    plain = 2 * BASE["hidden"] * BASE["intermediate"]
    rows.append(Observation(operator="original", value=plain, **sublayer))
    for operator, condition, heads, pairs in DRAFT_SUBLAYERS:
        # The draft's first formula, without biases: queries and output have h columns, keys and values a column a pair.
        value = 2 * heads * HEAD_WIDTH * (BASE["hidden"] + pairs)
        rows.append(Observation(operator=operator, condition=condition, value=value, **sublayer))
    return [*rows, *count_translation_models()]


def count_translation_models() -> list[Observation]:
    """Counts `translation_parameters` of the models in the draft's table: the base of Vaswani et al. 2017 and two more.

    These two have attention over parameters in place of the feed-forward network.
    """
    model = {"stage": "parameters", "size": "draft", "metric": "translation_parameters"}
    # `model_construct` takes a recipe that lacks the settings of training.
    training = TranslationProtocol.model_construct(**BASE)
    rows = []
    for operator in ("original", "over_parameters", "over_parameters_wide"):
        run = TranslationRun.model_construct(operator=operator, training=training)
        # A count needs no weights.
        with torch.device("meta"):
            parameters = assemble_model(run, (SUB_WORDS, SUB_WORDS)).parameters()
        total = sum(parameter.numel() for parameter in parameters)
        rows.append(Observation(operator=operator, value=total, **model))
    return rows


def main(settings: Settings) -> dict:
    """Writes the counts of all operators, variants and sizes; returns {}, because the run's record gets no entries."""
    # Every name only once. The classes in a user's file that no list names may be drafts.
    names = dict.fromkeys((*OPERATORS, *settings.operators, *settings.variants))
    deviation = settings.pretraining.initializer_range
    rows = []
    for size, model in settings.models.items():
        for name in names:
            rows += count_operator(name, settings.select_variant(name), size, model.model_dump(), deviation)
    observations.write(observations.FOLDER / "parameters.csv", [*rows, *count_small_sources()])
    return {}
