"""Copies of modules and inputs, so that a check leaves nothing behind in the originals.

fx passes share Parameters between the module they were given and the one they return: without
copies the gradients of both would be one and the same, and an optimizer would step twice.
"""

import copy
import io
from typing import Any, Dict, List

import torch

_TABLES = ("_parameters", "_buffers", "_modules")


def copy_module(module: torch.nn.Module, notes: List[str]) -> torch.nn.Module:
    """A deep copy. What a module holds besides parameters, buffers and modules and cannot be copied
    (locks, files, results of autograd) is shared with the original, and told."""
    try:
        return copy.deepcopy(module)
    except Exception as error:
        memo: Dict[int, Any] = {}
        shared = _hold_uncopyable(module, memo)
        if not shared:
            raise
        twin = copy.deepcopy(module, memo)
        notes.append(f"{type(module).__name__}: could not be copied whole ({describe(error)}); "
                     f"shared by the copies: {', '.join(shared)}")
        return twin


def _hold_uncopyable(module: torch.nn.Module, memo: Dict[int, Any]) -> List[str]:
    """Puts into memo what deepcopy would fail at, and names it."""
    held: List[str] = []
    for prefix, part in module.named_modules():
        for name, value in vars(part).items():
            if name in _TABLES:
                continue
            place = f"{prefix}.{name}" if prefix else name
            if isinstance(value, torch.Tensor) and not value.is_leaf:
                memo[id(value)] = value.detach().clone()
                held.append(place)
                continue
            try:
                copy.deepcopy(value)
            except Exception:
                memo[id(value)] = value
                held.append(place)
    return held


def copy_inputs(value: Any) -> Any:
    """The same values in memory of their own, one run's to change: what is one tensor in several
    places stays one. What cannot be copied is handed on as it is."""
    return _copy(value, {})


def _copy(value: Any, memo: Dict[int, Any]) -> Any:
    if id(value) in memo:
        return memo[id(value)]
    if isinstance(value, torch.Tensor):
        twin: Any = _copy_tensor(value)
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        twin = type(value)(*(_copy(item, memo) for item in value))
    elif type(value) in (list, tuple):
        twin = type(value)(_copy(item, memo) for item in value)
    elif type(value) is dict:
        twin = {key: _copy(item, memo) for key, item in value.items()}
    elif isinstance(value, (torch.nn.Module, io.IOBase)):
        twin = value
    else:
        try:
            twin = copy.deepcopy(value)
        except Exception:
            twin = value
    memo[id(value)] = twin
    return twin


def _copy_tensor(tensor: torch.Tensor) -> torch.Tensor:
    twin = tensor.detach().clone()
    return twin.requires_grad_(tensor.requires_grad)


def describe(error: BaseException) -> str:
    """One line about an exception."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
