"""Moments in which nothing of the script's runs: what was looked at then needs no second look.

Inside a module of PyTorch's whose forward is one function, nothing lies between the beginning of the module and that of
the function, between their ends, and between their hooks on one node of the graph. So tensors that are recorded of both
are the same, also for those who write past PyTorch's counter of writes.
"""

import os
import types
from typing import Any, Optional

from torch import nn

from plumb._capture import switch

# Their forward is `return F.name(...)`.
SINGLE = frozenset(kind for kind in (getattr(nn, name, None) for name in (
    "Linear", "Embedding", "LayerNorm", "RMSNorm", "GroupNorm", "Dropout", "GELU", "ReLU", "SiLU", "ELU", "LeakyReLU",
    "Softplus", "Softmax", "Sigmoid", "Tanh")) if kind is not None)
HERE = os.path.dirname(os.path.abspath(nn.modules.__file__))
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_every = nn.modules.module  # where the hooks of all modules are


def _is_torch(function: Any) -> bool:
    return isinstance(function, types.FunctionType) and function.__code__.co_filename.startswith(HERE)


def single(module: nn.Module) -> Optional[types.CodeType]:
    """The code of its forward, when calling it runs that and nothing else."""
    kind = type(module)
    if kind not in SINGLE or "forward" in module.__dict__ or not _is_torch(switch.original_call()):
        return None
    if any(module.__dict__.get(name) or getattr(_every, f"_global{name}", None) for name in HOOKS):
        return None
    forward = switch.original_forward(kind)
    return forward.__code__ if _is_torch(forward) else None
