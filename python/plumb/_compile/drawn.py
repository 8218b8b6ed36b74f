"""Random numbers that do not depend on who draws them.

A pass may turn rand into a generator of the compiler's own, and decompositions turn bernoulli into rand: neither
is wrong. While the mode is on, the n-th draw of a shape gives the same numbers whichever operator asks.
"""

from typing import Any, Callable, Dict, Optional, Tuple

import torch

from plumb._passcheck.higher import Mode, is_higher, run_higher

Shape = Tuple[int, ...]


def without_modes() -> Any:
    """No mode of PyTorch's dispatcher sees what runs inside."""
    from torch.utils._python_dispatch import _disable_current_modes
    return _disable_current_modes()


class Drawn(Mode):
    """Around one run; each starts from the same numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Dict[Tuple[str, Shape], int] = {}

    def draw(self, kind: str, shape: Any, device: Any) -> torch.Tensor:
        """kind: uniform or normal. As float64."""
        shape = tuple(int(extent) for extent in shape)
        number = self.counts.get((kind, shape), 0)
        self.counts[kind, shape] = number + 1
        with without_modes():
            seed = number * 1009 + sum((i + 1) * extent for i, extent in enumerate(shape)) + len(kind)
            generator = torch.Generator().manual_seed(seed)
            make = torch.rand if kind == "uniform" else torch.randn
            return make(shape, dtype=torch.float64, generator=generator).to(device or "cpu")

    def made(self, kind: str, shape: Any, dtype: Optional[torch.dtype], device: Any) -> torch.Tensor:
        found = self.draw(kind, shape, device)
        with without_modes():
            return found.to(dtype or torch.get_default_dtype())

    def kept(self, share: float, shape: Any, dtype: torch.dtype, device: Any) -> torch.Tensor:
        """Ones with the probability share: those that rand > 1 - share would keep."""
        found = self.draw("uniform", shape, device)
        with without_modes():
            return (found > 1 - share).to(dtype)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (),
                           kwargs: Optional[Dict[str, Any]] = None) -> Any:
        named = kwargs or {}
        if is_higher(func):
            return run_higher(self, func, args, named)
        handler = HANDLERS.get(func._schema.name)
        if handler is not None:
            return handler(self, func, args, named)
        return func(*args, **named)


def _sized(kind: str) -> Callable[..., Any]:
    def handle(mode: Drawn, func: Any, args: Any, named: Dict[str, Any]) -> torch.Tensor:
        return mode.made(kind, args[0], named.get("dtype"), named.get("device"))
    return handle


def _like(kind: str) -> Callable[..., Any]:
    def handle(mode: Drawn, func: Any, args: Any, named: Dict[str, Any]) -> torch.Tensor:
        return mode.made(kind, args[0].shape, named.get("dtype") or args[0].dtype, args[0].device)
    return handle


def _inductor_random(mode: Drawn, func: Any, args: Any, named: Dict[str, Any]) -> torch.Tensor:
    size, seed, how = args[:3]
    return mode.made("uniform" if how == "rand" else "normal", size, torch.float32, seed.device)


def _integers(mode: Drawn, low: int, high: int, size: Any, dtype: Any, device: Any) -> torch.Tensor:
    found = mode.draw("uniform", size, device)
    with without_modes():
        return (low + torch.floor(found * (high - low))).to(dtype or torch.int64)


def _randint(mode: Drawn, func: Any, args: Any, named: Dict[str, Any]) -> torch.Tensor:
    low, high, size = args if len(args) == 3 else (0, *args)
    return _integers(mode, low, high, size, named.get("dtype"), named.get("device"))


def _inductor_randint(mode: Drawn, func: Any, args: Any, named: Dict[str, Any]) -> torch.Tensor:
    low, high, size, seed = args[:4]
    return _integers(mode, low, high, size, torch.int64, seed.device)


def _seeds(mode: Drawn, func: Any, args: Any, named: Dict[str, Any]) -> torch.Tensor:
    with without_modes():
        return torch.zeros([args[0]] if len(args) == 2 else [], dtype=torch.int64, device=args[-1])


def _bernoulli(mode: Drawn, func: Any, args: Any, named: Dict[str, Any]) -> Any:
    value = args[0]
    share = args[1] if len(args) > 1 else named.get("p")
    if share is None and func._schema.name == "aten::bernoulli":  # the tensor has the probabilities
        found = mode.draw("uniform", value.shape, value.device)
        return (found > 1 - value).to(value.dtype)
    if isinstance(share, torch.Tensor):
        found = mode.draw("uniform", value.shape, value.device)
        kept = (found > 1 - share).to(value.dtype)
    else:
        kept = mode.kept(0.5 if share is None else share, value.shape, value.dtype, value.device)
    return value.copy_(kept) if func._schema.name == "aten::bernoulli_" else kept


def _native_dropout(mode: Drawn, func: Any, args: Any, named: Dict[str, Any]) -> Any:
    value, p, train = args[0], args[1], args[2] if len(args) > 2 else named.get("train")
    if train is False or p == 0 or p == 1:
        return func(*args, **named)
    mask = mode.kept(1 - p, value.shape, torch.bool, value.device)
    return value * mask * (1 / (1 - p)), mask


def _uniform_(mode: Drawn, func: Any, args: Any, named: Dict[str, Any]) -> Any:
    value = args[0]
    low, high = [*args[1:], *(0.0, 1.0)[len(args) - 1:]][:2]
    return value.copy_(low + (high - low) * mode.draw("uniform", value.shape, value.device))


def _normal_(mode: Drawn, func: Any, args: Any, named: Dict[str, Any]) -> Any:
    value = args[0]
    mean, deviation = [*args[1:], *(0.0, 1.0)[len(args) - 1:]][:2]
    return value.copy_(mean + deviation * mode.draw("normal", value.shape, value.device))


HANDLERS: Dict[str, Callable[..., Any]] = {
    "aten::rand": _sized("uniform"), "aten::randn": _sized("normal"),
    "aten::rand_like": _like("uniform"), "aten::randn_like": _like("normal"),
    "aten::randint": _randint, "aten::bernoulli": _bernoulli, "aten::bernoulli_": _bernoulli,
    "aten::native_dropout": _native_dropout, "aten::uniform_": _uniform_,
    "aten::normal_": _normal_, "prims::inductor_random": _inductor_random,
    "prims::inductor_randint": _inductor_randint, "prims::inductor_seed": _seeds,
    "prims::inductor_seeds": _seeds,
}
