"""Any value taken apart into what can be compared: tensors, numbers, texts and None.

Nothing is left out: what cannot be taken apart is a leaf itself, and the comparison says what it
can say about it.
"""

import collections.abc
import dataclasses
import itertools
import types
import weakref
from typing import Any, Dict, Iterator, List, Optional, Tuple

import torch

from plumb import tensors

PLAIN = (bool, int, float, complex, str, bytes)
MOST_ITEMS = 10_000  # of an iterator, which may have no end
HEAP_TYPE = 1 << 9   # Py_TPFLAGS_HEAPTYPE: what a class statement makes
WHOLE = (range, slice, type, types.FunctionType, types.BuiltinFunctionType, types.MethodType,
         types.ModuleType, weakref.ref, torch.dtype, torch.device, torch.layout,
         torch.memory_format, torch.Generator)


class Unknown:
    """A leaf that stands for something nobody has looked at."""

    def __init__(self, why: str) -> None:
        self.why = why


class Again:
    """A leaf that stands for a container around it: how many levels up."""

    def __init__(self, levels: int) -> None:
        self.levels = levels

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Again) and self.levels == other.levels


def leaves(value: Any, path: str, iterators: bool = True) -> Iterator[Tuple[str, Any]]:
    """(path, leaf) of all that a value holds, in its order. iterators: whether they are run to the
    end; else they are leaves."""
    return _leaves(value, path, [], iterators)


def _leaves(value: Any, path: str, around: List[int], iterators: bool) -> Iterator[Tuple[str, Any]]:
    if id(value) in around:
        yield path, Again(len(around) - around.index(id(value)))
        return
    if len(around) >= tensors.MAX_DEPTH:
        yield path, Unknown(f"more than {tensors.MAX_DEPTH} levels deep")
        return
    parts = _parts(value, iterators)
    if parts is None:
        yield path, bytes(value) if isinstance(value, (bytearray, memoryview)) else value
        for name, item in _besides(value, []) if isinstance(value, torch.Tensor) else ():
            yield from _leaves(item, f"{path}.{name}", around + [id(value)], iterators)
    elif not parts:
        yield path, ()  # an empty container is not the same as none
    else:
        for name, item in parts:
            yield from _leaves(item, f"{path}.{name}", around + [id(value)], iterators)


def named_leaves(value: Any, path: str, iterators: bool = True) -> Dict[str, Any]:
    """leaves() by name; of two that would have one name the second gets another."""
    found: Dict[str, Any] = {}
    for name, leaf in leaves(value, path, iterators):
        while name in found:
            name += "'"
        found[name] = leaf
    return found


def _parts(value: Any, iterators: bool) -> Optional[List[Tuple[str, Any]]]:
    """What is inside; None for what is not taken apart."""
    if isinstance(value, torch.Tensor) and value.is_nested:
        return list(_numbered(value.unbind()))
    if value is None or tensors.is_tensor(value) or isinstance(value, PLAIN) or \
            isinstance(value, (bytearray, memoryview, Unknown, Again)) or isinstance(value, WHOLE):
        return None
    if isinstance(value, collections.abc.Iterator):
        return _run_iterator(value) if iterators else None
    held = _held(value)
    return _attributes(value) if held is None else held + _besides(value, held)


def _held(value: Any) -> Optional[List[Tuple[str, Any]]]:
    """The items of a container; None for anything else."""
    if isinstance(value, collections.abc.Mapping):
        return [(_key_name(key, i), item) for i, (key, item) in enumerate(value.items())]
    if isinstance(value, collections.abc.Set):
        return list(_numbered(sorted(value, key=_place_in_set)))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return list(zip(value._fields, value))
    if isinstance(value, (collections.abc.Sequence, collections.abc.ValuesView)):
        return list(_numbered(value))
    return None


def _besides(value: Any, held: List[Tuple[str, Any]]) -> List[Tuple[str, Any]]:
    """What a container or a tensor has as attributes and is or holds tensors, but for those that
    it holds as items as well."""
    attributes = getattr(value, "__dict__", None)
    if not attributes:
        return []
    known = {id(tensor) for _, item in held for _, tensor in tensors.flatten(item)}
    return [(name, item) for name, item in list(attributes.items())
            if any(id(tensor) not in known for _, tensor in tensors.flatten(item))]


def _numbered(items: Any) -> Iterator[Tuple[str, Any]]:
    return ((str(i), item) for i, item in enumerate(items))


def _run_iterator(value: Any) -> List[Tuple[str, Any]]:
    found = list(_numbered(itertools.islice(value, MOST_ITEMS + 1)))
    if len(found) > MOST_ITEMS:
        found[MOST_ITEMS:] = [("...", Unknown(f"an iterator with more than {MOST_ITEMS} items"))]
    return found


def _key_name(key: Any, position: int) -> str:
    """One name for one key: the text "1" is not the number 1, and dots are paths here."""
    if isinstance(key, str):
        return key if key and "." not in key and not key[0].isdigit() else repr(key)
    if isinstance(key, (*PLAIN, tuple, frozenset, type(None))):
        return repr(key)
    return f"{type(key).__name__} {position}"  # its text may be an address


def _place_in_set(item: Any) -> Tuple[List[str], List[float]]:
    """Sets have no order, those of tensors not even the same one twice. Tensors are put in the
    order of a sum with weights, which no two of them share but by accident."""
    if tensors.is_tensor(item):
        return [type(item).__name__, str(item.dtype), str(tuple(item.shape))], [_weighted_sum(item)]
    if isinstance(item, (tuple, frozenset)):
        inside = [_place_in_set(part) for part in item]
        return ([type(item).__name__, *(text for texts, _ in inside for text in texts)],
                [number for _, numbers in inside for number in numbers])
    return [type(item).__name__, repr(item)], []


def _weighted_sum(item: Any) -> float:
    try:
        values = torch.as_tensor(item).detach().cpu()
        values = torch.view_as_real(values.resolve_conj()) if values.is_complex() else values
        values = torch.nan_to_num(values.to_dense().double().flatten())
        return float(values @ torch.cos(torch.arange(len(values), dtype=torch.float64) * 1.7 + 0.3))
    except (RuntimeError, TypeError, NotImplementedError):
        return 0.0


def _attributes(value: Any) -> Optional[List[Tuple[str, Any]]]:
    """Of a data class or any other object; None where there are none, or where something made in C
    may hold more than they tell."""
    kind = type(value)
    if any(not base.__flags__ & HEAP_TYPE for base in kind.__mro__[:-1]):
        return None
    names = [field.name for field in dataclasses.fields(value)] \
        if dataclasses.is_dataclass(value) else []
    names += list(getattr(value, "__dict__", ()))
    for base in reversed(kind.__mro__):
        slots = vars(base).get("__slots__", ())
        names += [_mangled(base, name) for name in ([slots] if isinstance(slots, str) else slots)]
    found = {}
    for name in names:
        if name not in ("__dict__", "__weakref__") and hasattr(value, name):
            found[name] = getattr(value, name)
    return list(found.items()) or None


def _mangled(kind: type, name: str) -> str:
    """A private slot goes by another name outside its class."""
    private = name.startswith("__") and not name.endswith("__")
    return f"_{kind.__name__.lstrip('_')}{name}" if private else name
