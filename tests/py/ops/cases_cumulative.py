"""Running sums, products and extremes, differences, trapezoids."""

import math
from typing import Iterator

import torch

from ops.harness import Case, bools, case, fixed, ints, randn

NAN, INF = math.nan, math.inf


def running() -> Iterator[Case]:
    for name in ("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"):
        for shape, dim in (((5,), 0), ((3, 4), 1), ((3, 4), 0), ((2, 3, 4), 1), ((2, 3, 20), -1), ((2, 30, 3), 1), ((), 0),
                           ((1,), -1), ((0,), 0), ((3, 0), 0), ((3, 0), 1)):
            yield case(f"Torch.{name}", randn(*shape), dim)
        yield case(f"Tensor.{name}", randn(4, 3).t(), dim=0)
        yield case(f"Tensor.{name}", randn(3, 4), 1, bfloat16=name[:4] != "cump")
        yield case(f"Torch.{name}", randn(3), 1, refused=True)
    for name in ("cumsum", "cumprod"):
        yield case(f"Tensor.{name}_", randn(3, 4), 1)
        yield case(f"Torch.{name}", randn(3, 4), 1, dtype=torch.float64)
        yield case(f"Torch.{name}", ints(1, 4, 3, 4), 0, dtype=torch.float32)
        for dtype in (torch.int64, torch.int32, torch.uint8, torch.int8):
            yield case(f"Torch.{name}", ints(0, 100, 6, 3, dtype=dtype), 0)
        yield case(f"Torch.{name}", ints(0, 100, 6, dtype=torch.int64), 0, dtype=torch.int16)
        yield case(f"Torch.{name}", bools(7), 0)
        yield case(f"Torch.{name}", fixed([1, NAN, 2, INF]), 0)
    yield case("Torch.cumsum", randn(50000), 0, differences=False)
    yield case("Torch.cumprod", fixed([[2, 0, 3, 4, 0, 5], [1, 2, 3, 4, 5, 6]], grad=True), 1)
    yield case("Torch.cumprod", fixed([0, INF]), 0)
    for name in ("cummax", "cummin"):
        yield case(f"Torch.{name}", fixed([1, 1, 0, 2, 0, NAN, 2, NAN, 3]), 0)
        yield case(f"Torch.{name}", fixed([1, 1, 0, 0, 2, 2], grad=True), 0, differences=False)
        yield case(f"Torch.{name}", ints(0, 4, 5, 6), 1)
        yield case(f"Torch.{name}", bools(6), 0)
    yield case("Torch.logcumsumexp", randn(3, 9, scale=400.0), 1)
    yield case("Torch.logcumsumexp", fixed([-INF, 1, 2, INF, 2]), 0)
    yield case("Torch.logcumsumexp", fixed([-INF, -INF, 1, 2], grad=True), 0, differences=False)
    yield case("Torch.logcumsumexp", fixed([1, NAN, 2]), 0)
    yield case("Torch.logcumsumexp", ints(0, 5, 3), 0, refused=True)


def differences() -> Iterator[Case]:
    yield case("Torch.diff", randn(5))
    yield case("Torch.diff", randn(3, 5), 2)
    yield case("Torch.diff", randn(3, 5), dim=0)
    yield case("Torch.diff", randn(3, 5), n=7)
    yield case("Torch.diff", randn(3, 5), n=0)
    yield case("Torch.diff", randn(3, 5), 0, 1, randn(3, 2), randn(3, 1))
    yield case("Torch.diff", randn(3, 5), prepend=randn(3, 2), append=randn(3, 1))
    yield case("Torch.diff", ints(0, 9, 6))
    yield case("Torch.diff", ints(0, 200, 6, dtype=torch.uint8))
    yield case("Torch.diff", bools(8))
    yield case("Torch.diff", randn(0))
    yield case("Torch.diff", randn(), refused=True)
    yield case("Torch.diff", randn(3), n=-1, refused=True)
    for name in ("trapz", "trapezoid", "cumulative_trapezoid"):
        yield case(f"Torch.{name}", randn(5))
        yield case(f"Torch.{name}", randn(3, 5), dx=0.5)
        yield case(f"Torch.{name}", randn(3, 5), dim=0)
        yield case(f"Torch.{name}", randn(3, 5), randn(5))
        yield case(f"Torch.{name}", randn(5, 3), randn(5), dim=0)
        yield case(f"Torch.{name}", randn(3, 5), randn(3, 5))
        yield case(f"Torch.{name}", randn(2, 3, 5), randn(3, 5))
        yield case(f"Torch.{name}", randn(1))
        yield case(f"Torch.{name}", randn(3, 5), randn(4), refused=True)
    yield case("Torch.trapezoid", ints(0, 9, 5))


def cases() -> Iterator[Case]:
    yield from running()
    yield from differences()
