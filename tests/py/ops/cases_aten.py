"""Gradients under names of their own, as a trace of PyTorch's dispatcher has them, and names with overloads."""

from typing import Any, Iterator

import torch

from ops.harness import Case, bools, case, fixed, ints, randn, uniform

NONE, MEAN, SUM = 0, 1, 2


def fix(*tensors: torch.Tensor) -> Any:
    """Without gradient: these operators have none."""
    out = [t.detach() for t in tensors]
    return out[0] if len(out) == 1 else out


def losses() -> Iterator[Case]:
    x, t, p = fix(randn(4, 5), randn(4, 5), uniform(0.05, 0.95, 4, 5))
    signs = torch.sign(fix(randn(4, 5)))
    for how in (NONE, MEAN, SUM):
        g = fix(randn(4, 5) if how == NONE else randn())
        yield case("Aten.mse_loss_backward", g, x, t, how, bfloat16=True)
        for beta in (0.5, 1.0, 0.0):
            yield case("Aten.smooth_l1_loss_backward", g, x, t, how, beta)
        for delta in (0.5, 2.0):
            yield case("Aten.huber_loss_backward", g, x, t, how, delta)
        yield case("Aten.binary_cross_entropy_backward", g, p, fix(uniform(0, 1, 4, 5)), None, how)
        yield case("Aten.binary_cross_entropy_backward", g, p, fix(uniform(0, 1, 4, 5)), fix(uniform(0, 2, 5)), how)
        yield case("Aten.soft_margin_loss_backward", g, x, signs, how)
    yield case("Aten.mse_loss_backward", fix(randn(3)), x, t, NONE, refused=True)
    yield case("Aten.mse_loss_backward", fix(randn()), x, t, 7, refused=True)


def classes() -> Iterator[Case]:
    x, picture = fix(randn(4, 5), randn(2, 5, 3, 2))
    target, places = ints(0, 5, 4), ints(0, 5, 2, 3, 2)
    weight = fix(uniform(0.5, 2, 5))
    for how in (NONE, MEAN, SUM):
        for w in (None, weight):
            total = torch.ops.aten.nll_loss_forward(x, target, w, how, 2)[1]
            yield case("Aten.nll_loss_backward", fix(randn(4) if how == NONE else randn()), x, target, w, how, 2, total)
            total = torch.ops.aten.nll_loss2d_forward(picture, places, w, how, -100)[1]
            yield case("Aten.nll_loss2d_backward", fix(randn(2, 3, 2) if how == NONE else randn()), picture, places, w,
                       how, -100, total)
        g = fix(randn(4) if how == NONE else randn())
        for p in (1, 2):
            yield case("Aten.multi_margin_loss_backward", g, x, target, p, 0.7, weight, how)
        labels = torch.tensor([[0, 2, -1, 1, 3], [4, 1, 2, 3, 0], [-1, 0, 0, 0, 0], [3, -1, 2, 2, 2]])
        yield case("Aten.multilabel_margin_loss_forward", randn(4, 5), labels, how)
        named = torch.ops.aten.multilabel_margin_loss_forward(x, labels, how)[1]
        yield case("Aten.multilabel_margin_loss_backward", g, x, labels, how, named)
    yield case("Aten.nll_loss_backward", fix(randn()), x, ints(7, 9, 4), None, MEAN, -100, fixed(4.0), refused=True)


def ctc() -> Iterator[Case]:
    logp = torch.log_softmax(randn(6, 2, 5), 2).detach()
    target, steps, lengths = ints(1, 5, 2, 3), [6, 6], [3, 3]
    loss, alpha = torch.ops.aten._ctc_loss(logp, target, steps, lengths, 0, False)
    yield case("Aten._ctc_loss", logp, target, steps, lengths, 0, False)
    yield case("Aten._ctc_loss", logp, target, torch.tensor(steps), torch.tensor([2, 1]), 0, False,
               ref=lambda *a: [torch.ops.aten._ctc_loss(*a)[0], torch.zeros(2, 6, 5)], values=False)
    # PyTorch's float64 backward takes what its float64 forward gave.
    yield case("Aten._ctc_loss_backward", fix(randn(2)), logp, target, steps, lengths, loss, alpha, 0, False,
               ref=lambda g, x, t, i, n, a, b, k, z: torch.ops.aten._ctc_loss_backward(
                   g, x, t, i, n, *torch.ops.aten._ctc_loss(x, t, i, n, k, z), k, z), rtol=1e-6)


