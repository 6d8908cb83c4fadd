"""Checks params.yaml before any other stage runs.

Stops on a mistake in params.yaml, such as the name of a scale above the values of another scale. Checks that files
named there exist. Compares `cross_domain.positive_labels` with the labels of the tasks, and trains, saves and loads
each of the user's own operators in `operators`. In an experiment of DVC, stops if outputs are missing. Prints which
operators would fill the memory of a GPU with attention weights, how many jobs of each stage would be new, and warnings
of too little disk space and of a missing GPU.

Writes data/settings.txt, always with the same content, so that stages which wait for the check do not run again.
"""

from collections.abc import Iterable, Iterator
from itertools import product

from stages.benchmarks.glue import find_positive_classes
from stages.files.paths import CHECKED
from stages.files.storage import write_atomically
from stages.schema import scales
from stages.schema.settings import PATH, Settings
from stages.schema.training_sections import Model
from stages.settings.costs import describe_costs
from stages.settings.sources import require_outputs, require_sources

# Operators whose self-attention stores weights on a GPU. Other self-attention uses PyTorch's kernels, which store none.
WRITTEN_OUT = ("fixed", "hadamard", "hadamard_by_head")
# operators with attention over parameters: the number of heads of this attention as a multiple of the model's heads
OVER_PARAMETERS = {"over_parameters": 1, "over_parameters_wide": 2}
# Training keeps for each weight: float32 from the softmax, a byte of dropout, bfloat16 for the product with values.
BYTES_PER_ATTENTION_WEIGHT = 7
# The attention weights may fill half of a GPU of 80 GB.
MOST_BYTES = 40 * 10**9


def require_own_operators(settings: Settings, operators: Iterable[str]) -> None:
    """Tries the user's own operators among `operators`, a list of operators and variants, at all sizes of the run.

    Raises:
        ValueError: training, saving or the export of an `exportable` operator fails; the message names operator, file
            and size.
    """
    for name in operators:
        variant = settings.collect_operator_settings(name)
        # only the settings of a user's own operators have this key
        if "operators_file" in variant:
            # imported here, because the import takes seconds and most runs have no such operator
            from stages.settings.trial import try_operator

            for size in settings.sizes:
                try_operator(variant, size, settings.models[size])


def count_stored_weights(operator: str, model: Model, length: int) -> int:
    """Counts the attention weights that a layer stores for a token in training on a GPU, with sequences of `length`."""
    if operator in WRITTEN_OUT:
        return model.heads * length
    multiple = OVER_PARAMETERS.get(operator)
    if multiple:
        # every head attends to so many pairs of a key and a value (OverParameters.pairs)
        pairs = model.intermediate // multiple - model.hidden
        return multiple * model.heads * pairs
    # PyTorch's kernels store no weights.
    return 0


def find_large_batches(settings: Settings) -> Iterator[str]:
    """Yields notes on operators and sizes whose attention weights would fill a GPU in pre-training."""
    # 256 sequences of 512 tokens with 12 heads in 12 layers have 9.7 billion weights, which take 68 GB.
    recipe = settings.pretraining
    sequences = recipe.micro_batch_size or recipe.batch_size
    length = settings.tokenization.sequence_length
    for operator, size in product(settings.operators, settings.sizes):
        model = settings.models[size]
        weights_per_token = count_stored_weights(
            settings.collect_operator_settings(operator)["operator"], model, length
        )
        bytes_per_sequence = model.layers * length * weights_per_token * BYTES_PER_ATTENTION_WEIGHT
        stored = sequences * bytes_per_sequence
        if stored > MOST_BYTES:
            most_sequences = max(MOST_BYTES // bytes_per_sequence, 1)
            yield (
                f"{PATH}: training {operator} at size {size} stores {stored / 1e9:.0f} GB of attention weights; on a "
                f"GPU of 80 GB, set pretraining.micro_batch_size to {most_sequences} or less"
            )


def main(settings: Settings) -> None:
    """Runs all checks, and prints notes on memory, new jobs and machine."""
    # Only for the error, which the call raises for a label that a task does not have.
    find_positive_classes(settings.cross_domain)
    require_outputs()
    scales.require_named(PATH)
    require_sources(settings)
    require_own_operators(settings, settings.operators)
    for note in find_large_batches(settings):
        print(note)
    write_atomically(CHECKED, "params.yaml has been checked.\n")
    print(f"{PATH}: no mistake found")
    for line in describe_costs(settings):
        print(line)
