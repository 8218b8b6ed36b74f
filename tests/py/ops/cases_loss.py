"""Losses: reductions, weights, ignored targets, smoothing, probabilities, and shapes with and without a batch."""

import math
from typing import Any, Iterator

import torch
import torch.nn.functional as F

from ops.harness import Case, bools, case, fixed, ints, randn, uniform

NAN, INF = math.nan, math.inf
REDUCTIONS = ("none", "mean", "sum")
SHAPES = ((3, 4), (5,), (), (2, 3, 4), (0, 3))


def signs(*shape: int) -> torch.Tensor:
    """-1 and 1."""
    return bools(*shape).float() * 2 - 1


def old_flags(name: str, *args: Any) -> Iterator[Case]:
    for size_average in (None, False, True):
        for reduce in (None, False, True):
            if size_average is not None or reduce is not None:
                yield case(f"Functional.{name}", *args, size_average=size_average, reduce=reduce, differences=False)


# ---- Distances -------------------------------------------------------------------------------------


def distances() -> Iterator[Case]:
    for name, more in (("l1_loss", ({},)), ("mse_loss", ({},)),
                       ("smooth_l1_loss", ({}, {"beta": 0.3}, {"beta": 0.0}, {"beta": 2.5})),
                       ("huber_loss", ({}, {"delta": 0.3}, {"delta": 2.5}))):
        for reduction in REDUCTIONS:
            for shape in SHAPES:
                for kwargs in more:
                    yield case(f"Functional.{name}", randn(*shape), randn(*shape), reduction=reduction, **kwargs)
        yield case(f"Functional.{name}", randn(3, 4), randn(3, 4), bfloat16=True)
        yield case(f"Functional.{name}", randn(3, 4), randn(4))
        yield case(f"Functional.{name}", randn(4, 3).t(), randn(3, 4))
        yield case(f"Functional.{name}", fixed([1.0, NAN, INF, 2.0]), fixed([1.0, 2.0, 3.0, INF]), reduction="none")
        yield case(f"Functional.{name}", randn(3), randn(4), refused=True)
        yield case(f"Functional.{name}", randn(3), randn(3), reduction="half", refused=True)
    same = randn(3)
    for name in ("l1_loss", "smooth_l1_loss"):  # 0 has the gradient 0
        yield case(f"Functional.{name}", same, same.detach().clone().requires_grad_(True), differences=False)
    yield case("Functional.smooth_l1_loss", fixed([0.5, 0.0], grad=True), fixed([0.0, 0.5]), beta=0.5, reduction="sum",
               differences=False)
    yield case("Functional.huber_loss", fixed([0.5, 0.0], grad=True), fixed([0.0, 0.5]), delta=0.5, reduction="sum",
               differences=False)
    for name in ("l1_loss", "mse_loss", "smooth_l1_loss"):
        yield from old_flags(name, randn(3, 4), randn(3, 4))
    for name in ("mse_loss", "smooth_l1_loss", "huber_loss"):
        for number in range(3):
            yield case(f"Aten.{name}", randn(3, 4), randn(3, 4), number)
    yield case("Aten.smooth_l1_loss", randn(3), randn(3), 1, 0.5)
    yield case("Functional.huber_loss", randn(3), randn(3), delta=0.0, refused=True)
    yield case("Functional.huber_loss", randn(3), randn(3), delta=NAN, refused=True)
    yield case("Functional.smooth_l1_loss", randn(3), randn(3), beta=-1.0, refused=True)


# ---- Likelihoods -----------------------------------------------------------------------------------


