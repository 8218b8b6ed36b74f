"""Faults to plant into a right result or into a call, and cheaper arithmetic, which is no fault but has a
name."""

import math
from typing import Any, Callable, Iterator, NamedTuple, Tuple

import torch

import orders
from kinds import Kind, kind_of
from operators import Case

Tensor = torch.Tensor


class Fault(NamedTuple):
    name: str
    got: Tensor
    pattern: str         # a word that its pattern, or its arithmetic, should name; "" for any


class WrongCall(NamedTuple):
    name: str
    run: Callable[..., Tensor]  # of the inputs
    pattern: str


# -- In any result ---------------------------------------------------------------------------------


def _tile(x: Tensor) -> Tuple[Any, ...]:
    """A block of the last two dimensions, or of the last."""
    size = [max(1, n // 4) for n in x.shape[-2:]]
    return (Ellipsis, *(slice(n, 2 * n) if total >= 4 else slice(None)
                        for n, total in zip(size, x.shape[-2:])))


def _set(x: Tensor, index: Any, value: Any) -> Tensor:
    out = x.clone()
    out[index] = value(out[index]) if callable(value) else value
    return out


def _at(x: Tensor, place: int, value: Any) -> Tensor:
    out = x.clone()
    flat = out.view(-1)
    flat[place] = value(flat[place]) if callable(value) else value
    return out


def _sizes(x: Tensor) -> Tensor:
    """Magnitudes, 0 for what is no number."""
    return torch.nan_to_num(x.abs().flatten(), 0.0, 0.0, 0.0)


def results(right: Tensor, kind: Kind, seed: int) -> Iterator[Fault]:
    """Faults that can be planted into any result; the pattern should name them."""
    right = right.contiguous()
    for fault in _results(right, right.double(), seed):
        yield fault._replace(got=kind.store(fault.got))


def _results(right: Tensor, wide: Tensor, seed: int) -> Iterator[Fault]:
    for factor in (1.01, 1.001, 1.0005):
        yield Fault(f"scale {factor}", wide * factor, "scaled")
    yield Fault("offset", wide + _sizes(wide).mean() / 32, "")
    yield Fault("tile zero", _set(wide, _tile(right), 0), "zero")
    yield Fault("tile scaled", _set(wide, _tile(right), lambda x: x * 1.25), "")
    yield Fault("tile stale", _set(wide, _tile(right), torch.roll(wide, 1, 0)[_tile(right)]), "")
    yield Fault("tail zero", _set(wide, (Ellipsis, slice(-3, None)), 0), "zero")
    first = (0,) * max(0, right.dim() - 1) if right.dim() > 1 else (slice(0, 4),)
    yield Fault("row", _set(wide, first, lambda x: x * 1.1), "row" if right.dim() > 1 else "scaled")
    yield Fault("sign", -wide, "sign")
    yield from _moved(wide, seed)
    size = _sizes(wide)
    middle = int(size.argsort()[size.numel() // 2])
    yield Fault("one element", _at(wide, int(size.argmax()), lambda x: x * 1.25), "")
    yield Fault("one element of the middle", _at(wide, middle, lambda x: x * 1.25), "")
    yield Fault("NaN", _at(wide, 3, math.nan), "NaN")
    yield Fault("infinity", _at(wide, 3, math.inf), "")


def _moved(x: Tensor, seed: int) -> Iterator[Fault]:
    """Right numbers at wrong places."""
    yield Fault("shift", torch.roll(x, 1, -1), "")
    if x.dim() >= 2 and x.shape[-1] != x.shape[-2]:
        yield Fault("transpose", x.transpose(-1, -2).reshape(x.shape), "transposed")
    half = x.shape[-1] // 2
    yield Fault("swapped halves", torch.cat([x[..., half:], x[..., :half]], -1), "")
    order = torch.randperm(x.numel(), generator=torch.Generator().manual_seed(seed))
    yield Fault("stale", x.flatten()[order].reshape(x.shape), "")


# -- In how a call is computed ---------------------------------------------------------------------


def dropped(x: Tensor, n: int, dim: int) -> Tensor:
    """The last n of a dimension are left out."""
    keep = torch.ones(x.shape[dim], dtype=x.dtype)
    keep[-n:] = 0
    return x * keep.reshape([-1 if d == dim % x.dim() else 1 for d in range(x.dim())])


def calls(case: Case) -> Iterator[WrongCall]:
    """Wrong ways to compute a call, which autograd can go back through."""
    def run(*inputs: Any, **kwargs: Any) -> Tensor:
        return case.run(*inputs, **{**case.kwargs, **kwargs})

    op = case.op
    if op in ("mm", "bmm", "linear"):
        yield WrongCall("last terms", lambda x, *rest: run(dropped(x, 2, -1), *rest), "")
    if op == "linear":
        yield WrongCall("no bias", lambda x, w, c: run(x, w, None), "column")
    if op == "addmm":
        yield WrongCall("last terms", lambda c, x, w: run(c, dropped(x, 2, -1), w), "")
        yield WrongCall("no bias", lambda c, x, w: run(0 * c, x, w), "")
    if op == "conv2d":
        yield WrongCall("no bias", lambda x, w, c: run(x, w, None), "")
        yield WrongCall("off by one", lambda x, w, c: run(torch.roll(x, 1, -1), w, c), "")
        yield WrongCall("last terms", lambda x, w, c: run(dropped(x, 1, 1), w, c), "")
    if op in ("softmax", "log_softmax", "sum", "mean", "var", "logsumexp", "linalg.norm"):
        yield WrongCall("last terms", lambda x: run(dropped(x, 1, -1)), "")
    if op in ("softmax", "log_softmax", "cumsum"):
        yield WrongCall("wrong axis", lambda x: run(x, dim=0), "")
    if op == "cumsum":
        yield WrongCall("off by one", lambda x: run(x) - x, "")
    if op == "avg_pool2d":
        yield WrongCall("off by one", lambda x, size: run(torch.roll(x, 1, -1), size), "")
    if op == "var":
        yield WrongCall("biased", lambda x: run(x, unbiased=False), "scaled")
    if op == "mean":
        yield WrongCall("one too few", lambda x: run(x) * (x.shape[-1] / (x.shape[-1] - 1)), "scaled")
    if op == "gelu":
        other = "none" if case.kwargs.get("approximate") == "tanh" else "tanh"
        yield WrongCall("other formula", lambda x: run(x, approximate=other), "")
    if op.endswith("_norm"):
        yield from _wrong_norms(op, run)
    if op == "scaled_dot_product_attention":
        yield WrongCall("last key", lambda q, k, v: run(q, k[..., :-1, :], v[..., :-1, :]), "")
        yield WrongCall("scale of the scores", lambda q, k, v: run(q * 1.02, k, v), "")
        yield WrongCall("off by one", lambda q, k, v: run(q, k, torch.roll(v, 1, -2)), "")


def _wrong_norms(op: str, run: Callable[..., Tensor]) -> Iterator[WrongCall]:
    yield WrongCall("eps", lambda *inputs: run(*inputs, eps=1e-2), "")
    if op == "layer_norm":
        def unbiased(x: Tensor, shape: Any, weight: Tensor, bias: Tensor) -> Tensor:
            n = x.shape[-1]
            return run(x, shape, None, None) * ((n - 1) / n) ** 0.5 * weight + bias

        def short(x: Tensor, shape: Any, weight: Tensor, bias: Tensor) -> Tensor:
            part = x[..., :-2]
            var = ((part - part.mean(-1, keepdim=True)) ** 2).mean(-1, keepdim=True)
            return (x - part.mean(-1, keepdim=True)) * torch.rsqrt(var + 1e-5) * weight + bias
        yield WrongCall("unbiased", unbiased, "")
        yield WrongCall("last terms", short, "")
        yield WrongCall("no bias", lambda x, shape, w, c: run(x, shape, w, None), "column")
    if op == "group_norm":
        yield WrongCall("no bias", lambda x, groups, w, c: run(x, groups, w, None), "")
        yield WrongCall("wrong groups", lambda x, groups, w, c: run(x, groups * 2, w, c), "")
    if op == "rms_norm":
        def few(x: Tensor, shape: Any, weight: Tensor) -> Tensor:
            mean = (x[..., :-2] ** 2).sum(-1, keepdim=True) / x.shape[-1]
            return x * torch.rsqrt(mean + 1e-6) * weight
        yield WrongCall("last terms", few, "row")


def backward_calls(case: Case, g: Tensor) -> Iterator[Tuple[str, Callable[..., Any]]]:
    """Wrong backward formulas, of the inputs: the sums that kernels forget."""
    if case.op == "softmax":
        yield "no sum", lambda x, dim: (torch.softmax(x, dim) * g,)
    if case.op == "log_softmax":
        yield "no sum", lambda x, dim: (g - torch.softmax(x, dim),)
    if case.op == "layer_norm":
        def bare(x: Tensor, shape: Any, weight: Tensor, bias: Tensor) -> Tuple[Tensor, ...]:
            far = x - x.mean(-1, keepdim=True)
            factor = torch.rsqrt((far * far).mean(-1, keepdim=True) + 1e-5)
            part = g * weight
            return (factor * (part - part.mean(-1, keepdim=True)), (g * far * factor).sum(0),
                    g.sum(0))
        yield "no second mean", bare
    if case.op == "rms_norm":
        yield "no mean", lambda x, shape, w, eps: (
            g * w * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps),
            (g * x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps)).sum(0))


# -- Cheaper arithmetic ----------------------------------------------------------------------------


def cheaper(exact: Tensor, kind: Kind) -> Iterator[Fault]:
    """Named arithmetic in how a result is stored: neither right nor a fault."""
    yield Fault("truncation", kind.toward_zero(exact), "truncated")
    if kind.name == "float64":
        yield Fault("cast to float32", exact.float().double(), "float32")
    if kind.name in ("float32", "float64"):
        for name in ("bfloat16", "float16"):
            yield Fault(f"cast to {name}", kind_of(name).store(exact).to(kind.dtype), name)
    if not kind.eight:
        yield Fault("cast to float8_e4m3fn", kind_of("float8_e4m3fn").store(exact).to(kind.dtype), "")


def _short(x: Tensor, bits: int) -> Tensor:
    """Rounded to so many significant bits."""
    mantissa, exponent = torch.frexp(x)
    return torch.ldexp(torch.round(mantissa * 2 ** bits) / 2 ** bits, exponent)


def cheaper_calls(case: Case, kind: Kind) -> Iterator[WrongCall]:
    """Products of inputs with fewer bits, and sums kept in the type."""
    if case.family != "product" or kind.eight:
        return

    def with_bits(bits: int) -> Callable[..., Tensor]:
        def run(*inputs: Any) -> Tensor:
            return case.run(*(_short(x, bits) for x in inputs), **case.kwargs)
        return run

    if kind.name in ("float32", "float64"):
        yield WrongCall("inputs of 11 bits", with_bits(11), "11 bits")
        yield WrongCall("inputs of 8 bits", with_bits(8), "8 bits")
    elif case.op in ("mm", "bmm"):
        yield WrongCall("sums of the type", lambda a, b: orders.sequential(
            a.to(kind.dtype), b.to(kind.dtype)).to(kind.work), "")
