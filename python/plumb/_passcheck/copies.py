"""Copies of modules and inputs, so that a check leaves nothing behind in the originals.

fx passes share Parameters between the module they were given and the one they return: without
copies the gradients of both would be one and the same, and an optimizer would step twice. Copies
lie in memory as the originals do: the same strides and offsets, the same elements shared and
overlapping.
"""

import collections.abc
import copy
from typing import Any, Dict, Iterable, List, Optional, Tuple

import torch

from plumb._passcheck.leaves import leaves

_TABLES = ("_parameters", "_buffers", "_modules")
_ALIGNED = 16  # bytes: the size of the largest element
_BEFORE = 1 << 20  # bytes: so much of a storage that no tensor reaches is kept before the first


def copy_module(module: torch.nn.Module, notes: List[str]) -> torch.nn.Module:
    """A deep copy. What a module holds besides parameters, buffers and modules and cannot be copied
    (locks, files, results of autograd) is shared with the original, and told."""
    held = [*module.parameters(), *module.buffers()]
    memo = _copy_tensors(held)
    with torch.no_grad():  # a scripted module's parameters would be results of their originals
        try:
            twin = copy.deepcopy(module, dict(memo))
        except Exception as error:
            shared = _hold_uncopyable(module, memo)
            if not shared:
                raise
            twin = copy.deepcopy(module, memo)
            notes.append(f"{type(module).__name__}: could not be copied whole ({describe(error)}); "
                         f"shared by the copies: {', '.join(shared)}")
    for ours, theirs in zip(module.parameters(), twin.parameters()):
        if theirs.is_leaf and theirs.requires_grad != ours.requires_grad:
            theirs.requires_grad_(ours.requires_grad)
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


def copy_inputs(value: Any, notes: Optional[List[str]] = None) -> Any:
    """The same values in memory of their own, one run's to change. What cannot be copied is handed
    on as it is, and told; an iterator that cannot raises TypeError, for only one run would see what
    it gives."""
    found = [leaf for _, leaf in leaves(value, "", iterators=False)]
    memo = _copy_tensors(leaf for leaf in found if isinstance(leaf, torch.Tensor))
    _copy_arrays(found, memo)
    return _copy(value, memo, [] if notes is None else notes)


def _copy(value: Any, memo: Dict[int, Any], notes: List[str]) -> Any:
    try:
        return copy.deepcopy(value, dict(memo))
    except Exception as error:
        why = describe(error)
    # Something inside: the rest can be copied all the same.
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_copy(item, memo, notes) for item in value))
    if type(value) in (list, tuple):
        return type(value)(_copy(item, memo, notes) for item in value)
    if type(value) is dict:
        return {key: _copy(item, memo, notes) for key, item in value.items()}
    if isinstance(value, collections.abc.Iterator):
        raise TypeError(f"an input that is a {type(value).__name__} can be used only once ({why})")
    text = f"an input that is a {type(value).__name__} cannot be copied and is shared ({why})"
    if text not in notes:
        notes.append(text)
    return value


# -- Memory ----------------------------------------------------------------------------------------

def _copy_tensors(originals: Iterable[torch.Tensor]) -> Dict[int, Any]:
    """By the id of the original, for deepcopy. Kinds of tensors that are more than memory and
    strides are left to it."""
    memo: Dict[int, Any] = {}
    groups: Dict[Tuple[str, int], List[torch.Tensor]] = {}
    with torch.no_grad():
        for tensor in originals:
            if id(tensor) in memo:
                continue
            if _is_plain(tensor):
                memo[id(tensor)] = None
                groups.setdefault((str(tensor.device), _storage(tensor)), []).append(tensor)
            elif not tensor.is_leaf or tensor.is_nested:  # which deepcopy refuses
                memo[id(tensor)] = tensor.detach().clone().requires_grad_(tensor.requires_grad)
        for group in groups.values():
            _copy_group(group, memo)
    return memo


def _is_plain(tensor: torch.Tensor) -> bool:
    return type(tensor) in (torch.Tensor, torch.nn.Parameter) and \
        tensor.layout is torch.strided and tensor.device.type != "meta" and \
        not tensor.is_quantized and not tensor.is_nested and not tensor.is_neg() and \
        tensor.numel() > 0


def _storage(tensor: torch.Tensor) -> int:
    get = getattr(tensor, "untyped_storage", None) or tensor.storage
    return int(get().data_ptr())


def _span(tensor: torch.Tensor) -> Tuple[int, int]:
    """The bytes of its storage that it reaches."""
    size = tensor.element_size()
    first = tensor.storage_offset() * size
    last = sum((extent - 1) * step for extent, step in zip(tensor.shape, tensor.stride()))
    return first, first + (last + 1) * size


def _copy_group(group: List[torch.Tensor], memo: Dict[int, Any]) -> None:
    """Of one storage the part that these tensors reach is copied once. Zeros stand for what lies
    before it: who forgets the offset of a tensor must not find its first element."""
    spans = [_span(tensor) for tensor in group]
    first = max(0, min(span[0] for span in spans) - _BEFORE) // _ALIGNED * _ALIGNED
    last = max(span[1] for span in spans)
    size = -(-(last - first) // _ALIGNED) * _ALIGNED
    memory = torch.zeros(size, dtype=torch.uint8, device=group[0].device)
    for (low, high), tensor in zip(spans, group):
        plain = tensor.detach().conj() if tensor.is_conj() else tensor.detach()
        count = (high - low) // tensor.element_size()
        flat = plain.as_strided((count,), (1,), tensor.storage_offset())
        memory[low - first:high - first].copy_(flat.view(torch.uint8))
        start = (low - first) // tensor.element_size()
        twin = memory.view(tensor.dtype).as_strided(tensor.shape, tensor.stride(), start).data
        twin = twin.conj() if tensor.is_conj() else twin
        if isinstance(tensor, torch.nn.Parameter):
            memo[id(tensor)] = torch.nn.Parameter(twin, tensor.requires_grad)
        else:
            memo[id(tensor)] = twin.requires_grad_(tensor.requires_grad)


def _copy_arrays(found: List[Any], memo: Dict[int, Any]) -> None:
    """numpy's: views of one array stay views of one."""
    roots: Dict[int, Any] = {}
    for array in found:
        if type(array).__name__ != "ndarray" or array.dtype.hasobject:
            continue
        root = array
        while type(root.base) is type(array):
            root = root.base
        if root is array or not root.flags.c_contiguous:
            continue
        if id(root) not in roots:
            roots[id(root)] = root.copy()
        twin = roots[id(root)]
        memo[id(root)] = twin
        start = array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
        memo[id(array)] = type(array)(array.shape, array.dtype, twin.data, start, array.strides)


def describe(error: BaseException) -> str:
    """One line about an exception: the first of its text, and the next where that one only leads to it."""
    try:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    except Exception:  # its own text may fail
        lines = []
    leads = next((i for i, line in enumerate(lines) if not line.endswith(":")), len(lines) - 1)
    return ": ".join([type(error).__name__, *(line.rstrip(":") for line in lines[:leads]), *lines[leads:leads + 1]])
