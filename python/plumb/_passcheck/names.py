"""Which parameter after a transformation is which one before.

Compilers wrap modules (`_orig_mod.fc.weight`) and passes give parameters other names. A name that
both sides have is the same parameter; of the others those are that are one object on both sides,
that have names of the same words, or that are the same numbers.
"""

import re
from typing import Any, Callable, Dict, Hashable, List, Optional, Tuple

import torch

from plumb import tensors

Named = Dict[str, torch.Tensor]


def canonical(name: str) -> str:
    """Without what torch.compile puts around a module."""
    return ".".join(part for part in name.split(".") if part != "_orig_mod")


def named(items: Any) -> Named:
    return {canonical(name): value for name, value in items}


def renamed(before: Named, after: Named) -> Dict[str, str]:
    """{name after: name before} of what has another name. Numbers are looked at last, and equal
    ones belong together in their order."""
    found: Dict[str, str] = {}
    for key in (id, None, _numbers):
        ours = {name: value for name, value in before.items()
                if name not in after and name not in found.values()}
        theirs = {name: value for name, value in after.items()
                  if name not in before and name not in found}
        if not ours or not theirs:
            break
        mine, other = _grouped(ours, key), _grouped(theirs, key)
        for group, names in other.items():
            same = mine.get(group, [])
            if group is not None and len(same) == len(names):
                found.update(zip(names, same))
    return found


def _grouped(values: Named,
             key: Optional[Callable[[torch.Tensor], Hashable]]) -> Dict[Hashable, List[str]]:
    groups: Dict[Hashable, List[str]] = {}
    for name, value in values.items():
        groups.setdefault(_words(name) if key is None else key(value), []).append(name)
    return groups


def _words(name: str) -> Tuple[str, ...]:
    return tuple(word.lower() for word in re.split(r"[^0-9A-Za-z]+", name) if word)


def _numbers(value: torch.Tensor) -> Hashable:
    try:
        return str(value.dtype), tuple(value.shape), tensors.view(value.detach()).crc32()
    except Exception:
        return None  # without numbers it is like no other