def likelihoods() -> Iterator[Case]:
    for reduction in REDUCTIONS:
        for shape in SHAPES:
            p, t = uniform(0.05, 0.95, *shape), uniform(0, 1, *shape)
            weight = uniform(0.5, 2, *shape).detach()
            yield case("Functional.binary_cross_entropy", p, t, reduction=reduction)
            yield case("Functional.binary_cross_entropy", p, t, weight, reduction=reduction)
            name = "Functional.binary_cross_entropy_with_logits"
            yield case(name, randn(*shape), t, reduction=reduction)
            yield case(name, randn(*shape), t, weight, reduction=reduction)
            yield case(name, randn(*shape), t, pos_weight=weight, reduction=reduction)
            yield case(name, randn(*shape), t, weight, pos_weight=weight, reduction=reduction)
            for log_target in (False, True):
                x = randn(*shape)
                target = randn(*shape) if log_target else uniform(0.01, 1, *shape)
                yield case("Functional.kl_div", x, target, reduction=reduction, log_target=log_target)
            for log_input in (False, True):
                for full in (False, True):
                    x = randn(*shape) if log_input else uniform(0.5, 3, *shape)
                    counts = uniform(0, 6, *shape).detach()
                    yield case("Functional.poisson_nll_loss", x, counts, log_input, full, reduction=reduction)
            if shape not in ((), (0, 3)):
                for full in (False, True):
                    yield case("Functional.gaussian_nll_loss", randn(*shape), randn(*shape), uniform(0.3, 2, *shape),
                               full=full, reduction=reduction)
    for t in (0.0, 1.0, 0.5):  # logarithms are cut at -100
        yield case("Functional.binary_cross_entropy", fixed([0.0, 1.0, 0.5], grad=True), fixed([t] * 3),
                   reduction="none", differences=False)
    yield case("Functional.binary_cross_entropy", fixed([0.5, 1.5]), fixed([0.5, 0.5]), refused=True)
    yield case("Functional.binary_cross_entropy", fixed([0.5, NAN]), fixed([0.5, 0.5]), refused=True)
    yield case("Functional.binary_cross_entropy", uniform(0, 1, 3), uniform(0, 1, 4), refused=True)
    weight = uniform(1, 2, 3).detach()
    yield case("Functional.binary_cross_entropy", uniform(0.1, 0.9, 2, 3), uniform(0, 1, 2, 3), weight)
    yield case("Functional.binary_cross_entropy_with_logits", randn(2, 3), uniform(0, 1, 2, 3), pos_weight=weight)
    yield case("Functional.binary_cross_entropy_with_logits", fixed([-1000.0, 1000.0, 0.0, -50.0, 50.0], grad=True),
               fixed([0.0, 1.0, 0.5, 1.0, 0.0]), reduction="none", bfloat16=True)
    yield from old_flags("binary_cross_entropy", uniform(0.1, 0.9, 3), uniform(0, 1, 3))
    yield from old_flags("binary_cross_entropy_with_logits", randn(3), uniform(0, 1, 3))
    for number in range(3):
        yield case("Aten.binary_cross_entropy", uniform(0.1, 0.9, 3), uniform(0, 1, 3), None, number)
        yield case("Aten.binary_cross_entropy_with_logits", randn(3), uniform(0, 1, 3), None, None, number)
        yield case("Aten.kl_div", randn(3), uniform(0.1, 1, 3), number)
    for shape in ((3, 4), (2, 3, 4)):
        for log_target in (False, True):
            yield case("Functional.kl_div", randn(*shape), uniform(0.1, 1, *shape), reduction="batchmean",
                       log_target=log_target)
    yield case("Functional.kl_div", randn(4), fixed([0.0, 0.2, 1.0, 0.0], grad=True), reduction="sum",
               differences=False)
    yield case("Functional.kl_div", randn(3, 4), uniform(0.1, 1, 4), reduction="sum")
    yield case("Functional.poisson_nll_loss", uniform(0, 1, 3), uniform(0, 5, 3), False, eps=0.25)
    yield case("Functional.poisson_nll_loss", randn(3), fixed([0.0, 1.0, 2.0]), full=True, reduction="none")
    yield case("Functional.gaussian_nll_loss", randn(2, 3), randn(2, 3), uniform(0.5, 1, 2, 1))
    yield case("Functional.gaussian_nll_loss", randn(2, 3), randn(2, 3), uniform(0.5, 1, 2))
    yield case("Functional.gaussian_nll_loss", randn(2), randn(2), fixed([1e-9, 0.5], grad=True), eps=0.1,
               reduction="none", differences=False)


# ---- Margins ---------------------------------------------------------------------------------------


