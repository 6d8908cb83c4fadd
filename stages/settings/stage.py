"""Checks params.yaml before any other stage runs.

Reads params.yaml, as every stage does, and stops on a mistake, such as the name of a scale above the values of another
scale. Compares `cross_domain.positive_labels` with the labels of the tasks, and runs each of the user's own operators
once, on zeros. Writes data/settings.txt. The file always has the same content: stages that depend on the file wait for
the check, and do not run again because of the check.
"""

from stages.benchmarks.glue import positive_classes
from stages.files.paths import CHECKED
from stages.files.storage import write_atomically
from stages.schema import scales
from stages.schema.settings import PATH, Settings
from stages.schema.training_sections import Model


def require_own_operators(settings: Settings) -> None:
    """Runs each of the user's own operators in `operators`, variants too, once at each of `sizes`."""
    for name in settings.operators:
        variant = settings.variant(name)
        # only the settings of a user's own operators have this key
        if "operators_file" in variant:
            for size in settings.sizes:
                _run_operator(variant, size, settings.models[size])


def _run_operator(variant: dict, size: str, model: Model) -> None:
    """Runs a user's own operator on zeros, two sequences of three tokens.

    Raises:
        ValueError: the operator fails or changes the shape of hidden states, [batch, tokens, hidden]; the message names
            operator, file and size.
    """
    # imported here, because the import takes seconds and most runs have no such operator
    import torch

    from stages.attention.configuration import configuration

    place = f"{variant['operators_file']}: operator `{variant['operator']}` at size {size}"
    config = configuration(**variant, **model.model_dump())
    hidden_states = torch.zeros(2, 3, config.hidden_size)
    expected = tuple(hidden_states.shape)
    # the user's code may raise anything
    try:
        shape = tuple(config.self_attention()(hidden_states).shape)
    except Exception as error:
        raise ValueError(f"{place}: {type(error).__name__}: {error}; correct the operator") from error
    if shape != expected:
        raise ValueError(f"{place}: it makes {shape} of {expected}; the shapes must be equal: correct the operator")


def main(settings: Settings) -> None:
    """Does the checks beyond reading the settings. Returns nothing, so that the stage leaves no record in data/runs."""
    scales.require_named(PATH)
    # raises for a label that the task does not have
    positive_classes(settings.cross_domain)
    require_own_operators(settings)
    write_atomically(CHECKED, "params.yaml has been checked.\n")
    print(f"{PATH}: no mistake found")
