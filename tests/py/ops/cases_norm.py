"""Layer, group, instance, batch, RMS and local response normalisation."""

from typing import Any, Iterator

import torch
import torch.nn.functional as F

from ops.harness import Case, case, fixed, ints, randn, uniform


def layer() -> Iterator[Case]:
    for shape, last in (((3, 8), 1), ((2, 3, 5), 1), ((2, 3, 5), 2), ((4,), 1), ((2, 3, 40), 1), ((0, 3), 1)):
        tail = list(shape[-last:])
        yield case("Functional.layer_norm", randn(*shape), tail)
        yield case("Functional.layer_norm", randn(*shape), tail, randn(*tail), randn(*tail), 1e-3, bfloat16=True)
        yield case("Functional.layer_norm", randn(*shape), tuple(tail), weight=randn(*tail))
        yield case("Functional.layer_norm", randn(*shape), tail, bias=randn(*tail), eps=1e-6)
        yield case("Torch.native_layer_norm", randn(*shape), tail, randn(*tail), randn(*tail), 1e-5)
    yield case("Functional.layer_norm", randn(5, 3).t(), [5], randn(5), randn(5))
    yield case("Torch.layer_norm", randn(2, 5), [5], randn(5), None, 1e-5, False)
    yield case("Functional.layer_norm", fixed([[1000.0 + k / 64 for k in range(7)], [2] * 7], grad=True), [7], rtol=1e-8,
               own_rtol=2e-2, differences=False)
    # PyTorch leaves rounding errors where a lone element is its own mean.
    yield case("Functional.layer_norm", randn(3, 1), [1], randn(1), randn(1), ref=lambda x, s, w, b: x * 0 + b + w * 0)
    yield case("Functional.layer_norm", randn(3, 4), [3], refused=True)
    yield case("Functional.layer_norm", randn(3, 4), [2, 3, 4], refused=True)
    yield case("Functional.layer_norm", randn(3, 4), [4], randn(3), refused=True)
    yield case("Functional.layer_norm", ints(0, 5, 3, 4), [4], refused=True)
    for weight in (None, randn(4)):
        for eps in (None, 1e-4):
            yield case("Functional.rms_norm", randn(3, 4), [4], weight, eps, ref=rms_norm)
    yield case("Torch.rms_norm", randn(2, 3, 4), (3, 4), eps=1e-2, ref=rms_norm)


def fused_rms(x: torch.Tensor, shape: Any, weight: Any, eps: Any) -> Any:
    dims = tuple(range(-len(shape), 0))
    rstd = torch.rsqrt((x * x).mean(dims, keepdim=True) + (torch.finfo(torch.float32).eps if eps is None else eps))
    kept = rstd.detach() if x.dtype == torch.float64 else rstd.detach().float()
    return x * rstd if weight is None else x * rstd * weight, kept


def fused_rms_backward(g: Any, x: Any, shape: Any, rstd: Any, weight: Any, mask: Any) -> Any:
    """By rstd, which is what the forward gave or anything else."""
    dims = tuple(range(-len(shape), 0))
    normed, h = x * rstd, g if weight is None else g * weight
    dx = rstd * (h - normed * (h * normed).mean(dims, keepdim=True))
    rows = tuple(range(x.dim() - len(shape)))
    dw = (g * normed).sum(rows) if rows else g * normed
    return dx if mask[0] else None, dw if mask[1] and weight is not None else None


def fused_rms_norms() -> Iterator[Case]:
    x, w = randn(2, 3, 4), randn(3, 4)
    for shape, weight in (([4], None), ([4], randn(4)), ([3, 4], w)):
        for eps in (None, 1e-3):
            yield case("Aten._fused_rms_norm", x, shape, weight, eps, ref=fused_rms, bfloat16=eps is not None)
        plain, scale = x.detach(), None if weight is None else weight.detach()
        rstd = fused_rms(plain, shape, scale, 1e-3)[1]
        for given in (rstd, rstd * 1.5):
            yield case("Aten._fused_rms_norm_backward", randn(2, 3, 4).detach(), plain, shape, given, scale,
                       [True, weight is not None], ref=fused_rms_backward, bfloat16=True)
    yield case("Aten._fused_rms_norm_backward", randn(2, 3, 4).detach(), plain, [3, 4], rstd, scale, [False, True],
               ref=fused_rms_backward)
    yield case("Aten._fused_rms_norm_backward", randn(2, 3, 4).detach(), plain, [4], rstd, scale, [True, True],
               refused=True)
    yield case("Aten._fused_rms_norm", x, [4], randn(3), 1e-5, refused=True)