def margins() -> Iterator[Case]:
    for reduction in REDUCTIONS:
        for shape in SHAPES:
            yield case("Functional.margin_ranking_loss", randn(*shape), randn(*shape), signs(*shape),
                       reduction=reduction)
            yield case("Functional.margin_ranking_loss", randn(*shape), randn(*shape), signs(*shape), 0.7,
                       reduction=reduction)
            yield case("Functional.hinge_embedding_loss", randn(*shape), signs(*shape), reduction=reduction)
            yield case("Functional.hinge_embedding_loss", randn(*shape), signs(*shape), 0.3, reduction=reduction)
            yield case("Functional.soft_margin_loss", randn(*shape), signs(*shape), reduction=reduction)
        for margin in (0.0, 0.4):
            yield case("Functional.cosine_embedding_loss", randn(5, 3), randn(5, 3), signs(5), margin,
                       reduction=reduction)
        yield case("Functional.cosine_embedding_loss", randn(3), randn(3), fixed(-1.0), reduction=reduction)
        for p in (1, 2, 3):
            for swap in (False, True):
                yield case("Functional.triplet_margin_loss", randn(5, 3), randn(5, 3), randn(5, 3), 0.5, p, swap=swap,
                           reduction=reduction)
        yield case("Functional.triplet_margin_loss", randn(3), randn(3), randn(3), reduction=reduction)
    yield case("Functional.cosine_embedding_loss", fixed([[0.0, 0.0], [3.0, 4.0]]), fixed([[1.0, 2.0], [3.0, 4.0]]),
               fixed([1.0, 1.0]), reduction="none")
    yield case("Functional.soft_margin_loss", fixed([500.0, -500.0], grad=True), fixed([1.0, 1.0]), reduction="none",
               check_own=False)  # PyTorch overflows in float32
    yield case("Functional.hinge_embedding_loss", randn(3), fixed([0.0, 1.0, -1.0]), reduction="none")
    for name, args in (("margin_ranking_loss", (randn(3), randn(3), signs(3))),
                       ("hinge_embedding_loss", (randn(3), signs(3))), ("soft_margin_loss", (randn(3), signs(3))),
                       ("cosine_embedding_loss", (randn(2, 3), randn(2, 3), signs(2))),
                       ("triplet_margin_loss", (randn(2, 3), randn(2, 3), randn(2, 3)))):
        yield from old_flags(name, *args)
    for number in range(3):
        yield case("Aten.soft_margin_loss", randn(3), signs(3), number)
        yield case("Torch.margin_ranking_loss", randn(3), randn(3), signs(3), 0.1, number)
    yield case("Functional.cosine_embedding_loss", fixed(1.0), fixed(2.0), fixed(1.0), refused=True)


# ---- Classes ---------------------------------------------------------------------------------------

PLACES = (((5, 4), (5,)), ((4,), ()), ((2, 4, 3), (2, 3)), ((2, 4, 3, 2), (2, 3, 2)), ((2, 4, 2, 2, 2), (2, 2, 2, 2)))


def ignoring(target: torch.Tensor, index: int) -> torch.Tensor:
    """Some places of a target of four classes name the ignored index; a lone place does not."""
    flat = torch.where(target == index, (index + 1) % 4, target).flatten()
    if target.dim():
        flat[1::3] = index
    return flat.reshape(target.shape)


