"""Counts the parameters of every operator at every size of `models`.

Reads only params.yaml. Writes data/observations/parameters.csv: parameters of a layer's self-attention and feed-forward
network, of the whole masked-LM model and of the two-label classifier with BERT's vocabulary, all counted on built
models; and the spread (standard deviation) of the attention scores before training, the only number that `variants`
change here. At separate sizes, the file has the layers that the blog post on Hadamard attention (`blog`) and the draft
section "Attention over Parameters" (`draft`) count.
"""

from collections.abc import Iterator

import torch

from stages.attention import counts
from stages.attention.operators import OPERATORS, find_operator_class
from stages.encoder_decoder.run import TranslationRun
from stages.encoder_decoder.transformer import Transformer
from stages.files import observations
from stages.files.observations import Observation
from stages.schema.settings import Settings
from stages.schema.translation_sections import TranslationProtocol

# as in the blog post's text; 8 heads follow from the blog's count, which leaves the feed-forward network out
BLOG = {"hidden": 512, "heads": 8, "positions": 40, "intermediate": 2048}
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
        ValueError: the operator's formula for the feed-forward network and the built layer differ.
    """
    values = counts.count_layer(variant, model)
    weights, biases = find_operator_class(variant).count_feed_forward_weights(model["hidden"], model["intermediate"])
    built = values["feed_forward_parameters"]
    if weights + biases != built:
        raise ValueError(
            f"{name} at {size}: a feed-forward network of {weights} weights and {biases} biases by formula, of {built} "
            "parameters in the built layer; correct `count_feed_forward_weights` of the operator's class"
        )
    for kind in counts.MODELS:
        values[kind] = counts.count_model_parameters(kind, variant, model)
    spread = counts.compute_first_score_spread(variant, model, deviation)
    if spread is not None:
        values["first_score_spread"] = spread
    shared = {"stage": "parameters", "operator": name, "size": size}
    return [Observation(metric=metric, value=value, **shared) for metric, value in values.items()]


def count_small_sources() -> Iterator[Observation]:
    """Counts the parameters whose numbers the two small sources print: a blog post, and a draft section.

    Yields:
        Rows of size `blog` with `attention_block_parameters`; rows of size `draft` with `feed_forward_weights` (of a
        feed-forward sublayer) and `translation_parameters` (of a whole model).
    """
    metric = "attention_block_parameters"
    for operator in ("original", "hadamard", "fixed"):
        value = counts.count_layer(operator, BLOG)[metric]
        yield Observation(stage="parameters", size="blog", metric=metric, operator=operator, value=value)
    sublayer_columns = {"stage": "parameters", "size": "draft", "metric": "feed_forward_weights"}
    # two Linear layers, without biases
    plain = 2 * BASE["hidden"] * BASE["intermediate"]
    yield Observation(operator="original", value=plain, **sublayer_columns)
    for operator, condition, heads, pairs in DRAFT_SUBLAYERS:
        # The draft's first formula, without biases: per channel of a head, the projections of queries and output have h
        # weights each, and keys and values a weight for every pair.
        value = 2 * heads * HEAD_WIDTH * (BASE["hidden"] + pairs)
        yield Observation(operator=operator, condition=condition, value=value, **sublayer_columns)
    # The models of the draft's table: the base of Vaswani et al. 2017, and two with attention over parameters.
    model_columns = {"stage": "parameters", "size": "draft", "metric": "translation_parameters"}
    # `model_construct` takes a recipe that lacks the settings of training.
    training = TranslationProtocol.model_construct(**BASE)
    for operator in ("original", "over_parameters", "over_parameters_wide"):
        run = TranslationRun.model_construct(operator=operator, training=training)
        # A count needs no weights.
        with torch.device("meta"):
            parameters = Transformer(run, (SUB_WORDS, SUB_WORDS)).parameters()
        total = sum(parameter.numel() for parameter in parameters)
        yield Observation(operator=operator, value=total, **model_columns)


def main(settings: Settings) -> dict:
    """Writes the counts of all operators, variants and sizes; returns {}, because the run's record gets no entries."""
    # Every name only once. Classes of a user's file that params.yaml does not list may be drafts.
    names = dict.fromkeys((*OPERATORS, *settings.operators, *settings.variants))
    deviation = settings.pretraining.initializer_range
    rows = []
    for size, model in settings.models.items():
        for name in names:
            variant = settings.collect_operator_settings(name)
            # no run has an operator that would leave the feed-forward network of this size no width
            if model.intermediate >= model.find_least_width(variant["operator"]):
                rows += count_operator(name, variant, size, model.model_dump(), deviation)
    observations.write(observations.find_file("parameters"), [*rows, *count_small_sources()])
    return {}