def rms_norm(x: torch.Tensor, shape: Any, weight: Any = None, eps: Any = None) -> torch.Tensor:
    """PyTorch 2 has it. Without eps: the resolution of the type that the call was recorded in, float32 here."""
    dims = tuple(range(-len(shape), 0))
    y = x * torch.rsqrt((x * x).mean(dims, keepdim=True) + (torch.finfo(torch.float32).eps if eps is None else eps))
    return y if weight is None else y * weight


def group() -> Iterator[Case]:
    for shape, groups in (((2, 4, 5), 2), ((2, 4, 3, 2), 4), ((3, 6), 3), ((2, 4, 5), 1), ((1, 2, 40), 2)):
        channels = shape[1]
        yield case("Functional.group_norm", randn(*shape), groups)
        yield case("Functional.group_norm", randn(*shape), groups, randn(channels), randn(channels), 1e-3, bfloat16=True)
        yield case("Functional.group_norm", randn(*shape), groups, weight=randn(channels))
        if len(shape) > 2:
            places = randn(*shape[2:]).numel()
            yield case("Torch.native_group_norm", randn(*shape), randn(channels), randn(channels), shape[0], channels,
                       places, groups, 1e-5)
            yield case("Functional.instance_norm", randn(*shape))
            yield case("Functional.instance_norm", randn(*shape), weight=randn(channels), bias=randn(channels), eps=1e-3)
            yield case("Functional.instance_norm", randn(*shape), randn(channels).detach(),
                       uniform(0.5, 2, channels).detach(), use_input_stats=False)
            yield case("Functional.instance_norm", randn(*shape), randn(channels).detach(),
                       uniform(0.5, 2, channels).detach(), randn(channels), randn(channels), True, 0.1, 1e-5)
            yield case("Torch.instance_norm", randn(*shape), randn(channels), None, None, None, True, 0.1, 1e-5, False)
    yield case("Functional.group_norm", randn(2, 5, 3), 2, refused=True)
    yield case("Functional.group_norm", randn(2, 4, 3), 0, refused=True)
    yield case("Functional.group_norm", randn(2, 4, 3), 2, randn(3), refused=True)
    yield case("Functional.instance_norm", randn(2, 3, 4), use_input_stats=False, refused=True)
    for size in (1, 2, 3, 5, 9):
        yield case("Functional.local_response_norm", randn(2, 5, 3), size)
    yield case("Functional.local_response_norm", randn(2, 5, 3, 2), 3, 0.5, 0.6, 2.0)
    yield case("Functional.local_response_norm", randn(2, 5), 3, refused=True)


def batch() -> Iterator[Case]:
    for shape in ((4, 3), (4, 3, 5), (2, 3, 4, 2), (40, 20), (2, 17, 3)):
        c = shape[1]
        mean, var = randn(c).detach(), uniform(0.5, 2, c).detach()
        yield case("Functional.batch_norm", randn(*shape), None, None, training=True)
        yield case("Functional.batch_norm", randn(*shape), mean, var, randn(c), randn(c), True, 0.2, 1e-3, bfloat16=True)
        yield case("Functional.batch_norm", randn(*shape), mean, var)
        yield case("Functional.batch_norm", randn(*shape), mean, var, weight=randn(c), bias=randn(c), eps=1e-2)
        yield case("Torch.batch_norm", randn(*shape), randn(c), None, mean, var, False, 0.1, 1e-5, True)
        for train in (True, False):
            yield case("Torch.native_batch_norm", randn(*shape), randn(c), randn(c), mean, var, train, 0.1, 1e-5)
            yield case("Torch._batch_norm_impl_index", randn(*shape), randn(c), randn(c), mean, var, train, 0.1, 1e-5,
                       False, values=False, backward=False)
        yield case("Torch.batch_norm_update_stats", randn(*shape).detach(), mean, var, 0.1)
        yield case("Torch.batch_norm_stats", randn(*shape).detach(), 1e-3, ref=stats)
        yield case("Torch.batch_norm_elemt", randn(*shape).detach(), randn(c).detach(), randn(c).detach(), mean, var, 1e-5,
                   ref=lambda x, w, b, m, s, eps: (x - along(m, x)) * along(s * w, x) + along(b, x))
        yield from batch_gradients(shape, mean, var)
    yield case("Aten._native_batch_norm_legit_functional", randn(4, 3, 2), randn(3), randn(3), randn(3).detach(),
               uniform(0.5, 2, 3).detach(), True, 0.1, 1e-5, ref=functional)
    yield case("Aten.cudnn_batch_norm", randn(4, 3, 2), randn(3), randn(3), None, None, True, 0.1, 1e-5,
               ref=lambda x, w, b, m, v, *rest: (*torch.native_batch_norm(x, w, b, m, v, *rest),
                                                 torch.zeros(0, dtype=torch.uint8)))
    for name, counts in (("batch_norm_gather_stats", 7), ("batch_norm_gather_stats_with_counts", fixed([7, 3, 5]))):
        yield case(f"Torch.{name}", randn(4, 3, 2).detach(), randn(3, 3).detach(), uniform(0.5, 2, 3, 3).detach(), None,
                   None, 0.1, 1e-3, counts, ref=gathered)
    yield case("Functional.batch_norm", randn(4), None, None, training=True, refused=True)
    yield case("Functional.batch_norm", randn(4, 3), None, None, refused=True)
    yield case("Functional.batch_norm", randn(4, 3), randn(2).detach(), randn(3).detach(), refused=True)
    yield case("Functional.batch_norm", randn(1, 3), None, None, training=True, refused=True)


