"""Self-attention with fewer weights: the operators, the BERT models that carry them, their counts and their export.

>>> import torch
>>> from fewer_attention import attention
>>> layer = attention("shared", hidden=768, heads=12)
>>> X = torch.randn(2, 10, 768)  # [batch, tokens, h]
>>> layer(X).shape
torch.Size([2, 10, 768])
>>> seen = torch.tensor([10, 7])[:, None] > torch.arange(10)  # the second sequence has three tokens of padding
>>> layer.weights(X, seen[:, None, None]).shape  # [batch, heads, queries, keys]
torch.Size([2, 12, 10, 10])
>>> [name for name in layer.state_dict() if name.startswith("D")]  # the diagonals of Kowsher et al.
['D_q', 'D_k', 'D_v']
>>> sum(p.numel() for p in attention("original", 768, 12).parameters()) - sum(p.numel() for p in layer.parameters())
1178880

example.py puts a layer into an encoder of PyTorch's and trains it; `fewer_attention.bert` has the BERT models, and
`fewer_attention.export` turns them into stock ones. The operators need torch alone, the models transformers, too.
Nothing here imports another part of the repository, so that the folder can be copied.

Please cite the paper that an operator's `source` names and, where this code matters, the repository's CITATION.cff.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:  # type checkers do not run `__getattr__`; `X as X` marks a name that others may import
    from .multihead import AsMultiheadAttention as AsMultiheadAttention
    from .operators import OPERATORS as OPERATORS
    from .operators import SELF_ATTENTION as SELF_ATTENTION
    from .operators import attention as attention

__all__ = ["OPERATORS", "SELF_ATTENTION", "AsMultiheadAttention", "attention"]


def __getattr__(name: str) -> Any:
    """Imports what `__all__` names at its first use, and not before; AttributeError for any other name."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import multihead, operators

    return getattr(multihead if name == "AsMultiheadAttention" else operators, name)
