"""flex_attention as a call that can be computed without its functions: mask_mod becomes a mask of
bool, score_mod a bias, a softcap or a factor of the scale, if that is what it is."""

import contextlib
from typing import Any, Callable, ContextManager, Dict, List, Optional, Tuple

import torch
from torch import Tensor

from plumb import _core

PROBES = (1.0, -2.5, 7.0)
FAR = 1e9  # where a softcap shows how high it lets scores go
EXACT = 1e-9


def flex_arguments(query: Tensor, key: Tensor, value: Tensor, score_mod: Optional[Callable[..., Any]] = None,
                   block_mask: Any = None, scale: Optional[float] = None, enable_gqa: bool = False,
                   return_lse: bool = False, kernel_options: Any = None, **more: Any) -> Tuple[List[Any], Dict[str, Any]]:
    """Positional and keyword arguments of plumb's operator flex_attention for a call of
    torch.nn.attention.flex_attention.flex_attention: plumb.judge(out, "flex_attention", *flex_arguments(...)).

    Raises plumb.Error for a score_mod that is no sum of a multiple of the score (or of a softcap of
    it) and something that does not depend on the score."""
    sizes = query.shape[0], query.shape[1], query.shape[2], key.shape[2]
    named: Dict[str, Any] = {"enable_gqa": enable_gqa, "return_lse": return_lse}
    mask = None if block_mask is None else _mask(block_mask, sizes, query.device)
    if score_mod is not None:
        factor, bias, softcap = _score(score_mod, sizes, query.device)
        scale = factor * (query.shape[-1] ** -0.5 if scale is None else scale)
        if bias is not None:
            named["bias"] = bias
        if softcap:
            named["softcap"] = softcap
    if scale is not None:
        named["scale"] = float(scale)
    return [query, key, value, None, mask], named


def _places(sizes: Tuple[int, ...], device: Any) -> List[Tensor]:
    return [torch.arange(size, device=device) for size in sizes]


def _mapped(function: Callable[..., Any], scores: bool) -> Callable[..., Any]:
    """Of batch, head, query and key, each an index, to tensors of all of them."""
    for own in ((3,), (2,), (1,), (0,)):
        places = tuple(0 if place in own else None for place in range(4))
        function = torch.vmap(function, in_dims=((0,) if scores else ()) + places)
    return function


def _smaller(x: Tensor) -> Tensor:
    """Dimensions over which nothing changes are 1, from the first on."""
    for dim in (0, 1):
        first = x.narrow(dim, 0, 1)
        if x.shape[dim] > 1 and torch.equal(x, first.expand_as(x)):
            x = first
    return x.contiguous()


def _tables() -> ContextManager[Any]:
    """Lets slopes[h] be an index under vmap, where PyTorch needs to be asked for that, as flex_attention does."""
    try:
        from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
    except ImportError:
        return contextlib.nullcontext()
    mode: ContextManager[Any] = TransformGetItemToIndex()
    return mode


def _mask(block_mask: Any, sizes: Tuple[int, ...], device: Any) -> Tensor:
    function = getattr(block_mask, "mask_mod", block_mask)
    if not callable(function):
        raise _core.Error(f"block_mask has no function of positions: {type(block_mask).__name__}")
    with _tables():
        mask = _mapped(function, False)(*_places(sizes, device))
    return _smaller(mask.to(torch.bool).expand(sizes))


def _score(score_mod: Callable[..., Any], sizes: Tuple[int, ...], device: Any) -> Tuple[float, Optional[Tensor], float]:
    """Factor of the score, bias and softcap (0: none)."""
    function, places = _mapped(score_mod, True), _places(sizes, device)

    def at(score: float) -> Tensor:
        scores = torch.full(sizes, score, dtype=torch.float64, device=device)
        with _tables():
            return function(scores, *places).to(torch.float64).expand(sizes)

    bias = at(0.0)
    seen = torch.isfinite(bias)
    if not (seen | (bias == -float("inf"))).all():
        raise _core.Error("score_mod gives NaN or +inf for a score of 0")
    if not seen.any():
        return 1.0, _smaller(bias), 0.0

    def moved(score: float) -> Tensor:
        return (at(score) - bias)[seen]

    def is_like(wanted: Callable[[float], float]) -> bool:
        return all(bool(((moved(score) - wanted(score)).abs() <= EXACT * (1 + abs(wanted(score)))).all())
                   for score in PROBES)

    kept = _smaller(bias) if bool((bias != 0).any()) else None
    factor = float(moved(1.0)[0])
    if factor != 0 and is_like(lambda score: factor * score):
        return factor, kept, 0.0
    cap = float(moved(FAR)[0])
    if cap > 0 and is_like(lambda score: cap * float(torch.tanh(torch.tensor(score / cap, dtype=torch.float64)))):
        return 1.0, kept, cap
    raise _core.Error("score_mod is no multiple of the score and no softcap of it, with or without a bias: plumb cannot "
                      "write it as a call")
