"""The softmax family."""

import math
from typing import Any, Iterator

import torch

from ops.harness import Case, case, fixed, ints, randn

NAN, INF = math.nan, math.inf


def safe(x: torch.Tensor, dim: int, dtype: Any = None) -> torch.Tensor:
    blind = (x == -math.inf).all(dim, keepdim=True)
    return torch.softmax(x.masked_fill(blind, 0.0), dim).masked_fill(blind, 0.0)


def safe_ones() -> Iterator[Case]:
    masked = fixed([[1.0, -math.inf, 2.0], [-math.inf] * 3, [-math.inf, 0.5, -math.inf]], grad=True)
    yield case("Aten._safe_softmax", randn(3, 4, 5), 1, ref=safe, bfloat16=True)
    yield case("Aten._safe_softmax", masked, -1, ref=safe, differences=False)
    yield case("Aten._safe_softmax", masked, 0, ref=safe, differences=False)
    yield case("Aten._safe_softmax", fixed([[math.nan, -math.inf], [-math.inf] * 2]), 1, ref=safe)


def cases() -> Iterator[Case]:
    yield from safe_ones()
    for name in ("softmax", "log_softmax", "softmin"):
        for shape, dim in (((5,), 0), ((3, 4), 1), ((3, 4), 0), ((2, 3, 4), 1), ((2, 3, 77), -1), ((2, 20, 3), 1),
                           ((2, 5, 70), 1), ((), 0), ((1,), -1), ((0,), 0), ((3, 0), 1), ((0, 3), 1)):
            yield case(f"Functional.{name}", randn(*shape), dim)
        yield case(f"Functional.{name}", randn(3, 40, scale=6.0), dim=1, bfloat16=True)
        yield case(f"Functional.{name}", randn(4, 3).t(), dim=-1)
        yield case(f"Functional.{name}", randn(3, 4, 2), dim=None)
        yield case(f"Functional.{name}", randn(3, 4), None)
        yield case(f"Functional.{name}", randn(3, 4), 1, 3, torch.float64)
        yield case(f"Functional.{name}", randn(3, 4), 1, _stacklevel=5, dtype=torch.float32)
        yield case(f"Functional.{name}", ints(0, 5, 3, 4), 1, dtype=torch.float32)
        yield case(f"Functional.{name}", ints(0, 5, 3, 4), 1, refused=True)
        yield case(f"Functional.{name}", randn(3, 4), 2, refused=True)
        yield case(f"Functional.{name}", fixed([[-INF, -INF, -INF], [INF, 1, 2], [NAN, 1, 2], [-INF, 1, 2]]), 1)
    for name in ("softmax", "log_softmax"):
        yield case(f"Torch.{name}", randn(3, 4), 1)
        yield case(f"Torch.{name}", randn(3, 4), 1, torch.float64, check_own=False)
        yield case(f"Tensor.{name}", randn(3, 4), dim=0)
        yield case(f"Torch.special.{name}", randn(3, 4), 1)
        yield case(f"Aten._{name}", randn(3, 4), 1, False)
        y = getattr(torch, name)(randn(3, 4).detach(), 1)
        yield case(f"Aten._{name}_backward_data", randn(3, 4).detach(), y, 1, torch.float32, check_own=False,
                   ref=lambda g, out, dim, _, log=name == "log_softmax": (
                       g - out.exp() * g.sum(dim, True) if log else out * (g - (g * out).sum(dim, True))))
        yield case(f"Aten._{name}_backward_data", randn(3, 4), randn(3, 4), 1, torch.float32, check_own=False,
                   ref=lambda g, out, dim, _, log=name == "log_softmax": (
                       g - out.exp() * g.sum(dim, True) if log else out * (g - (g * out).sum(dim, True))))
