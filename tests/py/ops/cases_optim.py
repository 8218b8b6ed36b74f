"""Steps of optimisers, against torch.optim's own functions."""

from typing import Any, Iterator, List

import torch
from torch.optim import _functional as optim

from ops.harness import Case, case, fixed, ints, uniform

SHAPES = ((3, 4), (5,), (), (0, 2))


def plain(*shapes: Any, low: float = -2.0, high: float = 2.0) -> List[torch.Tensor]:
    return [uniform(low, high, *shape).detach() for shape in shapes]


def steps(value: float) -> List[torch.Tensor]:
    return [fixed(value) for _ in SHAPES]


def copies(*lists: Any) -> Any:
    return [[t.clone() for t in items] for items in lists]


def functional(function: Any) -> Any:
    def ref(params: Any, grads: Any, avgs: Any, squares: Any, most: Any, counts: Any, **kwargs: Any) -> Any:
        params, avgs, squares, most, counts = copies(params, avgs, squares, most, counts)
        function(params, grads, avgs, squares, most, counts, foreach=False, **kwargs)
        return [*params, *avgs, *squares, *(most if kwargs["amsgrad"] else []), *counts]
    return ref


def fused(function: Any) -> Any:
    """The fused operators count the step beforehand, and return the gradients too."""
    def ref(params: Any, grads: Any, avgs: Any, squares: Any, most: Any, counts: Any, grad_scale: Any = None,
            found_inf: Any = None, **kwargs: Any) -> Any:
        if grad_scale is not None:
            grads = [g / grad_scale for g in grads]
        if found_inf is not None and found_inf.item():
            return [*params, *grads, *avgs, *squares, *(most if kwargs["amsgrad"] else [])]
        params, avgs, squares, most = copies(params, avgs, squares, most)
        function(params, grads, avgs, squares, most, [c - 1 for c in counts], foreach=False, **kwargs)
        return [*params, *grads, *avgs, *squares, *(most if kwargs["amsgrad"] else [])]
    return ref


def adams() -> Iterator[Case]:
    for name, function in (("adam", optim.adam), ("adamw", optim.adamw)):
        for amsgrad in (False, True):
            for maximize in (False, True):
                for decay in (0.0, 0.1):
                    lists = (plain(*SHAPES), plain(*SHAPES), plain(*SHAPES), plain(*SHAPES, low=0.0),
                             plain(*SHAPES, low=0.0) if amsgrad else [])
                    given = dict(lr=0.01, beta1=0.9, beta2=0.99, weight_decay=decay, eps=1e-8, amsgrad=amsgrad,
                                 maximize=maximize)
                    yield case(f"Torch.{name}", *lists, steps(3.0), ref=functional(function), **given)
                    yield case(f"Aten._fused_{name}_", *lists, steps(4.0), ref=fused(function), **given)
        given = dict(lr=0.01, beta1=0.9, beta2=0.99, weight_decay=0.1, eps=1e-8, amsgrad=False, maximize=False)
        lists = (plain(*SHAPES), plain(*SHAPES), plain(*SHAPES), plain(*SHAPES, low=0.0), [])
        yield case(f"Aten._fused_{name}", *lists, steps(1.0), grad_scale=fixed(8.0), found_inf=fixed(0.0),
                   ref=fused(function), **given)
        still = lists[0], [g * 1 for g in lists[1]], *lists[2:]
        yield case(f"Aten._fused_{name}_", *still, steps(1.0), found_inf=fixed(1.0), ref=fused(function), **given)
        for broken in ((lists[0], lists[1][:2], *lists[2:], steps(1.0)),
                       (lists[0], lists[1][::-1], *lists[2:], steps(1.0)),
                       (*lists, [fixed([1.0, 2.0])] * 4)):
            yield case(f"Aten._fused_{name}_", *broken, refused=True, **given)
        yield case(f"Torch.{name}", *lists, steps(1.0), refused=True, **{**given, "amsgrad": True})


