"""Sorting, choosing, distinct elements, and looking up."""

import math
from typing import Iterator

import torch

from ops.harness import Case, bools, case, fixed, ints, randn, uniform

NAN, INF = math.nan, math.inf


def spread(*shape: int) -> torch.Tensor:
    """Values far enough apart that finite differences do not change their order."""
    x = randn(*shape).detach()
    return (x.flatten().argsort().argsort().reshape(shape) / 64.0).requires_grad_(True)


def sorting() -> Iterator[Case]:
    for shape, dim in (((7,), 0), ((3, 40), 1), ((40, 3), 0), ((2, 20, 3), 1), ((2, 3, 20), -1), ((1,), 0), ((), 0),
                       ((3, 0), 1), ((0, 3), 1), ((5, 1), 1)):
        yield case("Torch.sort", spread(*shape), dim)
        yield case("Tensor.sort", spread(*shape), dim=dim, descending=True)
        yield case("Torch.argsort", spread(*shape), dim)
        yield case("Tensor.argsort", spread(*shape), dim=dim, descending=True)
    yield case("Torch.sort", spread(3, 5), bfloat16=True)
    yield case("Torch.sort", spread(3, 5), stable=True)
    yield case("Torch.sort", ints(0, 4, 3, 50), stable=True, dim=1, descending=True)
    yield case("Torch.sort", ints(0, 4, 3, 50), stable=True, dim=1)
    yield case("Torch.sort", ints(0, 4, 50, 3, dtype=torch.uint8), stable=True, dim=0)
    yield case("Torch.sort", bools(20), stable=True)
    yield case("Torch.sort", spread(5, 4).t(), 1)
    tied = fixed([3, 1, 3, NAN, 2, NAN, -0.0, 0.0, INF, -INF, 1])
    yield case("Torch.sort", tied, stable=True)
    yield case("Torch.sort", tied, stable=True, descending=True)
    yield case("Torch.argsort", tied, dim=-1, descending=True, stable=True)
    yield case("Torch.sort", spread(3000), differences=False)
    yield case("Torch.sort", spread(3), 1, refused=True)
    yield case("Torch.msort", spread(6, 3))


def choosing() -> Iterator[Case]:
    for largest in (True, False):
        for k in (0, 1, 3, 7):
            yield case("Torch.topk", spread(3, 7), k, largest=largest)
            yield case("Tensor.topk", spread(7, 3), k, 0, largest)
        yield case("Torch.topk", spread(2, 100), 5, 1, largest)
        yield case("Torch.topk", spread(2, 100, 2), 17, 1, largest)
    yield case("Torch.topk", spread(3, 7), 3, bfloat16=True)
    yield case("Torch.topk", spread(), 1)
    yield case("Torch.topk", ints(-100, 100, 3).to(torch.int32), 2)
    yield case("Torch.topk", spread(3), 4, refused=True)
    yield case("Torch.topk", spread(3), -1, refused=True)
    for shape, dim in (((7,), 0), ((3, 8), 1), ((9, 3), 0), ((2, 7, 3), 1), ((1,), 0), ((), 0)):
        for name in ("median", "nanmedian", "mode"):
            yield case(f"Torch.{name}", spread(*shape), dim)
            yield case(f"Tensor.{name}", spread(*shape), dim, keepdim=True)
        yield case("Torch.kthvalue", spread(*shape), 1, dim)
        yield case("Torch.kthvalue", spread(*shape), max(1, (shape[dim] if shape else 1) - 1), dim, keepdim=True)
    for name in ("median", "nanmedian"):
        yield case(f"Torch.{name}", spread(3, 5))
        yield case(f"Torch.{name}", fixed([[1, 2, 2, 3]], grad=True), differences=False)
        yield case(f"Torch.{name}", fixed([[1, NAN, 2, 3], [3, 1, 2, 9]]), 1)
        yield case(f"Torch.{name}", fixed([[1, NAN, 2, 3]], grad=True), differences=False)
        yield case(f"Torch.{name}", torch.zeros(0))
        yield case(f"Torch.{name}", ints(-9, 9, 7))
        yield case(f"Torch.{name}", torch.zeros(3, 0), 1, refused=True)
    yield case("Torch.mode", fixed([[1, 3, 3, 1, 2], [5, 4, 4, 9, 9], [1, 2, 3, 4, 5]]))
    yield case("Torch.mode", ints(0, 4, 5, 12))
    yield case("Torch.mode", ints(0, 4, 5, 12), 0)
    yield case("Torch.mode", torch.zeros(3, 0), 1, refused=True)
    yield case("Torch.kthvalue", spread(3), 4, refused=True)
    yield case("Torch.kthvalue", spread(3), 0, refused=True)


