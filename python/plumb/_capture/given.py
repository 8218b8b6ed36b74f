"""What calls are given and give: the tensors inside of values."""

import collections
import contextlib
import inspect
import itertools
import types
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import torch
from torch import Tensor

from plumb._capture import exchange
from plumb.tensors import MAX_DEPTH, children

OBJECT_DEPTH = 3
CONTAINERS = (list, tuple, set, frozenset, collections.deque, type({}.values()), type({}.items()))
OBJECT_ITEMS = 1000  # that are looked at to see whether an object holds tensors
NOT_OBJECTS = (Tensor, torch.nn.Module, str, bytes, bool, int, float, type(None), torch.dtype,
               torch.device, type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType,
               types.MethodType, *exchange.TAKEN)


def tensors_in(value: Any, place: str, found: List[Tuple[str, Tensor]],
               depth: int = MAX_DEPTH) -> None:
    """Appends (place, tensor) of all that a value holds."""
    if isinstance(value, Tensor):
        found.append((place, value))
    elif depth and not isinstance(value, (str, bytes, int, float, type(None))):
        try:
            items = list(children(value))
        except Exception:  # of the script's own; _note_objects tells
            return
        for name, item in items:
            tensors_in(item, f"{place}.{name}", found, depth - 1)


def inside(value: Any) -> Iterator[Any]:
    """What anything holds, as far as one can see without running code of the script's: items of
    Python's own containers, attributes, slots."""
    if isinstance(value, (dict, types.MappingProxyType)):
        yield from value.values()
    elif isinstance(value, CONTAINERS):
        yield from value
    yield from getattr(value, "__dict__", {}).values()
    for base in type(value).__mro__:
        for slot in vars(base).values():
            if isinstance(slot, types.MemberDescriptorType):
                with contextlib.suppress(AttributeError):  # it was never set
                    yield slot.__get__(value)


def hides_tensors(value: Any) -> bool:
    """Whether something that is no known container holds tensors, not too deep inside."""
    level, left = [value], OBJECT_ITEMS
    for _ in range(OBJECT_DEPTH + 1):
        level = [item for one in level for item in itertools.islice(inside(one), left)
                 if isinstance(item, Tensor) or not isinstance(item, NOT_OBJECTS)]
        if any(isinstance(item, Tensor) for item in level):
            return True
        level = level[:left]
        left -= len(level)
    return False


def in_order(module: torch.nn.Module, kwargs: Dict[str, Any]) -> Dict[str, Any]:
    """Named arguments as the module lists them, however the caller did: whoever compares them with
    arguments by position has nothing but their order."""
    try:
        names = {name: i for i, name in enumerate(inspect.signature(module.forward).parameters)}
    except (TypeError, ValueError):
        return kwargs
    return dict(sorted(kwargs.items(), key=lambda item: names.get(item[0], len(names))))


def arguments_in(args: Sequence[Any], kwargs: Dict[str, Any]) -> List[Tuple[str, Tensor]]:
    found: List[Tuple[str, Tensor]] = []
    for i, arg in enumerate(args):
        tensors_in(arg, str(i), found)
    for key, arg in kwargs.items():
        tensors_in(arg, key, found)
    return found


def as_outputs(output: Any) -> Sequence[Any]:
    """A call that returns one thing is like one that returns a tuple of it."""
    plain = isinstance(output, (tuple, list)) and not hasattr(output, "_fields")
    return output if plain else (output,)


def outputs_in(output: Any) -> List[Tuple[str, Tensor]]:
    return arguments_in(as_outputs(output), {})


def version_of(tensor: Tensor) -> int:
    """Counts writes; an inference tensor has no such counter."""
    return -1 if tensor.is_inference() else tensor._version
