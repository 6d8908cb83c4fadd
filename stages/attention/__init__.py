"""Self-attention with fewer weights: operators, BERT models with an operator, parameter counts and export.

>>> import torch
>>> from fewer_attention import build_attention
>>> layer = build_attention("shared", hidden=768, heads=12)
>>> X = torch.randn(2, 10, 768)  # [batch, tokens, h]
>>> layer(X).shape
torch.Size([2, 10, 768])
>>> seen = torch.tensor([10, 7])[:, None] > torch.arange(10)  # the second sequence has three tokens of padding
>>> layer.compute_weights(X, seen[:, None, None]).shape  # [batch, heads, queries, keys]
torch.Size([2, 12, 10, 10])
>>> [name for name in layer.state_dict() if name.startswith("D")]  # the diagonals of Kowsher et al.
['D_q', 'D_k', 'D_v']
>>> original = build_attention("original", hidden=768, heads=12)
>>> sum(p.numel() for p in original.parameters()) - sum(p.numel() for p in layer.parameters())
1178880

README.md puts a layer into a PyTorch encoder and trains a model; `fewer_attention.bert` has the BERT models, and
`fewer_attention.export` turns the models into stock BERTs. The operators need only torch; the models also need
transformers, and are known to the Auto classes, such as AutoModelForMaskedLM, after this import. The package imports no
other part of the repository, so that the folder can be copied.

Please cite the paper that an operator's `source` names and, for this code, the repository's CITATION.cff.
"""

from contextlib import suppress

from .multihead import AsMultiheadAttention, replace_attention
from .operators import OPERATORS, SELF_ATTENTION, build_attention

# The operators work where transformers is missing, or cannot be imported beside the other packages of a user.
with suppress(ImportError):
    from . import auto  # noqa: F401

__version__ = "0.3.0"

__all__ = ["OPERATORS", "SELF_ATTENTION", "AsMultiheadAttention", "build_attention", "replace_attention"]
