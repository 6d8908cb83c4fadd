"""Checks params.yaml before any other stage runs.

Reads params.yaml, as every stage does, and stops on a mistake; compares `cross_domain.positive_labels` with the labels
of the tasks, and runs each of the user's own operators once, on zeros. Writes data/settings.txt. Its content is always
the same: the stages that depend on it wait for the check, and do not run again because of it.
"""

from itertools import product

from stages.benchmarks.glue import positive_classes
from stages.files.paths import CHECKED
from stages.files.storage import write_atomically
from stages.schema.settings import PATH, Settings


def require_own_operators(settings: Settings) -> None:
    """Runs each of the user's own operators that `operators` lists, variants too, once on zeros at each of `sizes`.

    ValueError where one fails or changes the shape of hidden states, [batch, n, h]; it names operator, file and size.
    """
    # the settings of a user's own operators alone have that key
    variants = [variant for name in settings.operators if "operators_file" in (variant := settings.variant(name))]
    for variant, size in product(variants, settings.sizes):
        import torch  # here, as it takes seconds, and without such operators it is not needed

        from stages.attention.configuration import configuration

        where = f"{variant['operators_file']}: operator `{variant['operator']}` at size {size}"
        config = configuration(**variant, **settings.models[size].model_dump())
        X = torch.zeros(2, 3, config.hidden_size)
        try:
            shape = tuple(config.self_attention()(X).shape)
        except Exception as error:  # whatever the user's code raises
            raise ValueError(f"{where}: {type(error).__name__}: {error}; mend it") from error
        if shape != X.shape:
            raise ValueError(f"{where}: it makes {shape} of {tuple(X.shape)}; both must be alike: mend it")


def main(settings: Settings) -> None:
    """Does the checks that go beyond reading the settings. Returns None, so the stage leaves no record in data/runs."""
    positive_classes(settings.cross_domain)  # raises on a label that its task does not have
    require_own_operators(settings)
    write_atomically(CHECKED, "params.yaml has been checked.\n")
    print(f"{PATH}: no mistake found")