def classes() -> Iterator[Case]:
    for shape, places in PLACES:
        target = ints(0, 4, *places)
        for reduction in REDUCTIONS:
            for weight in (None, uniform(0.3, 2, 4).detach()):
                x = randn(*shape)
                yield case("Functional.nll_loss", x, target, weight, reduction=reduction)
                yield case("Functional.nll_loss", x, ignoring(target, -100), weight, reduction=reduction)
                yield case("Functional.nll_loss", x, ignoring(target, 2), weight, ignore_index=2, reduction=reduction)
                for smoothing in (0.0, 0.2, 1.0):
                    given = dict(reduction=reduction, label_smoothing=smoothing)
                    yield case("Functional.cross_entropy", x, target, weight, **given)
                    yield case("Functional.cross_entropy", x, ignoring(target, -100), weight=weight, **given)
                    yield case("Functional.cross_entropy", x, ignoring(target, 1), weight, ignore_index=1, **given)
                    yield case("Functional.cross_entropy", x, uniform(0, 1, *shape), weight, **given)
    x, target = randn(5, 4), ints(0, 4, 5)
    yield case("Functional.cross_entropy", x, target, bfloat16=True)
    yield case("Functional.cross_entropy", fixed([[1000.0, -1000.0], [0.0, 0.0]], grad=True), ints(0, 2, 2))
    yield case("Functional.cross_entropy", randn(3, 4, 5).transpose(1, 2), ints(0, 5, 3, 4))
    yield case("Functional.cross_entropy", randn(0, 4), ints(0, 4, 0))
    yield case("Functional.cross_entropy", randn(0, 4), ints(0, 4, 0), reduction="none")
    for reduction in REDUCTIONS:  # all places ignored
        yield case("Functional.cross_entropy", x, torch.full((5,), -100), reduction=reduction, differences=False)
        yield case("Functional.nll_loss", x, torch.full((5,), -100), reduction=reduction, differences=False)
    yield case("Functional.cross_entropy", x, ints(0, 4, 5).fill_(-100), label_smoothing=0.1, differences=False)
    for size_average in (None, False, True):
        for reduce in (False, True):
            yield case("Functional.cross_entropy", x, target, size_average=size_average, reduce=reduce)
            yield case("Functional.nll_loss", x, target, size_average=size_average, reduce=reduce)
    for number in range(3):
        yield case("Aten.nll_loss", x, target, None, number, -100)
        yield case("Aten.nll_loss2d", randn(2, 4, 3, 3), ints(0, 4, 2, 3, 3), None, number, -100)
        yield case("Aten.nll_loss_nd", x, target, None, number, -100)
        yield case("Aten.cross_entropy_loss", x, target, None, number, -100, 0.1)
        yield case("Aten.nll_loss_forward", x, target, uniform(1, 2, 4).detach(), number, 2)
        yield case("Aten.nll_loss2d_forward", randn(2, 4, 3, 3), ints(0, 4, 2, 3, 3), None, number, 1)
    for name in ("cross_entropy", "nll_loss"):
        for args in ((x, ints(0, 4, 4)), (x, fixed([0, 1, 2, 3, 4], dtype=torch.int64)),
                     (x, fixed([0, 1, 2, 3, -1], dtype=torch.int64)), (x, target, uniform(0, 1, 5).detach()),
                     (fixed(1.0), fixed(0, dtype=torch.int64)), (x, randn(5))):
            yield case(f"Functional.{name}", *args, refused=True)
    yield case("Functional.cross_entropy", x, target, label_smoothing=1.5, refused=True)
    yield case("Functional.cross_entropy", x, target, label_smoothing=NAN, refused=True)
    yield case("Functional.cross_entropy", x, uniform(0, 1, 5, 4), uniform(0, 1, 3).detach(), refused=True)


def class_margins() -> Iterator[Case]:
    for reduction in REDUCTIONS:
        for shape, places in (((5, 4), (5,)), ((4,), ())):
            target = ints(0, 4, *places)
            for p in (1, 2):
                for weight in (None, uniform(0.3, 2, 4).detach()):
                    yield case("Functional.multi_margin_loss", randn(*shape), target, p, 0.7, weight,
                               reduction=reduction)
            names = ints(0, 4, *shape)
            names[..., 2:] = fixed([-1, 3], dtype=torch.int64)  # what follows a -1 does not count
            yield case("Functional.multilabel_margin_loss", randn(*shape), names, reduction=reduction)
            yield case("Functional.multilabel_margin_loss", randn(*shape), torch.full(shape, -1), reduction=reduction)
            yield case("Functional.multilabel_margin_loss", randn(*shape), torch.arange(4).expand(shape).contiguous(),
                       reduction=reduction)
            for weight in (None, uniform(0.3, 2, 4).detach()):
                yield case("Functional.multilabel_soft_margin_loss", randn(*shape), bools(*shape).float(), weight,
                           reduction=reduction)
    yield case("Functional.multilabel_soft_margin_loss", randn(2, 3, 4), bools(2, 3, 4).float(), reduction="none")
    yield from old_flags("multi_margin_loss", randn(3, 4), ints(0, 4, 3))
    yield from old_flags("multilabel_margin_loss", randn(3, 4), ints(0, 4, 3, 4))
    yield case("Functional.multi_margin_loss", randn(3, 4), fixed([0, 4, 1], dtype=torch.int64), refused=True)
    yield case("Functional.multi_margin_loss", randn(3, 4), ints(0, 4, 3), 3, refused=True)
    yield case("Functional.multi_margin_loss", randn(3, 4), ints(0, 4, 2), refused=True)
    yield case("Functional.multilabel_margin_loss", randn(3, 4), torch.full((3, 4), 7), refused=True)
    yield case("Functional.multilabel_margin_loss", randn(3, 4), ints(0, 4, 3), refused=True)


