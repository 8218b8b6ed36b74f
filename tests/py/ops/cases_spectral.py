"""Singular values, eigenvalues, and what they are for."""

from typing import Any, Iterator

import torch

from ops.harness import Case, case, fixed, randn


def low_rank(m: int, n: int, rank: int) -> torch.Tensor:
    return (randn(m, rank).detach() @ randn(rank, n).detach()).requires_grad_(True)


def symmetric(*shape: int) -> torch.Tensor:
    a = randn(*shape).detach()
    return (a + a.transpose(-1, -2)).requires_grad_(True)


def values_only(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    return None, torch.linalg.svdvals(x), None


def values() -> Iterator[Case]:
    for shape in [(3, 3), (5, 3), (3, 5), (2, 4, 3), (2, 2, 3, 4), (1, 1), (6, 1), (0, 3, 2), (3, 0), (20, 12)]:
        yield case("Torch.linalg.svdvals", randn(*shape), rtol=1e-10)
        yield case("Torch.svd", randn(*shape), ref=values_only, grad_output=1, rtol=1e-10)
    yield case("Torch.linalg.svd", randn(4, 3), full_matrices=False, ref=values_only, grad_output=1, rtol=1e-10)
    yield case("Tensor.svd", randn(4, 3), some=False, ref=values_only, grad_output=1, rtol=1e-10)
    yield case("Torch.linalg.svdvals", low_rank(5, 4, 2).detach(), rtol=1e-10)
    yield case("Torch.linalg.svdvals", fixed([[0.0, 0.0], [0.0, 0.0]]))
    yield case("Torch.linalg.svdvals", fixed([[1e20, 1e-20], [0.0, 1.0]]), own_rtol=1e-3)
    yield case("Torch.linalg.svdvals", randn(3), refused=True)
    for shape in [(3, 3), (2, 4, 4), (1, 1), (0, 0), (0, 3, 3), (15, 15)]:
        for which in ("L", "U"):
            yield case("Torch.linalg.eigvalsh", symmetric(*shape), which, rtol=1e-10, differences=False)
            yield case("Torch.linalg.eigh", symmetric(*shape), which, rtol=1e-10, differences=False,
                       ref=lambda x, w: (torch.linalg.eigvalsh(x, w), None))
    # Of a matrix that is made symmetric within, the gradient has no choice.
    yield case("Torch.linalg.eigvalsh", symmetric(4, 4).detach(), rtol=1e-10)
    yield case("Torch.symeig", symmetric(4, 4), rtol=1e-10, differences=False,
               ref=lambda x: (torch.linalg.eigvalsh(x, "U"), None))
    yield case("Torch.linalg.eigvalsh", fixed([[2.0, 0.0], [0.0, 2.0]]))
    yield case("Torch.linalg.eigvalsh", randn(2, 3), refused=True)


def cond(x: torch.Tensor, p: Any) -> torch.Tensor:
    """PyTorch has it, but its gradient fails for most orders."""
    p = 2 if p is None else p
    return torch.linalg.matrix_norm(x, p) * torch.linalg.matrix_norm(torch.inverse(x), p)


def norms() -> Iterator[Case]:
    for shape in [(3, 4), (2, 5, 3)]:
        for p in ("nuc", 2, -2, 2.0):
            for keepdim in (False, True):
                yield case("Torch.linalg.matrix_norm", randn(*shape), p, keepdim=keepdim, rtol=1e-10)
    yield case("Torch.linalg.matrix_norm", randn(4, 2, 3), "nuc", dim=(0, 2), keepdim=True, rtol=1e-10)
    yield case("Torch.linalg.matrix_norm", randn(4, 2, 3), -2, dim=(2, 1), rtol=1e-10)
    yield case("Torch.linalg.norm", randn(4, 3), "nuc", rtol=1e-10)
    yield case("Torch.linalg.norm", randn(4, 3), 2, rtol=1e-10)
    yield case("Torch.norm", randn(4, 3), "nuc", rtol=1e-10)
    yield case("Torch.nuclear_norm", randn(4, 3), rtol=1e-10)
    yield case("Torch.nuclear_norm", randn(4, 3), keepdim=True, rtol=1e-10)
    yield case("Torch.nuclear_norm", randn(4, 3, 2), (0, 2), rtol=1e-10)
    yield case("Torch.linalg.matrix_norm", randn(4, 3), 3, refused=True)
    yield case("Torch.nuclear_norm", randn(4), refused=True)
    for p in (None, 2, -2, "fro", "nuc", 1, -1, float("inf"), -float("inf")):
        yield case("Torch.linalg.cond", randn(4, 4), p, ref=cond, rtol=1e-9, own_rtol=1e-2)
        yield case("Torch.linalg.cond", randn(2, 3, 3), p, rtol=1e-9, own_rtol=1e-2, backward=False)
    yield case("Torch.linalg.cond", randn(5, 3), rtol=1e-9)
    yield case("Torch.linalg.cond", randn(5, 3), "fro", refused=True)


def ranks() -> Iterator[Case]:
    for x in (randn(4, 4), low_rank(5, 4, 2), low_rank(6, 6, 3), randn(2, 3, 5)):
        yield case("Torch.linalg.matrix_rank", x.detach(), atol=1e-3)
        for limits in ({"rtol": 1e-3}, {"atol": 0.5, "rtol": 0.3}, {"atol": 0.1, "rtol": 0.3}):
            limited = case("Torch.linalg.matrix_rank", x.detach())
            limited.kwargs.update(limits)  # the harness has an rtol of its own
            yield limited
        yield case("Torch.linalg.matrix_rank", x.detach(), 0.5)
    yield case("Torch.linalg.matrix_rank", randn(4, 4).detach())
    yield case("Torch.linalg.matrix_rank", symmetric(4, 4).detach(), atol=0.5, hermitian=True)


def inverses() -> Iterator[Case]:
    for shape in [(3, 3), (5, 3), (3, 5), (2, 4, 3), (1, 4), (0, 3, 2)]:
        yield case("Torch.linalg.pinv", randn(*shape), rtol=1e-8, own_rtol=1e-3)
        yield case("Torch.pinverse", randn(*shape), rtol=1e-8, own_rtol=1e-3)
    yield case("Torch.linalg.pinv", low_rank(5, 4, 2), 1e-3, rtol=1e-8, differences=False, own_rtol=1e-3)
    yield case("Tensor.pinverse", randn(4, 3), rcond=1e-6, rtol=1e-8, own_rtol=1e-3)
    for a, b in (((4, 4), (4, 2)), ((6, 3), (6, 2)), ((3, 5), (3, 1)), ((2, 5, 3), (2, 5, 2))):
        yield case("Torch.linalg.lstsq", randn(*a), randn(*b), rtol=1e-8, own_rtol=1e-2)
        for driver in ("gels", "gelsd", "gelss"):
            yield case("Torch.linalg.lstsq", randn(*a), randn(*b), driver=driver, rtol=1e-8, own_rtol=1e-2)
    yield case("Torch.linalg.lstsq", randn(4, 3), randn(5, 2), refused=True)
    yield case("Torch.linalg.pinv", randn(3, 4, 4).detach(), hermitian=True, rtol=1e-8, own_rtol=1e-3)


def cases() -> Iterator[Case]:
    for family in (values, norms, ranks, inverses):
        yield from family()
