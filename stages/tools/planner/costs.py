"""What the papers' own pre-training takes, as data/published/protocol.yaml has it; and units to say it in."""

from stages.common.attention.configuration import OperatorConfig
from stages.common.attention.counts import training_flops
from stages.plumbing.progress import duration
from stages.tools.planner.amounts import number

H100 = 989.4e12  # operations a second, bfloat16, dense: NVIDIA's data sheet of the H100 SXM
UTILISATION = 0.4  # assumed
VOCABULARY = OperatorConfig().vocab_size  # of bert-base-uncased


def courtois(protocol: dict) -> list[str]:
    """Lines: tokens an operator, and operations by size and operator (section 3.3)."""
    stated = protocol["courtois2024"]["stated"]
    recipe, length = stated["pretraining"], stated["pretraining_data"]["sequence_length"]["value"]
    steps, batch = recipe["steps"], recipe["batch_size"]
    tokens = steps * batch * length
    lines = [f"Courtois et al. 2024: {steps:,} steps x {batch} x {length} = {quantity(tokens)} tokens an operator."]
    for name in ("small", "base"):
        model = {key: stated["models"][name][key] for key in ("layers", "hidden", "heads", "intermediate")}
        said = [
            cost(operator, tokens * training_flops(operator, model, VOCABULARY, length, recipe["mask_probability"]))
            for operator in ("original", "symmetric", "pairwise")
        ]
        lines.append(f"  {name}: {'; '.join(said)}")
    return lines


def kowsher(protocol: dict) -> list[str]:
    """Lines: the epochs of section 2.5, and the steps of Figure 2 beside them, for both readings of the batch size."""
    stated = protocol["kowsher"]["stated"]
    recipe, model, length = stated["pretraining"], stated["model"], stated["model"]["max_sequence_length"]
    epoch, batch = number(stated["pretraining_data"]["tokens"]), round(number(recipe["batch_size"]))
    whole, steps, gpus = recipe["epochs"] * epoch, number(recipe["steps"]), round(number(recipe["hardware"]))
    model = {key: model[key] for key in ("layers", "hidden", "heads")} | {"intermediate": 4 * model["hidden"]}  # BERT's
    a_token = training_flops("shared", model, VOCABULARY, length, recipe["mask_probability"])
    lines = [
        f"Kowsher et al.: {recipe['epochs']} epochs of {quantity(epoch)} tokens = {quantity(whole)} tokens; "
        f"{cost('shared', whole * a_token)}"
    ]
    for sequences in (gpus * batch, batch):
        step = sequences * length
        lines.append(
            f"  in batches of {sequences} x {length}: {whole / step:,.0f} steps; the {steps:,.0f} steps of its Figure "
            f"2 see {quantity(steps * step)} tokens, {steps * step / epoch:.1f} epochs; "
            f"{cost('shared', steps * step * a_token)}"
        )
    return lines


def cost(name: str, flops: float) -> str:
    """Operations as a phrase, with the time that one H100 takes for them."""
    return f"{name} {quantity(flops)} FLOPs, {duration(on_h100(flops))} on one H100"


def on_h100(flops: float) -> float:
    """Seconds."""
    return flops / H100 / UTILISATION


def quantity(value: float) -> str:
    """As in 1.6e19."""
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}" if value >= 1e4 else f"{value:.0f}"


def storage(number_of_bytes: float) -> str:
    """Bytes as text in the largest unit that they fill: `2.3 GB`."""
    for unit, length in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if number_of_bytes >= length:
            return f"{number_of_bytes / length:.1f} {unit}"
    return f"{number_of_bytes / 1e3:.1f} kB"
