"""Counts the calls of PyTorch's kernels of attention, which differ in speed for the same operator."""

import re
from collections import Counter

from torch.utils._python_dispatch import TorchDispatchMode

# PyTorch's names of the forward kernels
KERNEL = r"_scaled_dot_product_(\w+?)_attention(_for_cpu)?"


class AttentionCalls(TorchDispatchMode):
    """A context that counts the calls of each kernel of attention.

    Attributes:
        counts: number of calls by kernel, such as {"flash": 12}.
    """

    def __init__(self):
        super().__init__()
        self.counts = Counter()

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        """Counts an operation if the operation is a kernel of attention, then runs the operation.

        PyTorch calls this method for every operation while the context is active.
        """
        found = re.fullmatch(KERNEL, function.overloadpacket.__name__)
        if found:
            self.counts[found[1]] += 1
        return function(*arguments, **(named or {}))
