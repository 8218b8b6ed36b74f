"""Pooling and its inverse."""

from typing import Iterator

import torch
import torch.nn.functional as F

from ops.harness import Case, case, fixed, ints, randn, uniform

NAN, INF = float("nan"), float("inf")
SHAPES = {1: (2, 3, 9), 2: (2, 3, 7, 6), 3: (2, 2, 5, 6, 4)}


def largest() -> Iterator[Case]:
    for nd, shape in SHAPES.items():
        name = f"Functional.max_pool{nd}d"
        for kwargs in ({"kernel_size": 2}, {"kernel_size": 3, "stride": 2, "padding": 1},
                       {"kernel_size": 3, "stride": 2, "ceil_mode": True}, {"kernel_size": 2, "dilation": 2},
                       {"kernel_size": 2, "stride": 1, "return_indices": True}):
            yield case(name, randn(*shape), bfloat16=True, **kwargs)
        yield case(name, randn(*shape[1:]), 2, 2, 1)
        yield case(name + "_with_indices", randn(*shape), 2)
        yield case(name, randn(*shape), [2] * nd, stride=[1] * nd)
        yield case(f"Functional.adaptive_max_pool{nd}d", randn(*shape), 3, return_indices=True)
        yield case(f"Functional.adaptive_max_pool{nd}d", randn(*shape[1:]), 2)
        yield case(f"Functional.adaptive_max_pool{nd}d_with_indices", randn(*shape), 3)
        if nd > 1:
            yield case(f"Functional.adaptive_max_pool{nd}d", randn(*shape), [None] + [2] * (nd - 1))
    yield case("Torch.max_pool2d", randn(2, 3, 6, 6), 2)
    yield case("Torch.max_pool1d_with_indices", randn(2, 3, 6), 2)
    yield case("Torch.adaptive_max_pool1d", randn(2, 3, 6), 2)
    yield case("Aten.max_pool2d_with_indices", randn(2, 3, 6, 6), [2, 2], [1, 1])
    yield case("Functional.max_pool2d", fixed([[[1.0, NAN, 3.0], [NAN, 5.0, 6.0], [7.0, 8.0, -INF]]]), 2, 1,
               return_indices=True)
    yield case("Functional.max_pool2d", fixed([[[-INF, -INF], [-INF, -INF]]]), 2, return_indices=True)
    yield case("Functional.max_pool2d", fixed([[[1.0, 1.0], [1.0, 1.0]]]), 2, return_indices=True)
    yield case("Functional.max_pool2d", randn(0, 3, 6, 6), 2)
    yield case("Functional.max_pool2d", randn(1, 6, 6, 3).transpose(1, 3), 2)
    yield case("Functional.max_pool2d", randn(2, 3, 6, 6), 2, padding=2, refused=True)
    yield case("Functional.max_pool2d", randn(2, 3, 6, 6), 7, refused=True)
    yield case("Functional.max_pool2d", randn(2, 3, 6, 6), 2, 0, refused=True)
    yield case("Functional.max_pool2d", randn(2, 6), 2, refused=True)
    yield case("Functional.max_pool1d", randn(1, 1, 1), 2, 1, 1, 3, refused=True)


def mean() -> Iterator[Case]:
    for nd, shape in SHAPES.items():
        name = f"Functional.avg_pool{nd}d"
        for kwargs in ({"kernel_size": 2}, {"kernel_size": 3, "stride": 2, "padding": 1},
                       {"kernel_size": 3, "stride": 2, "padding": 1, "count_include_pad": False},
                       {"kernel_size": 3, "stride": 2, "ceil_mode": True},
                       {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False}):
            yield case(name, randn(*shape), bfloat16=True, **kwargs)
        yield case(name, randn(*shape[1:]), 2, 1)
        yield case(f"Functional.adaptive_avg_pool{nd}d", randn(*shape), 3, bfloat16=True)
        yield case(f"Functional.adaptive_avg_pool{nd}d", randn(*shape[1:]), 1)
        yield case(f"Functional.adaptive_avg_pool{nd}d", randn(*shape), [5] * nd)
        if nd > 1:
            yield case(name, randn(*shape), 2, divisor_override=3)
            yield case(f"Functional.adaptive_avg_pool{nd}d", randn(*shape), [2] * (nd - 1) + [None])
    yield case("Torch._adaptive_avg_pool2d", randn(2, 3, 5, 5), [2, 3])
    yield case("Torch.avg_pool1d", randn(2, 3, 5), [2])
    yield case("Functional.avg_pool1d", randn(1, 1, 200), 150)
    yield case("Functional.adaptive_avg_pool2d", randn(2, 3, 5, 5), (0, 2), backward=False)
    yield case("Functional.avg_pool2d", randn(2, 3, 5, 5), 2, divisor_override=0, refused=True)
    yield case("Functional.adaptive_avg_pool2d", randn(2, 3, 5, 5), -1, refused=True)
    yield case("Functional.adaptive_avg_pool2d", randn(2, 3, 5, 5), (1, 2, 3), refused=True)


