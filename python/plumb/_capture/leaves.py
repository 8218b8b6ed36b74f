"""What is written down of one value: the leaves of dump.json.

Statistics come from float64 sums over all elements, with neither rounding to the tensor's type nor
overflow in it; Max and Min are elements. The origin sums in the tensor's own type, so its Mean and
Norm of 16-bit types are coarser.
"""

import dataclasses
import sys
import weakref
import zlib
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

import torch
from torch import Tensor

from plumb import _core
from plumb._capture.wrappers import Opened, opened
from plumb.tensors import children

MAX_DEPTH = 64
CACHED = 1024        # elements from which looking something up is cheaper than counting again
NOTHING = {"Max": None, "Min": None, "Mean": None, "Norm": None}
WITH_SUMS = frozenset((torch.float32, torch.float16, torch.bfloat16))
DTYPES = {dtype: str(dtype) for dtype in vars(torch).values() if isinstance(dtype, torch.dtype)}
EIGHT_BIT = frozenset(dtype for dtype, name in DTYPES.items()
                      if "float8" in name or "float4" in name)


class Numbers(NamedTuple):
    """Of one tensor: statistics, checksum and sketch, as far as they are wanted."""
    statistics: Optional[Dict[str, Any]]
    checksum: Optional[str]
    sketch: Optional[_core.Sketch] = None


def statistics(seen: _core.Tensor, tensor: Tensor, stats: Optional[_core.Stats] = None) -> Dict[str, Any]:
    """stats: of the tensor, when they are known."""
    dtype = tensor.dtype
    if not seen.count or dtype in EIGHT_BIT:
        return NOTHING
    low, high, mean, _, norm = (stats or seen.stats())[:5]
    if dtype is torch.bool:
        return {"Max": bool(high), "Min": bool(low), "Mean": None, "Norm": None}
    if not dtype.is_complex and not tensor.dim():
        return {"Max": high, "Min": high, "Mean": high, "Norm": high}
    if dtype in WITH_SUMS:
        return {"Max": high, "Min": low, "Mean": mean, "Norm": norm}
    return {"Max": high, "Min": low, "Mean": mean if dtype.is_complex else None, "Norm": None}


def sketched(seen: _core.Tensor, tensor: Tensor) -> Numbers:
    sketch = seen.sketch()
    return Numbers(statistics(seen, tensor, sketch.stats), None, sketch)


def numbers_of(mode: str) -> Callable[[_core.Tensor, Tensor], Numbers]:
    """What a summary mode wants of each tensor."""
    if mode == "structure":
        return lambda seen, tensor: Numbers(None, None)
    if mode == "sketch":
        return sketched
    if mode == "md5":
        return lambda seen, tensor: Numbers(statistics(seen, tensor), f"{seen.crc32():08x}")
    if mode == "xor":
        return lambda seen, tensor: Numbers(None, f"0x{seen.xor64():016x}")
    return lambda seen, tensor: Numbers(statistics(seen, tensor), None)


class Cache:
    """An output is the next call's input: its numbers are known as long as that tensor lives and
    nobody wrote into it. Views of the whole of it count as the same. Writing past the version
    counter (x.data, numpy) is caught by a mark, which takes a fifth of the time, unless there was no
    moment for it."""

    def __init__(self, numbers: Callable[[_core.Tensor, Tensor], Numbers], plain: bool) -> None:
        """plain: they are statistics, which are counted in the same walk through memory as what
        tells whether it changed."""
        self.numbers, self.plain = numbers, plain
        self.known: Dict[Tuple[int, torch.dtype, int], Tuple[Any, int, int, Numbers]] = {}
        self.moment = 0  # the next one begins when something of the script's may have run
        self.seen: Dict[Tuple[int, torch.dtype, int], int] = {}  # the moment in which it was looked at

    def clear(self) -> None:
        self.known.clear()
        self.seen.clear()

    def of(self, seen: _core.Tensor, tensor: Tensor) -> Numbers:
        if seen.count < CACHED or tensor.device.type != "cpu" or not tensor.is_contiguous() \
                or tensor.is_inference() or tensor.is_conj() or tensor.is_neg():
            return self.numbers(seen, tensor)
        key = (seen.pointer, tensor.dtype, seen.count)
        version = tensor._version
        entry = self.known.get(key)
        if entry is not None:
            owner = entry[0]()
            if owner is not None and owner.data_ptr() == key[0] and entry[1] == version == owner._version \
                    and (self.seen[key] == self.moment or entry[2] == seen.mark()):
                self.seen[key] = self.moment
                return entry[3]
        if self.plain and tensor.dtype not in EIGHT_BIT:
            stats, mark = seen.stats_and_mark()
            numbers = Numbers(statistics(seen, tensor, stats), None)
        else:
            numbers = self.numbers(seen, tensor)
            mark = numbers.sketch.mark if numbers.sketch is not None else seen.mark()
        owner = weakref.ref(tensor, lambda _: self.forget(key))
        self.known[key] = (owner, version, mark, numbers)
        self.seen[key] = self.moment
        return numbers

    def forget(self, key: Tuple[int, torch.dtype, int]) -> None:
        entry = self.known.get(key)
        if entry is not None and entry[0]() is None:
            del self.known[key], self.seen[key]


