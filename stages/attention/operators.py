"""The operators, each a class in a file that has its equation, its source, its parameters, its work and its start.

Original attention and what the sources put in its place: Symmetric, Pairwise, Shared, PartialQK, Hadamard, Fixed, and
attention over parameters in place of the feed-forward network. Controls that no source ran: OriginalNarrow, SharedKV,
TiedQKV, HadamardByHead. A user's own: own.py.
"""

from typing import Any

from .base import SelfAttention
from .hadamard import Fixed, Hadamard, HadamardByHead
from .original import Original, OriginalNarrow
from .over_parameters import OverParameters, OverParametersWide
from .own import imported, own_operators
from .pairwise import Pairwise
from .partial_qk import PartialQK
from .shared import Shared, SharedKV, TiedQKV
from .symmetric import Symmetric

SELF_ATTENTION: dict[str, type[SelfAttention]] = {
    kind.name: kind
    for kind in (Original, Symmetric, Pairwise, Shared, PartialQK, Hadamard, Fixed, SharedKV, TiedQKV, HadamardByHead)
}
FEED_FORWARD: dict[str, type[SelfAttention]] = {  # original self-attention with another feed-forward network
    kind.name: kind for kind in (OverParameters, OverParametersWide, OriginalNarrow)
}
OPERATORS = SELF_ATTENTION | FEED_FORWARD


def attention(operator: str, hidden: int, heads: int, **settings: Any) -> SelfAttention:
    """Makes a self-attention layer with its output projection, started as BERT starts.

    Args:
        operator: a name in SELF_ATTENTION, such as `shared`.
        hidden: width h.
        heads: number of heads, a divisor of h.
        settings: what else the class takes: `positions`, `dropout`, `start`, `score_spread`, `output`, `deviation`.

    Raises:
        ValueError: there is no such operator, it replaces the feed-forward network alone, or the heads do not divide
            the width.
    """
    if operator in FEED_FORWARD:
        raise ValueError(
            f"{operator}: attention is `original` there; take that, and the `feed_forward` of OPERATORS[{operator!r}] "
            "for the feed-forward network, which it replaces"
        )
    return operator_class(operator)(hidden, heads, **settings)


def operator_class(variant: dict[str, Any] | str) -> type[SelfAttention]:
    """Finds the class of an operator.

    Args:
        variant: its name; or settings as `configuration` takes them, `operator` and for a user's own `operators_file`
            and `operators_sha256` among them; or those of a model's configuration, which has no file.

    Raises:
        ValueError: there is none of that name, or the user's file is gone, has changed or is not imported.
    """
    settings = {"operator": variant} if isinstance(variant, str) else variant
    name, known = settings["operator"], OPERATORS
    if settings.get("operators_file"):
        known = known | own_operators(settings["operators_file"], settings["operators_sha256"])
    elif settings.get("operators_sha256"):
        known = known | imported(settings["operators_sha256"], name)
    if name not in known:
        raise ValueError(f"unknown operator {name!r}; known: {', '.join(known)}")
    return known[name]