def norms() -> Iterator[Case]:
    for norm in (1.0, 2.0, 3):
        yield case("Functional.lp_pool1d", uniform(0.5, 2.0, 2, 3, 9), norm, 3, 2)
        yield case("Functional.lp_pool2d", uniform(0.5, 2.0, 2, 3, 7, 6), norm, 2)
        yield case("Functional.lp_pool2d", uniform(0.5, 2.0, 2, 3, 7, 6), norm, (3, 2), ceil_mode=True)
    yield case("Functional.lp_pool2d", randn(2, 3, 6, 6), 2, 2)


def undone() -> Iterator[Case]:
    for nd, shape in {1: (2, 3, 8), 2: (2, 3, 6, 4), 3: (2, 2, 4, 6, 4)}.items():
        pool = getattr(F, f"max_pool{nd}d")
        values, places = pool(randn(*shape).detach(), 2, 2, return_indices=True)
        yield case(f"Functional.max_unpool{nd}d", values.requires_grad_(True), places, 2, 2)
        yield case(f"Functional.max_unpool{nd}d", values, places, kernel_size=2, output_size=list(shape[2:]))
        yield case(f"Functional.max_unpool{nd}d", values, places, 2, output_size=list(shape))
        yield case(f"Functional.max_unpool{nd}d", values, places + 10**6, 2, refused=True)
    yield case("Aten.max_unpool2d", randn(1, 1, 2, 2), torch.tensor([[[[0, 3], [8, 10]]]]), [4, 4])
    yield case("Functional.max_unpool2d", randn(1, 1, 2, 2), ints(0, 4, 1, 1, 2, 3), 2, refused=True)


def backwards() -> Iterator[Case]:
    x = randn(2, 3, 7, 6).detach()
    y, places = F.max_pool2d(x, 3, 2, 1, return_indices=True)
    yield case("Aten.max_pool2d_with_indices_backward", randn(*y.shape), x, [3, 3], [2, 2], [1, 1], [1, 1], False,
               places)
    yield case("Aten.avg_pool2d_backward", randn(2, 3, 4, 3), x, [3, 3], [2, 2], [1, 1], False, True, None)
    yield case("Aten.avg_pool2d_backward", randn(2, 3, 4, 3), x, [3, 3], [2, 2], [1, 1], False, False, 5)
    yield case("Aten._adaptive_avg_pool2d_backward", randn(2, 3, 4, 2), x)
    y, places = F.adaptive_max_pool2d(x, 3, return_indices=True)
    yield case("Aten.adaptive_max_pool2d_backward", randn(*y.shape), x, places)
    yield case("Aten.adaptive_max_pool2d_backward", randn(*y.shape), x, places + 100, refused=True)
    yield case("Aten.adaptive_max_pool2d_backward", randn(2, 3, 2, 2), x, places, refused=True)
    yield case("Aten.avg_pool2d_backward", randn(2, 3, 5, 3), x, [3, 3], [2, 2], [1, 1], False, True, None,
               refused=True)
    yield case("Aten._adaptive_avg_pool2d_backward", randn(2, 4, 4, 2), x, refused=True)
    x = randn(2, 3, 5, 6, 4).detach()
    y, places = F.max_pool3d(x, 2, return_indices=True)
    yield case("Aten.max_pool3d_with_indices_backward", randn(*y.shape), x, [2] * 3, [2] * 3, [0] * 3, [1] * 3, False,
               places)
    yield case("Aten.avg_pool3d_backward", randn(*y.shape), x, [2] * 3, [2] * 3, [0] * 3, False, True, None)
    yield case("Aten._adaptive_avg_pool3d_backward", randn(2, 3, 2, 3, 4), x)


def fractional() -> Iterator[Case]:
    """The backward by given places; which windows the forward draws is another matter."""
    for nd in (2, 3):
        x = randn(*SHAPES[nd]).detach()
        y, places = getattr(F, f"fractional_max_pool{nd}d")(x, 2, output_size=2, return_indices=True)
        yield case(f"Aten.fractional_max_pool{nd}d_backward", randn(*y.shape), x, [2] * nd, [2] * nd, places)
        yield case(f"Aten.fractional_max_pool{nd}d_backward", randn(*y.shape), x, [2] * nd, [2] * nd, places - 1000,
                   refused=True)


def cases() -> Iterator[Case]:
    yield from largest()
    yield from mean()
    yield from norms()
    yield from undone()
    yield from backwards()
    yield from fractional()
