"""Counts the parameters of every operator at every size of `models`.

Reads nothing but params.yaml. Writes data/observations/parameters.csv: parameters of one layer's self-attention and of
its feed-forward network (closed formulas, checked against a built layer), and of the whole masked-LM model and the
two-label classifier with BERT's vocabulary.
"""

from stages import command, observations
from stages.attention import counts
from stages.attention.bert import OPERATORS
from stages.observations import Observation
from stages.settings import load_settings


def count(operator: str, size: str, model: dict[str, int]) -> list[Observation]:
    """The rows of one operator at one size. RuntimeError where a formula and the built layer differ."""
    formulas = counts.layer_parameters(operator, model)
    counted = counts.counted_layer_parameters(operator, model)
    if formulas != counted:
        raise RuntimeError(f"{operator} at {size}: {formulas} parameters by formula, {counted} in the built layer")
    values = dict(zip(("attention_parameters", "feed_forward_parameters"), formulas, strict=True))
    values |= {kind: counts.model_parameters(kind, operator, model) for kind in counts.MODELS}
    return [
        Observation(stage="parameters", operator=operator, size=size, metric=metric, value=value)
        for metric, value in values.items()
    ]


def main() -> None:
    command.parser("parameters", __doc__).parse_args()
    settings = load_settings()
    with observations.provenance("parameters"):
        models = {size: model.model_dump() for size, model in settings.models.items()}
        rows = [row for size, model in models.items() for operator in OPERATORS for row in count(operator, size, model)]
        observations.write(observations.FOLDER / "parameters.csv", rows)


if __name__ == "__main__":
    command.run(main)