def upsampled() -> Iterator[Case]:
    for name, shape, size in (("nearest1d", (2, 3, 5), [8]), ("nearest2d", (1, 2, 4, 5), [7, 3]),
                              ("nearest3d", (1, 2, 2, 3, 4), [3, 5, 2]), ("_exact1d", (2, 3, 5), [8]),
                              ("_exact2d", (1, 2, 4, 5), [7, 3]), ("_exact3d", (1, 2, 2, 3, 4), [3, 5, 2])):
        full = f"_upsample_nearest{name}" if name[0] == "_" else f"upsample_{name}"
        grad = fix(randn(*shape[:2], *size))
        yield case(f"Aten.{full}", randn(*shape), size)
        yield case(f"Aten.{full}_backward", grad, size, list(shape))
        yield case(f"Aten.{full}_backward", grad, size, list(shape), *[0.9 * b / a for a, b in zip(shape[2:], size)])
    for name, shape, size in (("upsample_linear1d", (2, 3, 5), [8]), ("upsample_bilinear2d", (1, 2, 4, 5), [7, 3]),
                              ("upsample_trilinear3d", (1, 2, 2, 3, 4), [3, 5, 2]),
                              ("upsample_bicubic2d", (1, 2, 4, 5), [7, 3]),
                              ("_upsample_bilinear2d_aa", (1, 2, 9, 5), [4, 7]),
                              ("_upsample_bicubic2d_aa", (1, 2, 9, 11), [4, 3])):
        for align in (False, True):
            yield case(f"Aten.{name}", randn(*shape), size, align)
            yield case(f"Aten.{name}_backward", fix(randn(*shape[:2], *size)), size, list(shape), align)
    for mode in ("bilinear", "bicubic"):
        for size in ((4, 3), (12, 9), (1, 1), (9, 8)):
            yield case("Functional.interpolate", randn(2, 3, 9, 8), size, mode=mode, antialias=True)
        yield case("Functional.interpolate", randn(2, 3, 9, 8), scale_factor=0.4, mode=mode, antialias=True)
        yield case("Functional.interpolate", randn(1, 1, 9, 8), scale_factor=0.4, mode=mode, antialias=True,
                   recompute_scale_factor=True)
    yield case("Functional.interpolate", randn(2, 3, 9), 4, mode="linear", antialias=True, refused=True)
    yield case("Aten.upsample_bilinear2d_backward", fix(randn(1, 2, 3, 3)), [4, 4], [1, 2, 2, 2], False, refused=True)


def bag_rows(grad: Any, index: Any, bag: Any, sizes: Any, most: Any, rows: int, by_count: bool, mode: int,
             scale: Any = None, padding: int = -1) -> Any:
    """PyTorch on a CPU divides by the number of times that another row comes."""
    out = torch.zeros(rows, grad.shape[1], dtype=grad.dtype)
    count = torch.bincount(index, minlength=rows)
    for k, row in enumerate(index.tolist()):
        if row != padding:
            part = grad[bag[k]] * (1 if scale is None else scale[k])
            part = part / count[row] if by_count else part
            out[row] += part / sizes[bag[k]] if mode == 1 else part
    return out