def along(v: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return v.reshape([1, -1] + [1] * (x.dim() - 2))


def others(x: torch.Tensor) -> Any:
    return [d for d in range(x.dim()) if d != 1]


def stats(x: torch.Tensor, eps: float) -> Any:
    return x.mean(others(x)), (x.var(others(x), unbiased=False) + eps).rsqrt()


def functional(x: torch.Tensor, w: Any, b: Any, mean: torch.Tensor, var: torch.Tensor, *rest: Any) -> Any:
    mean, var = mean.clone(), var.clone()
    return (*torch.native_batch_norm(x, w, b, mean, var, *rest), mean, var)


def gathered(x: Any, mean: torch.Tensor, invstd: torch.Tensor, _: Any, __: Any, ___: Any, eps: float, counts: Any) -> Any:
    n = counts.reshape(-1, 1) if isinstance(counts, torch.Tensor) else torch.full((len(mean), 1), counts, dtype=mean.dtype)
    total = (mean * n).sum(0) / n.sum()
    var = ((invstd ** -2 - eps + (mean - total) ** 2) * n).sum(0) / n.sum()
    return total, (var + eps).rsqrt()


def batch_gradients(shape: Any, mean: torch.Tensor, var: torch.Tensor) -> Iterator[Case]:
    c = shape[1]
    x, g, weight = randn(*shape).detach(), randn(*shape).detach(), randn(c).detach()
    for train in (True, False):
        yield case("Torch.native_batch_norm_backward", g, x, weight, mean, var, mean, var, train, 1e-5, [True] * 3,
                   ref=torch.ops.aten.native_batch_norm_backward)
    yield case("Aten.cudnn_batch_norm_backward", x, g, weight, None, None, mean, var, 1e-5, None,
               ref=lambda x_, g_, w, rm, rv, m, s, eps, _: torch.ops.aten.native_batch_norm_backward(
                   g_, x_, w, rm, rv, m, s, True, eps, [True] * 3))
    yield case("Torch.batch_norm_backward_reduce", g, x, mean, var, weight, True, True, True,
               ref=lambda g_, x_, m, s, w, *_: (
                   g_.sum(others(x_)), (g_ * (x_ - along(m, x_))).sum(others(x_)),
                   (g_ * (x_ - along(m, x_))).sum(others(x_)) * s, g_.sum(others(x_))))
    yield case("Torch.batch_norm_backward_elemt", g, x, mean, var, weight, mean, var, ints(5, 9, 2),
               ref=lambda g_, x_, m, s, w, dy, dyx, n: (
                   g_ - along(dy / n.sum(), x_) - (x_ - along(m, x_)) * along(s * s * dyx / n.sum(), x_)
               ) * along(s * w, x_))


def gradients() -> Iterator[Case]:
    for mask in ([True] * 3, ):
        yield case("Aten.native_layer_norm_backward", randn(3, 4).detach(), randn(3, 4).detach(), [4],
                   randn(3, 1).detach(), uniform(0.5, 2, 3, 1).detach(), randn(4).detach(), randn(4).detach(), mask)
        yield case("Aten.native_group_norm_backward", randn(2, 4, 3).detach(), randn(2, 4, 3).detach(),
                   randn(2, 2).detach(), uniform(0.5, 2, 2, 2).detach(), randn(4).detach(), 2, 4, 3, 2, mask)


def no_training() -> Iterator[Case]:
    """PyTorch 1.13 has it under its older name only."""

    def older(x, weight, bias, mean, var, momentum, eps):  # type: ignore[no-untyped-def]
        y = torch.native_batch_norm(x, weight, bias, mean, var, False, momentum, eps)[0]
        return y, x.new_empty(0), x.new_empty(0)

    yield case("Aten._native_batch_norm_legit_no_training", randn(4, 3, 5), randn(3), randn(3), randn(3).detach(),
               uniform(0.5, 2, 3).detach(), 0.1, 1e-5, ref=older)


def cases() -> Iterator[Case]:
    yield from no_training()
    for family in (layer, group, batch, gradients, fused_rms_norms):
        yield from family()