def sgd_ref(params: Any, grads: Any, buffers: Any, is_first_step: Any = None, grad_scale: Any = None,
            **kwargs: Any) -> Any:
    if grad_scale is not None:
        grads = [g / grad_scale for g in grads]
    params, = copies(params)
    state = [None if b is None or is_first_step else b.clone() for b in buffers]
    if not buffers:
        state = [None] * len(params)
    optim.sgd(params, grads, state, foreach=False, **kwargs)
    return [*params, *(grads if is_first_step is not None else []), *(state if kwargs["momentum"] else [])]


def sgds() -> Iterator[Case]:
    for momentum, nesterov, dampening in ((0.0, False, 0.0), (0.9, False, 0.3), (0.9, True, 0.0)):
        for maximize in (False, True):
            given = dict(lr=0.1, momentum=momentum, nesterov=nesterov, dampening=dampening, weight_decay=0.05,
                         maximize=maximize)
            yield case("Torch.sgd", plain(*SHAPES), plain(*SHAPES), plain(*SHAPES), ref=sgd_ref, **given)
            yield case("Torch.sgd", plain(*SHAPES), plain(*SHAPES), [None] * len(SHAPES), ref=sgd_ref, **given)
            for first in (False, True):
                yield case("Aten._fused_sgd_", plain(*SHAPES), plain(*SHAPES), plain(*SHAPES), ref=sgd_ref,
                           is_first_step=first, **given)
    yield case("Aten._fused_sgd", plain((2,)), plain((2,)), [], ref=sgd_ref, is_first_step=True, lr=0.1, momentum=0.0,
               nesterov=False, dampening=0.0, weight_decay=0.0, maximize=False, grad_scale=fixed(4.0))
    yield case("Torch.sgd", plain((2,)), plain((3,)), [None], refused=True, lr=0.1, momentum=0.0, nesterov=False,
               dampening=0.0, weight_decay=0.0, maximize=False)


def adagrad(fused: bool) -> Any:
    def ref(params: Any, grads: Any, sums: Any, counts: Any, lr: float, lr_decay: float, weight_decay: float, eps: float,
            maximize: bool, grad_scale: Any = None, found_inf: Any = None) -> Any:
        grads = [g if grad_scale is None else g / grad_scale for g in grads]
        params, sums, counts = copies(params, sums, counts)
        if found_inf is None or not found_inf.item():
            state = [c - 1 for c in counts] if fused else counts
            optim.adagrad(params, grads, sums, state, foreach=False, has_sparse_grad=False, lr=float(lr),
                          lr_decay=lr_decay, weight_decay=weight_decay, eps=eps, maximize=maximize)
        return [*params, *(grads if fused else []), *sums, *([] if fused else counts)]
    return ref


def adagrads() -> Iterator[Case]:
    for maximize in (False, True):
        for decay in (0.0, 0.1):
            given = dict(lr=0.05, lr_decay=decay, weight_decay=decay, eps=1e-8, maximize=maximize)
            lists = (plain(*SHAPES), plain(*SHAPES), plain(*SHAPES, low=0.0))
            yield case("Aten._fused_adagrad_", *lists, steps(3.0), ref=adagrad(True), **given)
            yield case("Torch.adagrad", *lists, steps(3.0), ref=adagrad(False), **given)
    yield case("Aten._fused_adagrad", *lists, steps(3.0), grad_scale=fixed(4.0), found_inf=fixed(0.0),
               ref=adagrad(True), **given)
    still = lists[0], [g * 1 for g in lists[1]], lists[2]
    yield case("Aten._fused_adagrad", *still, steps(3.0), found_inf=fixed(1.0), ref=adagrad(True), **given)
    yield case("Aten._fused_adagrad", lists[0], lists[1][:2], lists[2], steps(3.0), refused=True, **given)
    yield case("Aten._fused_adagrad", lists[0], lists[1][::-1], lists[2], steps(3.0), refused=True, **given)


def npu_adam(b1p: Any, b2p: Any, lr: Any, b1: float, b2: float, eps: float, g: Any, locking: Any, nesterov: Any,
             out: Any = None, var: Any = None, m: Any = None, v: Any = None) -> Any:
    var, m, v = out or (var, m, v)
    m = m + (1 - b1) * (g - m)
    v = v + (1 - b2) * (g * g - v)
    way = b1 * m + (1 - b1) * g if nesterov else m
    return var - lr * (1 - b2p) ** 0.5 / (1 - b1p) * way / (eps + v.sqrt()), m, v


