"""Faults to plant into a right result, and cheaper arithmetic that is no fault but has a name."""

from typing import Any, Callable, Dict, Iterator, NamedTuple, Optional, Tuple

import torch

from operators import Case, raised, work_type

Tensor = torch.Tensor


class Fault(NamedTuple):
    name: str
    got: Tensor
    word: str            # the verdict it deserves
    pattern: str         # a word that its pattern, or its arithmetic, should name; "" for any


def _tile(x: Tensor) -> Tuple[slice, ...]:
    """A block of the last two dimensions, or of the last."""
    size = [max(1, n // 4) for n in x.shape[-2:]]
    return (Ellipsis, *(slice(n, 2 * n) if total >= 4 else slice(None)
                        for n, total in zip(size, x.shape[-2:])))


def _changed(x: Tensor, change: Callable[[Tensor], None]) -> Tensor:
    out = x.clone()
    change(out)
    return out


def _set(index: Any, value: Any) -> Callable[[Tensor], None]:
    def change(x: Tensor) -> None:
        x[index] = value(x[index]) if callable(value) else value
    return change


def truncated(y: Tensor, dtype: torch.dtype) -> Tensor:
    """Toward zero instead of to the nearest."""
    near = y.to(dtype)
    beyond = near.double().abs() > y.double().abs()
    bits = {torch.float32: torch.int32, torch.float64: torch.int64}.get(dtype, torch.int16)
    whole = near.contiguous().view(bits)
    return torch.where(beyond, whole - 1, whole).view(dtype)


def results(case: Case, right: Tensor, dtype: torch.dtype, seed: int) -> Iterator[Fault]:
    """Faults that can be planted into any result."""
    g = torch.Generator().manual_seed(seed)
    wide = right.double()
    size = wide.abs().mean()

    def of(values: Tensor) -> Tensor:
        return values.to(dtype)

    for factor in (1.01, 1.001, 1.0005):
        yield Fault(f"scale {factor}", of(wide * factor), "fault", "scaled")
    yield Fault("offset", of(wide + size / 32), "fault", "")
    yield Fault("tile zero", _changed(right, _set(_tile(right), 0)), "fault", "zero")
    yield Fault("tile scaled", _changed(right, _set(_tile(right), lambda x: x * 1.25)), "fault", "")
    yield Fault("tail stale", _changed(right, _set((Ellipsis, slice(-3, None)), 0)), "fault", "zero")
    first = (0,) * max(0, right.dim() - 1) if right.dim() > 1 else (slice(0, 4),)
    yield Fault("row", _changed(right, _set(first, lambda x: x * 1.1)), "fault", "row")
    yield Fault("sign", -right, "fault", "sign")
    yield Fault("shift", torch.roll(right, 1, -1), "fault", "")
    if right.dim() >= 2 and right.shape[-1] != right.shape[-2]:
        yield Fault("transpose", right.transpose(-1, -2).reshape(right.shape), "fault", "transposed")
    yield Fault("swapped halves", torch.cat(
        [right[..., right.shape[-1] // 2:], right[..., :right.shape[-1] // 2]], -1), "fault", "")
    other = right.flatten()[torch.randperm(right.numel(), generator=g)].reshape(right.shape)
    yield Fault("stale", other, "fault", "")
    at = int(torch.argmax(right.double().abs().flatten()))
    yield Fault("one element", _changed(right, lambda x: x.view(-1)[at:at + 1].mul_(1.25)), "fault", "")
    yield Fault("NaN", _changed(right, lambda x: x.view(-1)[3:4].fill_(float("nan"))), "fault", "NaN")
    yield Fault("infinity", _changed(right, lambda x: x.view(-1)[3:4].fill_(float("inf"))), "fault",
                "infinity")


def calls(case: Case, dtype: torch.dtype) -> Iterator[Fault]:
    """Faults in how the call is computed."""
    wide = [raised(value, dtype) for value in case.inputs]

    def run(*inputs: Any, **kwargs: Any) -> Tensor:
        return case.run(*inputs, **{**case.kwargs, **kwargs}).to(dtype)

    def dropped(x: Tensor, n: int, dim: int) -> Tensor:
        out = x.clone()
        out.narrow(dim, out.shape[dim] - n, n).zero_()
        return out

    op = case.op
    if op in ("mm", "bmm"):
        yield Fault("last terms", run(dropped(wide[0], 2, -1), wide[1]), "fault", "")
    if op == "linear":
        yield Fault("last terms", run(dropped(wide[0], 2, -1), wide[1], wide[2]), "fault", "")
        yield Fault("no bias", run(wide[0], wide[1], None), "fault", "column")
    if op == "addmm":
        yield Fault("no bias", run(torch.zeros_like(wide[0]), wide[1], wide[2]), "fault", "")
    if op in ("softmax", "log_softmax", "sum", "mean", "var", "logsumexp"):
        yield Fault("last terms", run(dropped(wide[0], 1, -1)), "fault", "")
    if op in ("softmax", "log_softmax", "cumsum"):
        yield Fault("wrong axis", run(wide[0], dim=0), "fault", "")
    if op == "var":
        yield Fault("biased", run(wide[0], unbiased=False), "fault", "scaled")
    if op == "layer_norm":
        yield Fault("eps", run(*wide, eps=1e-2), "fault", "")
        n = wide[0].shape[-1]
        yield Fault("unbiased", ((run(wide[0], [n], None, None).to(wide[0].dtype) *
                                  ((n - 1) / n) ** 0.5) * wide[2] + wide[3]).to(dtype), "fault", "")
        yield Fault("no bias", run(wide[0], wide[1], wide[2], None), "fault", "column")
    if op == "rms_norm":
        yield Fault("eps", run(*wide, eps=1e-2), "fault", "")
    if op == "conv2d":
        yield Fault("no bias", run(wide[0], wide[1], None), "fault", "")
        yield Fault("off by one", run(torch.roll(wide[0], 1, -1), wide[1], wide[2]), "fault", "")
    if op == "scaled_dot_product_attention":
        yield Fault("last key", run(wide[0], wide[1][..., :-1, :], wide[2][..., :-1, :]), "fault", "")
        yield Fault("no scale", run(wide[0] * 1.02, wide[1], wide[2]), "fault", "")


def cheaper(case: Case, dtype: torch.dtype) -> Iterator[Fault]:
    """Named arithmetic: neither right nor a fault."""
    double = [value.double() if isinstance(value, Tensor) and value.is_floating_point() else value
              for value in case.inputs]
    try:
        exact = case.run(*double, **case.kwargs)
    except RuntimeError:
        return
    yield Fault("truncation", truncated(exact, dtype), "cheaper arithmetic", "truncated")
    if dtype in (torch.float32, torch.float64):
        yield Fault("cast to bfloat16", exact.to(torch.bfloat16).to(dtype), "cheaper arithmetic",
                    "bfloat16")
        yield Fault("cast to float16", exact.to(torch.float16).to(dtype), "cheaper arithmetic",
                    "float16")
