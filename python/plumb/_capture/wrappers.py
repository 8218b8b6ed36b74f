"""Tensors that hold other tensors: what of them lies in memory, and how it lies there.

A DTensor is recorded as the shard of this process, with its placements, mesh and whole shape beside it; a
nested one as the list of its parts; what torch.func batches or tracks as the tensor inside; any other
wrapper (`__tensor_flatten__`) as the tensors that it names. Called with dispatch to subclasses switched
off: nothing here may run an operator on the wrapper itself.
"""

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor

MAX_DEPTH = 16  # of wrappers inside each other
PLAIN = frozenset((Tensor, torch.nn.Parameter))
_functorch: Any = getattr(torch._C, "_functorch", None)
_is_transformed: Callable[[Tensor], bool] = \
    getattr(_functorch, "is_functorch_wrapped_tensor", lambda tensor: False)


class Opened(NamedTuple):
    """What a wrapper holds. Of one tensor, the only part is called ""."""
    parts: List[Tuple[str, Tensor]]
    about: Dict[str, Any]  # beside what is known of every tensor


def is_plain(tensor: Tensor) -> bool:
    return type(tensor) in PLAIN and not _is_transformed(tensor) and not tensor.is_nested


def opened(tensor: Tensor, depth: int = MAX_DEPTH) -> Optional[Opened]:
    """None for a tensor that is what it seems."""
    if is_plain(tensor) or depth == 0:
        return None
    if _is_transformed(tensor):
        return _chained(_transformed(tensor), depth)
    if tensor.is_nested:
        return Opened([(str(i), part) for i, part in enumerate(parts_of(tensor))], {})
    kind = type(tensor)
    if kind.__name__ == "AsyncCollectiveTensor" and hasattr(tensor, "elem"):
        return _chained(Opened([("", _arrived(tensor.elem))], {}), depth)
    if kind.__name__ == "DTensor" and hasattr(tensor, "_local_tensor"):
        return _chained(Opened([("", tensor._local_tensor)], {"dtensor": layout_of(tensor)}), depth)
    flatten = getattr(tensor, "__tensor_flatten__", None)
    if flatten is None:
        return None
    names = flatten()[0]
    return Opened([(name, getattr(tensor, name)) for name in names], {"wrapper": kind.__name__})


def _chained(found: Opened, depth: int) -> Opened:
    """A wrapper of one tensor that is a wrapper itself."""
    inner = opened(found.parts[0][1], depth - 1)
    return found if inner is None else Opened(inner.parts, {**inner.about, **found.about})


def layout_of(tensor: Any) -> Dict[str, Any]:
    """How a DTensor is spread over processes."""
    mesh = tensor.device_mesh
    return {"placements": [str(placement) for placement in tensor.placements],
            "mesh": mesh.mesh.tolist(), "mesh_dim_names": list(mesh.mesh_dim_names or ()),
            "shape": list(tensor.shape)}


def _arrived(tensor: Tensor) -> Tensor:
    """The result of a functional collective, once it is there."""
    return torch.ops._c10d_functional.wait_tensor(tensor)


def _transformed(tensor: Tensor) -> Opened:
    """Of torch.func. What vmap batches is one tensor with the batch in front."""
    about: Dict[str, Any] = {}
    while _is_transformed(tensor):
        dim = _functorch.maybe_get_bdim(tensor) if _functorch.is_batchedtensor(tensor) else -1
        tensor = _functorch.get_unwrapped(tensor)
        if dim >= 0:
            about.setdefault("vmap", []).append(tensor.shape[dim])
            tensor = tensor.movedim(dim, 0)
    return Opened([("", tensor)], about)


def parts_of(nested: Any) -> List[Tensor]:
    """The tensors in a nested one: of the jagged layout, slices of its values."""
    values = getattr(nested, "_values", None)
    if not isinstance(values, Tensor):
        return list(nested.detach().unbind())
    dim = max(getattr(nested, "_ragged_idx", 1) - 1, 0)
    offsets = nested._offsets.tolist()
    lengths = getattr(nested, "_lengths", None)
    sizes = lengths.tolist() if lengths is not None else \
        [end - start for start, end in zip(offsets, offsets[1:])]
    values = values.detach()
    return [values.narrow(dim, start, size) for start, size in zip(offsets, sizes)]


def total(a: Tensor, b: Tensor) -> Tensor:
    """Their sum; of wrappers, that of what they hold."""
    if is_plain(a) and is_plain(b) or not hasattr(a, "__tensor_flatten__"):
        return a + b
    if type(a) is not type(b) or getattr(a, "placements", None) != getattr(b, "placements", None):
        raise ValueError(f"gradients of one tensor that are a {type(a).__name__} and a {type(b).__name__}, or are "
                         "spread in different ways, are not summed")
    names, context = a.__tensor_flatten__()
    inner = {}
    for name in names:
        one, other = getattr(a, name), getattr(b, name)
        inner[name] = total(one, other) if one.is_floating_point() or one.is_complex() else one
    return type(a).__tensor_unflatten__(inner, context, a.shape, a.stride())
