"""Operators that PyTorch has no float64 kernel for, by others that have one."""

from typing import Any, Callable, Dict, List, Optional, Tuple

import torch


def groups(offsets: torch.Tensor) -> List[Tuple[int, int]]:
    """Where each begins and ends."""
    ends = offsets.tolist()
    return list(zip([0, *ends[:-1]], ends))


def grouped_mm(first: torch.Tensor, second: torch.Tensor, offs: Optional[torch.Tensor] = None,
               bias: Optional[torch.Tensor] = None, out_dtype: Any = None) -> torch.Tensor:
    """Matrix products of which each is given to a part of the rows, of the columns, or of the terms."""
    if offs is None:
        result = torch.bmm(first, second)
    elif first.dim() == 2 and second.dim() == 3:
        result = first.new_zeros(first.shape[0], second.shape[2])
        for matrix, (begin, end) in zip(second, groups(offs)):
            result[begin:end] = first[begin:end] @ matrix
    elif first.dim() == 3:
        result = first.new_zeros(first.shape[1], second.shape[1])
        for matrix, (begin, end) in zip(first, groups(offs)):
            result[:, begin:end] = matrix @ second[:, begin:end]
    else:
        result = torch.stack([first[:, begin:end] @ second[begin:end] for begin, end in groups(offs)])
    return result if bias is None else result + bias


FORMULAS: Dict[str, Callable[..., Any]] = {"_grouped_mm": grouped_mm}


def called(func: Any, name: str, args: Any, named: Dict[str, Any]) -> Any:
    """What the operator gives for arguments in float64."""
    return FORMULAS.get(name, func)(*args, **named)