def npu_adamw(b1p: float, b2p: float, lr: float, decay: float, b1: float, b2: float, eps: float, g: Any, most: Any,
              amsgrad: Any, maximize: Any, out: Any = None, var: Any = None, m: Any = None, v: Any = None) -> Any:
    var, m, v = out or (var, m, v)
    g = -g if maximize else g
    m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
    top = torch.maximum(most, v) if amsgrad else v
    denominator = (top / (1 - b2p * b2)).sqrt() + eps
    return var * (1 - lr * decay) - lr * m / (1 - b1p * b1) / denominator, m, v


def npu() -> Iterator[Case]:
    def state() -> Any:
        return [plain((3, 4))[0], plain((3, 4))[0], plain((3, 4), low=0.0)[0]]

    for nesterov in (False, True, None):
        for scalars in ((fixed(0.9), fixed(0.999), fixed(0.01)), (0.5, 0.25, 0.125)):
            yield case("NPU.npu_apply_adam", *scalars, 0.9, 0.999, 1e-8, plain((3, 4))[0], False, nesterov, state(),
                       ref=npu_adam)
    var, m, v = state()
    yield case("NPU.npu_apply_adam", 0.9, 0.99, 0.01, 0.9, 0.99, 1e-8, plain((3, 4))[0], None, None, var=var, m=m, v=v,
               ref=npu_adam)
    yield case("NPU.npu_apply_adam", 0.9, 0.99, 0.01, 0.9, 0.99, 1e-8, plain((3, 4))[0], None, None, out=(var, m, v),
               ref=npu_adam)
    for amsgrad, maximize in ((False, False), (False, True), (True, False), (None, None)):
        yield case("NPU.npu_apply_adam_w", 0.9, 0.999, 0.01, 0.05, 0.9, 0.999, 1e-8, plain((3, 4))[0],
                   plain((3, 4), low=0.0)[0], amsgrad, maximize, state(), ref=npu_adamw)
    yield case("NPU.npu_apply_adam_w", 0.9, 0.999, 0.01, 0.05, 0.9, 0.999, 1e-8, plain((3, 4))[0], None, False, False,
               var=var, m=m, v=v, ref=npu_adamw)
    yield case("NPU.npu_apply_adam_w", 0.9, 0.999, 0.01, 0.05, 0.9, 0.999, 1e-8, plain((3, 4))[0], None, True, False,
               state(), refused=True)
    yield case("NPU.npu_apply_adam", 0.9, 0.99, 0.01, 0.9, 0.99, 1e-8, plain((3, 5))[0], None, None, state(),
               refused=True)
    yield case("NPU.npu_apply_adam", 0.9, 0.99, 0.01, 0.9, 0.99, 1e-8, plain((3, 4))[0], None, None, [var, m],
               refused=True)


def lists() -> Iterator[Case]:
    def unscale(xs: Any, found: Any, scale: Any) -> Any:
        bad = any(not torch.isfinite(x).all() for x in xs)
        return [*[x * scale for x in xs], torch.ones_like(found) if bad else found]

    name = "Aten._amp_foreach_non_finite_check_and_unscale_"
    yield case(name, plain((3, 4), (2,)), fixed([0.0]), fixed([0.25]), ref=unscale)
    yield case(name, [fixed([1.0, float("inf")]), fixed([2.0])], fixed([0.0]), fixed([0.5]), ref=unscale)
    yield case(name, [fixed([1.0, float("nan")])], fixed([0.0]), fixed([1.0]), ref=unscale)
    yield case(name, plain((2,)), fixed([1.0]), fixed([0.5]), ref=unscale)
    yield case(name, [ints(0, 3, 2)], fixed([1.0]), fixed([0.5]), refused=True)


def cases() -> Iterator[Case]:
    for part in (adams, sgds, adagrads, npu, lists):
        yield from part()