def tensor_leaf(tensor: Tensor, numbers: Numbers) -> Dict[str, Any]:
    dtype = DTYPES.get(tensor.dtype) or str(tensor.dtype)
    leaf: Dict[str, Any] = {"type": "torch.Tensor", "dtype": dtype, "shape": list(tensor.shape)}
    if numbers.statistics is not None:
        leaf.update(numbers.statistics)
    leaf["requires_grad"] = tensor.requires_grad
    if numbers.checksum is not None:
        leaf["md5"] = numbers.checksum
    return leaf


def group_leaf(group: Any) -> Dict[str, Any]:
    ranks = group_ranks(group)
    return {"type": "torch.ProcessGroup", "group_ranks": ranks, "group_id": group_id(ranks)}


def group_ranks(group: Any) -> Any:
    """In this process's world; None is all of it."""
    distributed = torch.distributed
    if group is None or group is distributed.distributed_c10d._get_default_group():
        return list(range(distributed.get_world_size()))
    return sorted(distributed.distributed_c10d._pg_group_ranks[group])


def group_id(ranks: Any) -> str:
    return f"{zlib.crc32(str(ranks).encode()):08x}"


class Encoder:
    """Turns arguments and results into leaves. tensor(value, place) makes the leaf of a tensor;
    trouble(place, error) is told what cannot be looked at; without it that raises."""

    def __init__(self, tensor: Callable[[Tensor, str], Any], array: Callable[[Any, str], Any],
                 trouble: Optional[Callable[[str, Exception], None]] = None) -> None:
        self.tensor, self.array, self.trouble = tensor, array, trouble

    def element(self, value: Any, place: str, key: Optional[str] = None,
                depth: int = MAX_DEPTH) -> Any:
        """place: what a file of this tensor is called; key: of a keyword argument. An object of the
        script may do anything when it is looked at; that costs itself alone."""
        try:
            return self._element(value, place, key, depth)
        except Exception as error:
            if self.trouble is None:
                raise
            self.trouble(place, error)
            return None

    def _element(self, value: Any, place: str, key: Optional[str], depth: int) -> Any:
        if value is None or depth == 0:
            return None
        if isinstance(value, Tensor):
            found = opened(value)
            return self.tensor(value, place) if found is None else self.wrapper(value, found, place, depth)
        kind = type(value)
        if kind in (bool, int, float, str):
            return {"type": kind.__name__, "value": value}
        if isinstance(value, torch.Size):
            return {"type": "torch.Size", "value": list(value)}
        if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
            return [self.element(item, f"{place}.{i}", None, depth - 1)
                    for i, item in enumerate(value)]
        if isinstance(value, (dict, tuple)) or \
                (dataclasses.is_dataclass(value) and not isinstance(value, type)):
            return {name: self.element(item, f"{place}.{name}", None, depth - 1)
                    for name, item in children(value)}
        return self.scalar(value, place, key)

    def wrapper(self, value: Tensor, found: Opened, place: str, depth: int) -> Any:
        """Of a single tensor inside, its leaf with more about it; a nested one has no shape of its
        own: a list."""
        if len(found.parts) == 1 and not found.parts[0][0]:
            leaf = self.tensor(found.parts[0][1], place)
            leaf["requires_grad"] = value.requires_grad
            return {**leaf, **found.about}
        if value.is_nested:
            return [self.tensor(part, f"{place}.{name}") for name, part in found.parts]
        return {name: self.element(part, f"{place}.{name}", None, depth - 1) for name, part in found.parts}

    def scalar(self, value: Any, place: str, key: Optional[str]) -> Any:
        if isinstance(value, slice):
            ends = (value.start, value.stop, value.step)
            return {"type": "slice",
                    "value": [end.item() if isinstance(end, Tensor) else end for end in ends]}
        if value is Ellipsis:
            return {"type": "ellipsis", "value": "..."}
        if isinstance(value, torch.dtype):
            # By position it is lost in this form.
            named = key in ("dtype", "output_dtype")
            return {"type": "torch.dtype", "value": str(value)} if named else {}
        if isinstance(value, torch.device):
            return {"type": "torch.device", "value": str(value)} if key == "device" else {}
        if isinstance(value, complex):
            return {"type": "complex", "value": [value.real, value.imag]}
        if isinstance(value, torch.memory_format):
            return {"type": "torch.memory_format", "format": str(value).rpartition(".")[2]}
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.ndarray):
            return self.array(value, place)
        if numpy is not None and isinstance(value, numpy.generic) and value.dtype.kind in "biuf":
            return {"type": value.dtype.name, "value": value.item()}
        for kind in (bool, int, float, str):
            if isinstance(value, kind):  # an enum, a subclass
                return {"type": kind.__name__, "value": kind(value)}
        return self.exchanged(value, place)

    def exchanged(self, value: Any, place: str) -> Any:
        """What torch.distributed takes. Anything else is not kept."""
        distributed = torch.distributed
        if not distributed.is_available():
            return None
        if isinstance(value, distributed.ProcessGroup):
            return group_leaf(value)
        if isinstance(value, distributed.P2POp):
            return {"class_type": "torch.distributed.P2POp",
                    "tensor": self.element(value.tensor, f"{place}.tensor"),
                    "op": getattr(value.op, "__name__", str(value.op)),
                    "peer": value.peer, "tag": value.tag,
                    "group_id": group_id(group_ranks(value.group))}
        if type(value).__name__ in ("ReduceOp", "RedOpType"):
            # PyTorch 1.13 wraps the operation in an object whose text is an address.
            return {"type": "torch.distributed.ReduceOp", "value": str(getattr(value, "op", value))}
        return None