def quantiles() -> Iterator[Case]:
    points = fixed([0.0, 0.1, 0.5, 0.77, 1.0])
    for name in ("quantile", "nanquantile"):
        for how in ("linear", "lower", "higher", "midpoint", "nearest"):
            yield case(f"Torch.{name}", spread(3, 8), 0.4, dim=1, interpolation=how)
            yield case(f"Torch.{name}", spread(3, 8), points, dim=0, interpolation=how)
            yield case(f"Torch.{name}", fixed([[1, NAN, 3, 2], [4, 1, 2, 3]]), 0.3, dim=1, interpolation=how)
        yield case(f"Torch.{name}", spread(3, 8), fixed([0.11, 0.52, 0.93], grad=True), dim=1)
        yield case(f"Torch.{name}", spread(3, 8), 0.25)
        yield case(f"Tensor.{name}", spread(3, 8), points, keepdim=True)
        yield case(f"Tensor.{name}", spread(2, 7, 3), points, 1, True)
        yield case(f"Torch.{name}", spread(2, 7, 3), 1.0, 1)
        yield case(f"Torch.{name}", fixed([NAN, NAN]), 0.5)
        yield case(f"Torch.{name}", spread(3), 1.5, refused=True)
        yield case(f"Torch.{name}", spread(0), 0.5, refused=True)
        yield case(f"Torch.{name}", spread(3), 0.5, interpolation="cubic", refused=True)


def distinct() -> Iterator[Case]:
    flags = ({}, {"return_inverse": True}, {"return_counts": True}, {"return_inverse": True, "return_counts": True})
    table = ints(0, 2, 6, 3)
    for kwargs in flags:
        for x in (ints(0, 5, 20), ints(0, 4, 3, 7), fixed([3, 1, 3, 1, 2]), bools(9), torch.zeros(0)):
            yield case("Torch.unique", x, **kwargs)
            yield case("Tensor.unique", x, **kwargs)
            yield case("Torch.unique_consecutive", x, **kwargs)
        for dim in (0, 1, -1):
            yield case("Torch.unique", table, dim=dim, **kwargs)
            yield case("Torch.unique", ints(0, 2, 2, 5, 2), dim=dim, **kwargs)
            yield case("Tensor.unique_consecutive", table, dim=dim, **kwargs)
    yield case("Torch.unique", fixed([NAN, 1, NAN]))
    yield case("Torch.unique", fixed(3.0))
    yield case("Aten._unique2", ints(0, 5, 20), True, True, True)
    yield case("Aten._unique2", ints(0, 5, 20))
    yield case("Aten._unique", ints(0, 5, 20), True, True)
    yield case("Aten.unique_dim", table, 0, True, True, True)
    yield case("Aten.unique_consecutive", table, True, True)


def looking_up() -> Iterator[Case]:
    row = fixed([-1, 0, 0, 1, 2.5])
    for kwargs in ({}, {"right": True}, {"out_int32": True}):
        yield case("Torch.searchsorted", row, uniform(-2, 3, 4, 3).detach(), **kwargs)
        yield case("Torch.searchsorted", row, fixed([-1, 0, 1, 2.5, 9, NAN]), **kwargs)
        yield case("Torch.searchsorted", row, 0.0, **kwargs)
        yield case("Torch.bucketize", fixed([[-1, 0, 1], [2.5, 9, NAN]]), row, **kwargs)
        yield case("Torch.bucketize", 0.5, row, **kwargs)
    yield case("Torch.searchsorted", fixed([[1, 2, 3], [4, 5, 6]]), fixed([[2, 9], [0, 5]]))
    yield case("Torch.searchsorted", ints(0, 9, 8).sort()[0], ints(0, 9, 5), side="right")
    yield case("Torch.searchsorted", fixed([3, 1, 2]), fixed([0, 2, 5]), sorter=fixed([1, 2, 0], torch.int64))
    yield case("Torch.searchsorted", fixed([3, 1, 2]), fixed([0, 2]), sorter=fixed([1, 2, 3], torch.int64), refused=True)
    yield case("Torch.searchsorted", fixed([[1, 2]]), fixed([1, 2]), refused=True)
    for invert in (False, True):
        yield case("Torch.isin", ints(0, 9, 4, 3), ints(0, 9, 5), invert=invert)
        yield case("Torch.isin", fixed([1, NAN, 2]), fixed([NAN, 2, 2]), invert=invert)
        yield case("Torch.isin", ints(0, 9, 4), 3, invert=invert)
        yield case("Torch.isin", 3, ints(0, 9, 4), invert=invert)
    yield case("Torch.isin", ints(0, 9, 4), ints(0, 9, 0))


def cases() -> Iterator[Case]:
    for family in (sorting, choosing, quantiles, distinct, looking_up):
        yield from family()
