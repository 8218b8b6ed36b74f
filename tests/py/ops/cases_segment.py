"""Segments of a dimension, each reduced to one number."""

from typing import Any, Iterator

import torch

from ops.harness import TORCH, Case, case, fixed, randn

NAN = float("nan")
HOW = ("sum", "mean", "max", "min", "prod")


def segment_rows(data: torch.Tensor, reduce: str, lengths: torch.Tensor, initial: Any = None) -> torch.Tensor:
    """By PyTorch's own reductions, segment by segment; no segment is empty."""
    found = []
    for part in data.split(lengths.tolist()):
        if initial is not None:
            part = torch.cat((part, torch.full_like(part[:1], initial)))
        found.append(part.amax(0) if reduce == "max" else part.amin(0) if reduce == "min" else
                     part.prod(0) if reduce == "prod" else part.sum(0) / (len(part) - (initial is not None)
                                                                          if reduce == "mean" else 1))
    return torch.stack(found)


def forward() -> Iterator[Case]:
    lengths = torch.tensor([1, 3, 2])
    for how in HOW:
        yield case("Torch.segment_reduce", randn(6), how, lengths=lengths)
        yield case("Torch.segment_reduce", randn(6, 4), how, lengths=lengths, bfloat16=True)
        yield case("Torch.segment_reduce", randn(6, 4), how, lengths=lengths, initial=0.5, ref=segment_rows)
        yield case("Torch.segment_reduce", randn(2, 5, 3), how, lengths=torch.tensor([[2, 3], [4, 1]]), axis=1)
        yield case("Torch.segment_reduce", randn(6, 2), how, lengths=torch.tensor([2, 0, 4]), initial=1.0)
        yield case("Torch.segment_reduce", fixed([1.0, NAN, 3.0]), how, lengths=torch.tensor([3]))
        yield case("Torch.segment_reduce", randn(3).detach(), how, lengths=torch.tensor([0, 3]))
        if TORCH >= (2, 0):
            yield case("Torch.segment_reduce", randn(6, 2), how, offsets=torch.tensor([0, 2, 3, 6]))
    # Extremes that are equal share the gradient; in PyTorch 1.13 each gets all of it.
    yield case("Torch.segment_reduce", fixed([2.0, 2.0, 1.0], grad=True), "max", lengths=torch.tensor([3]),
               differences=False, ref=segment_rows)
    yield case("Torch.segment_reduce", fixed([2.0, 0.0, 1.0, 0.0, 0.0], grad=True), "prod",
               lengths=torch.tensor([3, 2]))
    for wrong in ({"lengths": torch.tensor([7])}, {"lengths": torch.tensor([-1, 7])}, {"lengths": torch.tensor([[6]])},
                  {"lengths": torch.tensor([2**62, 2**62])}, {"offsets": torch.tensor([0, 9])},
                  {"offsets": torch.tensor([4, 2])}, {"offsets": torch.tensor([-1, 2])}, {}):
        yield case("Torch.segment_reduce", randn(6), "sum", refused=True, **wrong)
    yield case("Torch.segment_reduce", randn(6), "median", lengths=lengths, refused=True)
    yield case("Torch.segment_reduce", randn(6), "sum", lengths=lengths, axis=1, refused=True)


def backward() -> Iterator[Case]:
    lengths = torch.tensor([1, 3, 2])
    for how in HOW:
        x = randn(6, 2).detach()
        y = torch.segment_reduce(x, how, lengths=lengths)
        yield case("Aten._segment_reduce_backward", randn(3, 2).detach(), y, x, how, lengths=lengths,
                   check_own=how not in ("max", "min"), ref=segment_grad)
    yield case("Aten._segment_reduce_backward", randn(2, 2).detach(), y, x, "sum", lengths=lengths, refused=True)


def segment_grad(grad: torch.Tensor, output: torch.Tensor, data: torch.Tensor, reduce: str,
                 lengths: torch.Tensor) -> torch.Tensor:
    """Without the output, which is rounded."""
    with torch.enable_grad():
        x = data.detach().requires_grad_(True)
        found = torch.autograd.grad(segment_rows(x, reduce, lengths), x, grad)[0]
    return found


def cases() -> Iterator[Case]:
    yield from forward()
    yield from backward()
