"""Counts the parameters of every operator at every size of `models`.

Reads nothing but params.yaml. Writes data/observations/parameters.csv: parameters of one layer's self-attention and of
its feed-forward network (closed formulas, checked against a built layer), and of the whole masked-LM model and the
two-label classifier with BERT's vocabulary. Beside them, at sizes of their own, the layers that the blog post (`blog`)
and the draft section (`draft`) count.
"""

from stages import command, observations
from stages.attention import counts
from stages.attention.bert import OPERATORS
from stages.observations import Observation
from stages.settings import load_settings

BLOG = {"hidden": 512, "heads": 8, "positions": 40}  # its text; 8 heads follow from its count
DRAFT = {"hidden": 512, "width": 64}  # width of a head
DRAFT_INTERMEDIATE = 2048
DRAFT_SUBLAYERS = (  # operator, condition, heads, pairs a head
    ("parameters", None, 8, 1536),
    ("parameters_wide", None, 16, 512),  # its table
    ("parameters_wide", "heads=8", 8, 512),  # its text
)


def count(operator: str, size: str, model: dict[str, int]) -> list[Observation]:
    """The rows of one operator at one size. RuntimeError where a formula and the built layer differ."""
    formulas = counts.layer_parameters(operator, model)
    counted = counts.counted_layer_parameters(operator, model)
    if formulas != counted:
        raise RuntimeError(f"{operator} at {size}: {formulas} parameters by formula, {counted} in the built layer")
    values = dict(zip(("attention_parameters", "feed_forward_parameters"), formulas, strict=True))
    attention = operator, model["hidden"], model["heads"], model["positions"]
    values["attention_weights"] = counts.attention_weights(*attention)
    values["attention_block_parameters"] = counts.attention_block_parameters(*attention)
    norms = 4 * model["hidden"]  # two LayerNorms
    values["layer_parameters"] = values["attention_block_parameters"] + values["feed_forward_parameters"] + norms
    values |= {kind: counts.model_parameters(kind, operator, model) for kind in counts.MODELS}
    return [
        Observation(stage="parameters", operator=operator, size=size, metric=metric, value=value)
        for metric, value in values.items()
    ]


def small_sources() -> list[Observation]:
    """The layers of the blog post and of the draft section, by closed formula."""
    whole = {"stage": "parameters", "size": "blog", "metric": "attention_block_parameters"}
    blocks = [
        Observation(operator=operator, value=counts.attention_block_parameters(operator, **BLOG), **whole)
        for operator in ("original", "hadamard", "fixed")
    ]
    own = {"stage": "parameters", "size": "draft", "metric": "feed_forward_weights"}
    plain = 2 * DRAFT["hidden"] * DRAFT_INTERMEDIATE
    sublayers = [
        Observation(operator=operator, condition=condition, value=value, **own)
        for operator, condition, heads, pairs in DRAFT_SUBLAYERS
        for value in [counts.over_parameters_weights(heads=heads, pairs=pairs, **DRAFT)]
    ]
    return [*blocks, Observation(operator="original", value=plain, **own), *sublayers]


def main() -> None:
    command.parser("parameters", __doc__).parse_args()
    settings = load_settings()
    with observations.provenance("parameters"):
        models = {size: model.model_dump() for size, model in settings.models.items()}
        rows = [row for size, model in models.items() for operator in OPERATORS for row in count(operator, size, model)]
        observations.write(observations.FOLDER / "parameters.csv", [*rows, *small_sources()])


if __name__ == "__main__":
    command.run(main)
