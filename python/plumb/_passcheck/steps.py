"""Sums in runs with errors: those inside of operators, which are taken apart, and such as are made term after term.

The backward of a normalisation takes means off its result, so that an error in one of these sums is the same for all
numbers of a channel. Errors drawn for each number do not show that, and whatever adds those numbers up, such as the
gradient of a bias in front of the normalisation, which is zero but for rounding, would seem to be wrong.

Terms that are alike are rounded alike when they are added to one float32 after the other: the errors go in one
direction, and a sum of thousands is off by hundreds of units. Libraries add up in trees, or in float64; compilers do
not always.
"""

import math
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from plumb._passcheck.raised import floats, is_untouched, name_of, terms

if TYPE_CHECKING:
    from plumb._passcheck.raised import Raised

WITH_SUMS = set("""native_batch_norm _native_batch_norm_legit native_batch_norm_backward cudnn_batch_norm_backward
batch_norm_backward native_layer_norm_backward native_group_norm_backward _softmax_backward_data
_log_softmax_backward_data""".split())
MORE_SUMS = set("native_layer_norm native_group_norm _softmax _log_softmax".split())  # whose errors are shared less


def steps_of(func: Any, name: str, plain: bool) -> Optional[Callable[..., Any]]:
    """The operator as a function of smaller ones, where it has sums inside. plain: sums are made term after term."""
    if name not in WITH_SUMS and not (plain and name in MORE_SUMS):
        return None
    from torch._decomp import decomposition_table
    return decomposition_table.get(func)


class Steps(TorchDispatchMode):
    """Around the steps of one operator: each has the errors of float32, in which kernels of narrower types compute
    too. wide: of float64."""

    def __init__(self, raised: "Raised", wide: bool) -> None:
        super().__init__()
        self.raised = raised
        self.dtype = torch.float64 if wide else torch.float32

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (),
                           kwargs: Optional[Dict[str, Any]] = None) -> Any:
        named = kwargs or {}
        name = name_of(func)
        result = func(*args, **named)
        if is_untouched(func, name) or name == "_to_copy" or name.endswith("_"):
            return result
        result = self.raised.with_errors(func, args, named, [self.dtype], terms(name, args, result))
        for tensor in floats(result):
            tensor.copy_(self.raised.errors.stored(tensor, self.dtype))
        return result


# -- Term after term -------------------------------------------------------------------------------

def drifts(name: str, args: Sequence[Any], named: Dict[str, Any]) -> List[Optional[torch.Tensor]]:
    """How far each result of an operator is off when float32 numbers are added one after the other; None: it is no
    such sum."""
    values = list(floats(args))
    if not values or values[0].is_complex() or values[0].dtype != torch.float64:
        return []
    first = values[0]
    if name == "convolution_backward" and first.dim() > 2:  # the gradient of the bias
        return [None, None, _drift(first, [d for d in range(first.dim()) if d != 1])]
    if name not in ("sum", "mean", "var", "var_mean"):
        return []
    given = args[1] if len(args) > 1 and isinstance(args[1], (list, tuple)) else named.get("dim")
    dims = [d % first.dim() for d in ([given] if isinstance(given, int) else given or range(first.dim()))]
    many = max(1, math.prod(first.shape[d] for d in dims))
    if name in ("sum", "mean"):
        return [_drift(first, dims) / (many if name == "mean" else 1)]
    squares = (first - first.mean(dims, keepdim=True)).square()
    return [_drift(squares, dims) / many, _drift(first, dims) / many]


def _drift(value: torch.Tensor, dims: Sequence[int]) -> torch.Tensor:
    """Each term is rounded to a unit of the sum that it is added to."""
    kept = [d for d in range(value.dim()) if d not in dims]
    terms_last = value.permute(*kept, *dims).reshape(*(value.shape[d] for d in kept), -1)
    sums = terms_last.cumsum(-1).abs().clamp(min=torch.finfo(torch.float32).tiny)
    unit = torch.ldexp(torch.ones_like(sums), torch.frexp(sums)[1] - 24)
    return (torch.round(terms_last / unit) * unit - terms_last).sum(-1)