# ---- Connectionist temporal classification ---------------------------------------------------------




def alignments() -> Iterator[Case]:
    def logp(*shape: int) -> torch.Tensor:
        return randn(*shape).detach().log_softmax(-1).requires_grad_(True)

    # The gradient is that of log_softmax's input, so differences of log_probs do not show it.
    def ctc(*args: Any, **kwargs: Any) -> Case:
        return case("Functional.ctc_loss", *args, differences=False, **kwargs)

    padded = ints(1, 5, 3, 4)
    inputs, lengths = fixed([7, 6, 5], dtype=torch.int64), fixed([4, 1, 0], dtype=torch.int64)
    for reduction in REDUCTIONS:
        yield ctc(logp(7, 3, 5), padded, inputs, lengths, reduction=reduction)
        yield ctc(logp(7, 3, 5), padded, [7, 6, 5], [4, 2, 3], reduction=reduction)
        yield ctc(logp(7, 3, 5), ints(1, 5, 5), inputs, lengths, reduction=reduction)
        yield ctc(logp(7, 3, 5), ints(0, 4, 3, 4), inputs, lengths, 4, reduction=reduction)
        yield ctc(logp(7, 5), ints(1, 5, 3), fixed(7, dtype=torch.int64), fixed(3, dtype=torch.int64),
                  reduction=reduction)
        repeats = fixed([[1, 1, 1, 1], [2, 2, 1, 1], [3, 3, 3, 3]], dtype=torch.int64)
        for zero in (False, True):  # repeated classes need more steps than these have
            yield ctc(logp(4, 3, 5), repeats, [4, 4, 4], [4, 3, 2], reduction=reduction, zero_infinity=zero,
                      backward=zero)
    yield ctc(logp(40, 2, 6), ints(1, 6, 2, 9), [40, 33], [9, 7], bfloat16=False)
    yield ctc(logp(7, 3, 5), padded.int(), inputs.int(), lengths.int())
    bad = ((padded, [7, 6, 8], [4, 1, 0]), (padded, [7, 6], [4, 1]), (padded, [7, 6, 5], [5, 1, 0]),
           (padded + 4, [7, 6, 5], [4, 1, 0]), (ints(1, 5, 4), [7, 6, 5], [4, 1, 0]),
           (ints(1, 5, 2, 4), [7, 6, 5], [4, 1, 0]))
    for args in bad:
        yield ctc(logp(7, 3, 5), *args, refused=True)
    yield ctc(logp(7, 3, 5), padded, inputs, lengths, 5, refused=True)
    yield ctc(logp(7), padded, inputs, lengths, refused=True)


def triplets() -> Iterator[Case]:
    for reduction in ("mean", "sum", "none"):
        for swap in (False, True):
            yield case("Functional.triplet_margin_with_distance_loss", randn(4, 5), randn(4, 5), randn(4, 5),
                       margin=0.7, swap=swap, reduction=reduction)
    yield case("Functional.triplet_margin_with_distance_loss", randn(4, 5), randn(4, 5), randn(4, 5),
               distance_function="l1", refused=True)


def cases() -> Iterator[Case]:
    for part in (distances, likelihoods, margins, classes, class_margins, alignments):
        yield from part()
    yield from triplets()
