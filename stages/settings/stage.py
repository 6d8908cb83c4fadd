"""Checks params.yaml before any other stage runs.

Reads params.yaml, as every stage does, and stops on a mistake, such as the name of a scale above the values of another
scale. Compares `cross_domain.positive_labels` with the labels of the tasks, and runs each of the user's own operators
forward and backward. Writes data/settings.txt. The file always has the same content: stages that depend on the file
wait for the check, and do not run again because of the check.
"""

from stages.benchmarks.glue import positive_classes
from stages.files.paths import CHECKED
from stages.files.storage import write_atomically
from stages.schema import scales
from stages.schema.settings import PATH, Settings


def require_own_operators(settings: Settings) -> None:
    """Tries each of the user's own operators in `operators`, variants too, once at each of `sizes`.

    Raises:
        ValueError: an operator cannot be trained, or exported although `exportable`; the message names operator, file
            and size.
    """
    for name in settings.operators:
        variant = settings.variant(name)
        # only the settings of a user's own operators have this key
        if "operators_file" in variant:
            # imported here, because the import takes seconds and most runs have no such operator
            from stages.settings.trial import try_operator

            for size in settings.sizes:
                try_operator(variant, size, settings.models[size])


def main(settings: Settings) -> None:
    """Does the checks beyond reading the settings. Returns nothing, so that the stage leaves no record in data/runs."""
    # raises for a label that the task does not have
    positive_classes(settings.cross_domain)
    scales.require_named(PATH)
    require_own_operators(settings)
    write_atomically(CHECKED, "params.yaml has been checked.\n")
    print(f"{PATH}: no mistake found")
