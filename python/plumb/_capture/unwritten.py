"""Tensors that nobody has written to: what torch.empty and its kin gave, as long as it is so.

Their numbers are those that the memory happened to hold, so neither they nor what is computed from
them can be compared with anything. A capture marks them in dump.json ("uninitialised": true).

A tensor counts as written once PyTorch's counter of writes has moved, or some of its bytes have
changed: kernels of others, numpy and x.data write without a word."""

from typing import Any, Dict, Iterable, Iterator, Tuple

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

# (where the function is, its name)
TAKES = (("Torch", "empty"), ("Torch", "empty_like"), ("Torch", "empty_strided"),
         ("Torch", "empty_permuted"), ("Tensor", "new_empty"), ("Tensor", "new_empty_strided"))
NAMES = frozenset(name for _, name in TAKES)
# In-place calls after which all of it, or what the script needs of it, is written.
WRITES = frozenset("""
__setitem__ copy_ fill_ zero_ fill_diagonal_ masked_fill_ masked_scatter_ scatter_ index_copy_
index_fill_ index_put_ put_ normal_ uniform_ random_ bernoulli_ exponential_ cauchy_ log_normal_
geometric_ set_ resize_
""".split())
SAMPLE = 64  # bytes that are looked at
MANY = 4096  # tensors, after which those that are gone are forgotten

Storage = Any
# Address of the storage -> it, writes to the tensor, some bytes. A weak reference keeps the address from
# being given to another storage.
_known: Dict[int, Tuple[StorageWeakRef, int, bytes]] = {}


def owners() -> Iterator[Tuple[str, str, Any]]:
    """(prefix, name, owner) of the functions that this PyTorch has."""
    for prefix, name in TAKES:
        owner = torch if prefix == "Torch" else torch.Tensor
        if hasattr(owner, name):
            yield prefix, name, owner


def _storage_of(tensor: Tensor) -> Storage:
    return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()


def _version_of(tensor: Tensor) -> int:
    return -1 if tensor.is_inference() else tensor._version


def _sample(storage: Storage) -> bytes:
    data = torch.tensor([], dtype=torch.uint8, device=storage.device)
    with torch.no_grad():
        data.set_(getattr(storage, "_untyped_storage", getattr(storage, "_storage", storage)))
        step = max(1, data.numel() // SAMPLE)
        return bytes(data[::step].cpu().tolist())


def _add(tensor: Tensor) -> None:
    if len(_known) >= MANY:
        for key in [key for key, (storage, _, _) in _known.items() if storage.expired()]:
            del _known[key]
    storage = _storage_of(tensor)
    _known[storage._cdata] = (StorageWeakRef(storage), _version_of(tensor), _sample(storage))


def note(tensor: Any) -> None:
    """A function gave memory that nobody has written to. Tensors without storage are left alone, and
    so is what cannot be looked at."""
    try:
        if type(tensor) is Tensor and tensor.layout == torch.strided and tensor.numel() \
                and tensor.device.type != "meta":
            _add(tensor)
    except Exception:
        return


def holds(tensor: Tensor) -> bool:
    """Whether nobody has written to it yet."""
    if not _known:
        return False
    try:
        storage = _storage_of(tensor)
        entry = _known.get(storage._cdata)
        if entry is None:
            return False
        if entry[0].expired() or entry[1] != _version_of(tensor) or entry[2] != _sample(storage):
            del _known[storage._cdata]
            return False
        return True
    except Exception:  # it has no storage
        return False


def carry(name: str, outputs: Iterable[Tensor]) -> None:
    """A recorded call had such an input: its results are as good, unless it writes or looks at nothing
    but the shape."""
    if name in WRITES or name.endswith("_like") or name.startswith("new_"):
        return
    for tensor in outputs:
        note(tensor)


def forget() -> None:
    """When nothing is recorded any more."""
    _known.clear()
