"""Counts the parameters of every operator at every size of `models`.

Reads nothing but params.yaml. Writes data/observations/parameters.csv: parameters of one layer's self-attention and of
its feed-forward network (closed formulas, checked against a built layer), and of the whole masked-LM model and the
two-label classifier with BERT's vocabulary; and the spread (standard deviation) of the attention scores before
training, the one number that `variants` change here. In addition, at sizes of their own, the layers that the blog post
on Hadamard attention (`blog`) and the draft section "Attention over Parameters" (`draft`) count.
"""

from pathlib import Path

import torch

from stages.attention import counts
from stages.attention.operators import OPERATORS
from stages.encoder_decoder.run import TranslationRun
from stages.encoder_decoder.steps import assembled
from stages.files import observations
from stages.files.observations import Observation
from stages.schema.operators import described
from stages.schema.settings import Settings
from stages.schema.translation_sections import TranslationProtocol

BLOG = {"hidden": 512, "heads": 8, "positions": 40}  # as in the blog post's text; 8 heads follow from its count
BASE = {  # Vaswani et al. 2017, Table 3, base; the number of parameters depends neither on dropout nor on positions
    "layers": 6, "hidden": 512, "heads": 8, "intermediate": 2048, "vocabulary": "shared", "dropout": 0.1,
    "positions": 256,
}  # fmt: skip
HEAD_WIDTH = 64  # in the draft, whose sublayers have the width of BASE
SUB_WORDS = 37_000  # of the shared vocabulary, about (Vaswani et al. 2017, section 5.1)
DRAFT_SUBLAYERS = (  # operator, condition of the observation, heads, pairs of a key and a value per head
    ("over_parameters", None, 8, 1536),
    ("over_parameters_wide", None, 16, 512),  # as in the draft's table
    ("over_parameters_wide", "heads=8", 8, 512),  # as in the draft's text
)


def count(name: str, variant: dict, size: str, model: dict[str, int], deviation: float) -> list[Observation]:
    """Counts one operator or variant at one size. ValueError where a formula and the built layer differ.

    Args:
        name, variant: name of the operator or the variant, and its settings, as Settings.variant returns them.
        size, model: name of the size in `models`, and what `models` has for it.
        deviation: standard deviation of a new weight.

    Returns:
        One row per number, whose name is the metric: all of `counts.layer_formulas`, one for each of `counts.MODELS`,
        and first_score_spread, where there is a formula for it.
    """
    formulas, values = counts.layer_formulas(variant, model), counts.counted_layer(variant, model)
    if not values.items() <= formulas.items():  # every number that was counted is also given by formula, and equal
        raise ValueError(f"{name} at {size}: {formulas} parameters by formula, {values} in the built layer")
    values |= formulas
    values |= {kind: counts.model_parameters(kind, variant, model) for kind in counts.MODELS}
    spread = counts.first_score_spread(variant, model, deviation)
    values |= {} if spread is None else {"first_score_spread": spread}
    return [
        Observation(stage="parameters", operator=name, size=size, metric=metric, value=value)
        for metric, value in values.items()
    ]


def small_sources() -> list[Observation]:
    """Counts the layers of the blog post and of the draft section by formula, and the draft's models as built.

    Rows of size `blog` have attention_block_parameters. Rows of size `draft` have feed_forward_weights, those of one
    feed-forward sublayer, and translation_parameters.
    """
    block = {"stage": "parameters", "size": "blog", "metric": "attention_block_parameters"}
    blocks = [
        Observation(operator=operator, value=counts.attention_formulas(operator, BLOG)[block["metric"]], **block)
        for operator in ("original", "hadamard", "fixed")
    ]
    sublayer = {"stage": "parameters", "size": "draft", "metric": "feed_forward_weights"}
    plain = Observation(operator="original", value=2 * BASE["hidden"] * BASE["intermediate"], **sublayer)
    over_parameters = [  # by the draft's first formula, without biases
        Observation(
            operator=operator,
            condition=condition,
            value=2 * heads * HEAD_WIDTH * (BASE["hidden"] + pairs),  # queries, output: hidden; keys, values: pairs
            **sublayer,
        )
        for operator, condition, heads, pairs in DRAFT_SUBLAYERS
    ]
    return [*blocks, plain, *over_parameters, *translation_models()]


def translation_models() -> list[Observation]:
    """Counts the parameters of the models in the draft's table, with the vocabulary of Vaswani et al. 2017."""
    model = {"stage": "parameters", "size": "draft", "metric": "translation_parameters"}
    rows = []
    for operator in ("original", "over_parameters", "over_parameters_wide"):  # `model_construct`: without a recipe
        run = TranslationRun.model_construct(operator=operator, training=TranslationProtocol.model_construct(**BASE))
        with torch.device("meta"):  # because a count needs no weights
            parameters = assembled(run, (SUB_WORDS, SUB_WORDS)).parameters()
        rows.append(Observation(operator=operator, value=sum(parameter.numel() for parameter in parameters), **model))
    return rows


def main(settings: Settings) -> dict:
    """Writes the observations; the run's record gets nothing more."""
    models = {size: model.model_dump() for size, model in settings.models.items()}
    deviation = settings.pretraining.initializer_range
    rows = [
        row
        for size, model in models.items()
        # each name once: `described` has the repository's operators, too
        for name in dict.fromkeys((*OPERATORS, *described(Path(settings.operators_file)), *settings.variants))
        for row in count(name, settings.variant(name), size, model, deviation)
    ]
    observations.write(observations.FOLDER / "parameters.csv", [*rows, *small_sources()])
    return {}
