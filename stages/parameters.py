"""Counts the parameters of every operator at every size of `models`.

Reads nothing but params.yaml. Writes data/observations/parameters.csv: parameters of the self-attention module of one
layer (closed formula, checked against the built module) and of the whole masked-LM model with BERT's vocabulary.
"""

from stages import command, observations
from stages.attention import counts
from stages.attention.operators import OPERATORS
from stages.observations import Observation
from stages.settings import Model, load_settings


def count(operator: str, size: str, model: Model) -> list[Observation]:
    """Two rows: one attention module, one whole model. RuntimeError where formula and built module differ."""
    formula = counts.attention_parameters(operator, model.hidden, model.heads)
    counted = counts.counted_attention_parameters(operator, model.hidden, model.heads)
    if formula != counted:
        raise RuntimeError(
            f"{operator} at {size}: {formula:,} parameters by formula, {counted:,} in the built module"
        )
    values = {
        "attention_parameters": formula,
        "masked_lm_parameters": counts.masked_lm_parameters(operator, **model.model_dump()),
    }
    return [
        Observation(stage="parameters", operator=operator, size=size, metric=metric, value=value)
        for metric, value in values.items()
    ]


def main() -> None:
    command.parser("parameters", __doc__).parse_args()
    settings = load_settings()
    with observations.provenance("parameters"):
        rows = [
            row
            for size, model in settings.models.items()
            for op in OPERATORS
            for row in count(op, size, model)
        ]
        observations.write(observations.FOLDER / "parameters.csv", rows)


if __name__ == "__main__":
    command.run(main)