def bags() -> Iterator[Case]:
    index, offsets = ints(0, 6, 9), torch.tensor([0, 4, 4, 7])
    weight, full = fix(randn(6, 3)), torch.tensor([0, 0, 0, 0, 2, 2, 2, 3, 3])
    for mode in (0, 1, 2):
        for padding in (-1, 2):
            _, bag, sizes, most = torch.ops.aten._embedding_bag(weight, index, offsets, False, mode, False, None, False,
                                                               padding)
            yield case("Aten._embedding_bag_dense_backward", fix(randn(4, 3)), index, full, sizes, most, 6, False, mode,
                       None, padding)
            yield case("Aten._embedding_bag_backward", fix(randn(4, 3)), index, offsets, bag, sizes, most, 6, False,
                       mode, False, None, padding)
            if mode < 2:
                yield case("Aten._embedding_bag_dense_backward", fix(randn(4, 3)), index, full,
                           torch.tensor([4, 0, 3, 2]), most, 6, True, mode, None, padding, ref=bag_rows)
    yield case("Aten._embedding_bag_dense_backward", fix(randn(4, 3)), index, full, sizes, most, 6, False, 0,
               fix(randn(9)))
    for padding in (-1, 2):
        yield case("Aten._embedding_bag_per_sample_weights_backward", fix(randn(4, 3)), weight, index, offsets, full, 0,
                   padding)
    yield case("Aten._embedding_bag_per_sample_weights_backward", fix(randn(4, 3)), weight, index, offsets, full[:0], 0)
    yield case("Aten._embedding_bag_per_sample_weights_backward", fix(randn(4, 2)), weight, index, offsets, full, 0,
               refused=True)
    yield case("Aten._embedding_bag_per_sample_weights_backward", fix(randn(4, 3)), weight, index, offsets, full, 1,
               refused=True)
    for grad, bag in ((fix(randn(2, 3)), full), (fix(randn(4, 3)), full[:4]), (fix(randn(4)), full)):
        yield case("Aten._embedding_bag_dense_backward", grad, index, bag, sizes, most, 6, False, 0, None, refused=True)
    yield case("Aten._embedding_bag_dense_backward", fix(randn(4, 3)), index, full, sizes, most + 6, 6, False, 2, None,
               refused=True)


def products() -> Iterator[Case]:
    yield case("Aten._trilinear", randn(4, 5), randn(7, 5, 6), randn(4, 6), [1, 3], [0], [1, 2], [2, 3])
    yield case("Aten._trilinear", randn(3, 4), randn(3, 4), randn(3, 4), [], [], [], [1])
    yield case("Aten._trilinear", randn(4), randn(5), randn(4, 5), [1], [0], [], [0, -1])
    yield case("Aten._trilinear", randn(4), randn(5), randn(4, 5), [3], [0], [], [0], refused=True)
    for gelu in (False, True):
        after = torch.nn.functional.gelu if gelu else torch.relu
        yield case("Aten._addmm_activation", randn(5), randn(3, 4), randn(4, 5), beta=0.5, alpha=2, use_gelu=gelu,
                   ref=lambda *a, use_gelu, f=after, **k: f(torch.addmm(*a, **k)))


def lists() -> Iterator[Case]:
    yield case("Aten._foreach_zero_", [randn(3).detach(), ints(0, 5, 2)],
               ref=lambda xs: [torch.zeros_like(x) for x in xs])


def overloads() -> Iterator[Case]:
    """aten.NAME.OVERLOAD, with and without namespace; operators that look at their name still see it."""
    aten = torch.ops.aten
    yield case("Aten.add.Tensor", randn(3), randn(3), alpha=2)
    yield case("Aten.add_.Scalar", ints(0, 5, 3), 2)
    yield case("Aten.aten.add_.Tensor", ints(0, 5, 3, dtype=torch.int32), ints(0, 5, 3), ref=lambda a, b: a.add_(b))
    yield case("Aten.aten::sum.dim_IntList", randn(3, 4), [1], ref=lambda x, d: x.sum(d))
    yield case("Torch.aten::conv2d", randn(1, 2, 4, 4), randn(3, 2, 2, 2), ref=torch.conv2d)
    yield case("NPU.npu::npu_silu.default", randn(4), ref=torch.nn.functional.silu)
    yield case("Aten.aten._softmax.default", randn(3, 4), 1, False, ref=lambda x, d, h: aten._softmax(x, d, h))
    yield case("Aten.aten.nll_loss2d_forward.default", randn(2, 3, 2, 2), ints(0, 3, 2, 2, 2), None, 1, -100,
               ref=lambda *a: aten.nll_loss2d_forward(*a))
    yield case("Aten.aten.upsample_nearest1d.vec", randn(1, 2, 4), None, [2.0],
               ref=lambda x, s, f: aten.upsample_nearest1d(x, s, f))
    yield case("Aten.aten.nothing_of_the_kind.default", randn(2), refused=True)
    yield case("Aten.add.", bools(2), refused=True)


def cases() -> Iterator[Case]:
    for family in (losses, classes, ctc, upsampled, bags, products, lists, overloads):
        yield from family()
