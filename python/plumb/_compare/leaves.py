"""What is compared inside nested values: tensors, numbers, lists of numbers, and the rest."""

from array import array
from typing import Any, Iterator, List, NamedTuple, Optional, Tuple

from plumb._core import Error, Tensor
from plumb.tensors import MAX_DEPTH, children, is_tensor, view


class Leaf(NamedTuple):
    name: str
    value: Any

    @property
    def numeric(self) -> bool:
        return is_number(self.value) or is_tensor(self.value) or isinstance(self.value, list)


def refuse(message: str) -> Error:
    error = Error(message)
    error.code = "UNSUPPORTED"
    return error


def is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex))


def _number_shape(value: Any, depth: int = 8) -> Optional[Tuple[int, ...]]:
    """The shape of nested lists of numbers, or None when it is not rectangular or holds more."""
    if is_number(value):
        return ()
    if not isinstance(value, (list, tuple)) or not value or depth == 0:
        return None
    shapes = {_number_shape(item, depth - 1) for item in value}
    inner = shapes.pop()
    return None if shapes or inner is None else (len(value), *inner)


def find(value: Any) -> Iterator[Leaf]:
    """Every leaf with its path; lists that hold nothing but numbers are one leaf."""
    return _find(value, "", MAX_DEPTH)


def _find(value: Any, path: str, depth: int) -> Iterator[Leaf]:
    if is_tensor(value) or is_number(value):
        yield Leaf(path, value)
        return
    if isinstance(value, (list, tuple)) and _number_shape(value) is not None:
        yield Leaf(path, list(value))
        return
    items = list(children(value)) if depth else []
    container = isinstance(value, (dict, list, tuple))
    if not items and (depth or not container):
        yield Leaf(path, () if container else value)  # an empty one is not the same as none
    for name, item in items:
        yield from _find(item, f"{path}.{name}" if path else name, depth - 1)


def _numbers(value: Any) -> Iterator[Any]:
    if is_number(value):
        yield value
        return
    for item in value:
        yield from _numbers(item)


def tensor_of(leaf: Leaf) -> Tensor:
    """The leaf as a view; numbers get memory of their own."""
    if is_tensor(leaf.value):
        return view(leaf.value)
    shape = _number_shape(leaf.value)
    if shape is None:
        raise TypeError(f"{type(leaf.value).__name__} is no tensor")
    return _store(list(_numbers(leaf.value)), shape)


def _store(numbers: List[Any], shape: Tuple[int, ...]) -> Tensor:
    if any(isinstance(number, complex) for number in numbers):
        dtype = "complex128"
        memory = array("d", [part for x in numbers for part in (complex(x).real, complex(x).imag)])
    elif any(isinstance(number, float) for number in numbers):
        dtype, memory = "float64", _reals(numbers)
    elif all(isinstance(number, bool) for number in numbers):
        dtype, memory = "bool", array("b", numbers)
    elif all(-2**63 <= number < 2**63 for number in numbers):
        dtype, memory = "int64", array("q", numbers)
    else:
        dtype, memory = "float64", _reals(numbers)
    return Tensor(memory.buffer_info()[0], dtype, shape, None, False, memory)


def _reals(numbers: List[Any]) -> "array[float]":
    try:
        return array("d", numbers)
    except OverflowError:
        raise refuse("an integer that no type of plumb holds") from None


def spread(number: Tensor, shape: Tuple[int, ...]) -> Tensor:
    """One element seen as a tensor of that shape."""
    return Tensor(number.pointer, number.dtype, shape, [0] * len(shape), False, number)


def shape_text(tensor: Tensor) -> str:
    return str(list(tensor.shape))
