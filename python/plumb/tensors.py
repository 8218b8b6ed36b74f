"""Tensors of torch and numpy as plumb sees them: addresses with a type and a shape.

Neither torch nor numpy is imported: what they make is known by the name of its class's module, so
that only a program that has one of them pays for it.
"""

import dataclasses
import sys
from typing import Any, Iterator, Optional, Tuple

from plumb._core import Device, DType, Error, Tensor

MAX_DEPTH = 64


def is_tensor(value: Any) -> bool:
    """Whether it is a torch.Tensor, whatever its class, a numpy array or a Tensor of plumb."""
    if isinstance(value, Tensor):
        return True
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return True
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic))


def view(value: Any) -> Tensor:
    """The memory of a tensor, without a copy wherever it lies on the CPU as it is read. The view
    keeps the tensor alive. Raises Error for what has no memory to look at."""
    if isinstance(value, Tensor):
        return value
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _view_torch(torch, value)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        return _view_numpy(numpy, value)
    raise TypeError(f"{type(value).__name__} is no tensor")


def to_core(value: Any) -> Any:
    """An argument or result of an operator as the C side takes it: tensors as views, lists and
    dictionaries of them, types and devices by name; layouts, which change no value, as None."""
    if is_tensor(value):
        return view(value)
    if isinstance(value, (list, tuple)):
        return [to_core(item) for item in value]
    if isinstance(value, dict):
        return {key: to_core(item) for key, item in value.items()}
    torch = sys.modules.get("torch")
    if torch is None:
        return value
    if isinstance(value, torch.dtype):
        return DType(str(value))
    if isinstance(value, torch.device):
        return Device(str(value))
    return None if isinstance(value, (torch.layout, torch.memory_format)) else value


def _refuse(message: str) -> Error:
    error = Error(message)
    error.code = "UNSUPPORTED"
    return error


def _view_torch(torch: Any, value: Any) -> Tensor:
    requires_grad = value.requires_grad
    if value.layout is not torch.strided:
        raise _refuse(f"a tensor of layout {value.layout} has no plain memory; "
                      "use its to_dense() or its values()")
    if value.is_nested:
        raise _refuse("a nested tensor has no single shape; use its unbind()")
    device = value.device.type
    if device == "meta":
        raise _refuse("a tensor on the meta device has no values")
    if value.is_quantized:
        raise _refuse(f"a quantised tensor ({value.dtype}) is not read; use its dequantize()")
    try:
        # On the CPU no operator runs: a program that watches operators would see it.
        plain = value if device == "cpu" else value.detach().cpu()
        if plain.is_conj():
            plain = plain.detach().resolve_conj()
        if plain.is_neg():
            plain = plain.detach().resolve_neg()
        pointer = plain.data_ptr()
        if type(plain) not in (torch.Tensor, torch.nn.Parameter) and hasattr(plain, "untyped_storage") and \
                plain.untyped_storage().data_ptr() == 0:
            pointer = 0  # a wrapper, which has an offset into nothing
    except (RuntimeError, NotImplementedError) as error:
        # Wrappers without storage: fake tensors, functional transforms, tensors of other libraries.
        first = str(error).strip().split("\n", 1)[0]
        raise _refuse(f"no memory to look at in this {type(value).__name__}: {first}") from None
    stride = None if plain.is_contiguous() else plain.stride()
    if pointer == 0 and plain.numel():
        raise _refuse(f"a {type(value).__name__} without memory")
    return Tensor(pointer, str(plain.dtype), plain.shape, stride, requires_grad, plain)


def _view_numpy(numpy: Any, value: Any) -> Tensor:
    array = numpy.asarray(value)
    size = array.dtype.itemsize
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    strides: Optional[Tuple[int, ...]] = None
    if not array.flags.c_contiguous:
        if any(step % size for step in array.strides):
            array = numpy.ascontiguousarray(array)
        else:
            strides = tuple(step // size for step in array.strides)
    pointer = array.__array_interface__["data"][0]
    return Tensor(pointer, array.dtype.name, array.shape, strides, False, array)


def flatten(value: Any, path: str = "") -> Iterator[Tuple[str, Any]]:
    """(path, tensor) of every tensor in nested tuples, lists, dicts, data classes and named tuples.
    Path pieces are joined by dots: "0.hidden.1"; of a single tensor it is `path` as given."""
    return _flatten(value, path, MAX_DEPTH)


def _flatten(value: Any, path: str, depth: int) -> Iterator[Tuple[str, Any]]:
    if is_tensor(value):
        yield path, value
        return
    if depth == 0:
        return  # something that holds itself
    prefix = path + "." if path else ""
    for name, item in children(value):
        yield from _flatten(item, f"{prefix}{name}", depth - 1)


def children(value: Any) -> Iterator[Tuple[str, Any]]:
    """(name, item) of what a container holds, each by a name of its own; nothing for anything
    else."""
    if isinstance(value, dict):
        texts = [str(key) for key in value]
        shared = len(set(texts)) < len(texts)  # 1 and "1"
        for text, (key, item) in zip(texts, value.items()):
            yield repr(key) if shared and texts.count(text) > 1 else text, item
    elif isinstance(value, (tuple, list)):
        names = getattr(value, "_fields", None) or range(len(value))
        for name, item in zip(names, value):
            yield str(name), item
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield field.name, getattr(value, field.name, None)
