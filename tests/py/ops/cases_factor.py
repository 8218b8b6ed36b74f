"""QR and LU factors, reflections, and solving with factors."""

from typing import Any, Iterator

import torch

from ops.harness import Case, case, fixed, ints, randn

TALL = [(3, 3), (5, 3), (2, 4, 2), (1, 1), (4, 1), (0, 3, 2)]
SHAPES = TALL + [(3, 5), (2, 2, 4), (0, 3), (3, 0)]


def old_qr(x: torch.Tensor, some: bool = True) -> Any:
    """torch.qr, which PyTorch 2.14 has no more."""
    return torch.linalg.qr(x, "reduced" if some else "complete")


def qr() -> Iterator[Case]:
    for shape in TALL:
        for output in (0, 1):
            yield case("Torch.linalg.qr", randn(*shape), grad_output=output, rtol=1e-9)
            yield case("Torch.qr", randn(*shape), grad_output=output, rtol=1e-9, ref=old_qr)
    for shape in SHAPES:
        for mode in ("reduced", "complete", "r"):
            yield case("Torch.linalg.qr", randn(*shape), mode, backward=False)
        yield case("Tensor.qr", randn(*shape), False, backward=False, ref=old_qr)
        yield case("Torch.geqrf", randn(*shape).detach())
    yield case("Torch.linalg.qr", randn(3, 3), "complete", rtol=1e-9)
    yield case("Torch.linalg.qr", randn(3, 3), "full", refused=True)
    yield case("Torch.qr", fixed([[0.0, 1.0], [0.0, 2.0]]), ref=old_qr)
    yield case("Torch.qr", randn(3), refused=True)


def reflections() -> Iterator[Case]:
    for shape, k in (((4, 4), 4), ((5, 3), 3), ((5, 3), 2), ((2, 4, 2), 2), ((3, 3), 0)):
        tau = randn(*shape[:-2], k)
        yield case("Torch.linalg.householder_product", randn(*shape), tau, rtol=1e-9)
        yield case("Torch.orgqr", randn(*shape), tau, rtol=1e-9)
        m = shape[-2]
        a, factors = torch.geqrf(randn(*shape).detach())
        factors = factors[..., :k]
        for left in (True, False):
            for transpose in (False, True):
                other = randn(*shape[:-2], m, 2) if left else randn(*shape[:-2], 2, m)
                yield case("Torch.ormqr", a, factors.contiguous(), other, left, transpose, ref=by_product)
    yield case("Torch.orgqr", randn(3, 4), randn(3), refused=True)
    yield case("Torch.orgqr", randn(4, 3), randn(4), refused=True)
    yield case("Torch.ormqr", randn(4, 3), randn(3), randn(3, 2), refused=True)


def by_product(a: torch.Tensor, tau: torch.Tensor, other: torch.Tensor, left: bool, transpose: bool) -> torch.Tensor:
    m = a.shape[-2]
    q = torch.eye(m, dtype=a.dtype).expand(*a.shape[:-2], m, m)
    for j in range(tau.shape[-1]):
        v = torch.cat([torch.zeros(*a.shape[:-2], j, dtype=a.dtype), torch.ones(*a.shape[:-2], 1, dtype=a.dtype),
                       a[..., j + 1:, j]], -1)
        h = torch.eye(m, dtype=a.dtype) - tau[..., j, None, None] * v[..., :, None] * v[..., None, :]
        q = q @ h
    q = q.transpose(-1, -2) if transpose else q
    return q @ other if left else other @ q


def lu() -> Iterator[Case]:
    for shape in [(3, 3), (2, 4, 4), (1, 1), (0, 3, 3)]:
        yield case("Torch.linalg.lu_factor", randn(*shape), rtol=1e-9)
        yield case("Torch.linalg.lu_factor_ex", randn(*shape), rtol=1e-9)
        yield case("Tensor.lu", randn(*shape), rtol=1e-9)
        for output in (1, 2):
            yield case("Torch.linalg.lu", randn(*shape), grad_output=output, rtol=1e-9)
            yield case("Torch.lu_unpack", randn(*shape), one_based(*shape), grad_output=output)
    for shape in [(3, 5), (5, 3), (2, 4, 2)]:
        yield case("Torch.linalg.lu_factor", randn(*shape).detach())
        yield case("Torch.linalg.lu", randn(*shape).detach())
        yield case("Torch.lu_unpack", randn(*shape), one_based(*shape), grad_output=1)
    yield case("Tensor.lu", randn(3, 3).detach(), get_infos=True)
    yield case("Torch.linalg.lu_factor_ex", fixed([[1.0, 2.0], [2.0, 4.0]]))
    yield case("Torch.lu_unpack", randn(3, 3).detach(), one_based(3, 3), unpack_data=False,
               ref=lambda a, p, unpack_data: (torch.lu_unpack(a, p)[0], torch.zeros(0, dtype=a.dtype),
                                              torch.zeros(0, dtype=a.dtype)))
    yield case("Torch.lu_unpack", randn(3, 3), torch.tensor([1, 2, 4], dtype=torch.int32), refused=True)
    yield case("Torch.linalg.lu_factor", randn(3), refused=True)


def one_based(*shape: int) -> torch.Tensor:
    """Pivots that are possible: none above its own row."""
    k = min(shape[-2:])
    return torch.stack([ints(i + 1, shape[-2] + 1, *shape[:-2], dtype=torch.int32) for i in range(k)], -1)


def solutions() -> Iterator[Case]:
    for shape, k in (((3, 3), 2), ((2, 4, 4), 1), ((1, 1), 3)):
        factors, pivots = torch.linalg.lu_factor(randn(*shape).detach())
        b = randn(*shape[:-1], k)
        for factor in (factors, factors.clone().requires_grad_(True)):
            yield case("Torch.lu_solve", b, factor, pivots, rtol=1e-8, own_rtol=1e-3)
        for adjoint in (False, True):
            yield case("Aten.linalg_lu_solve", factors, pivots, b, adjoint=adjoint, rtol=1e-8, own_rtol=1e-3)
            yield case("Aten.linalg_lu_solve", factors, pivots, randn(*shape[:-2], k, shape[-1]), left=False,
                       adjoint=adjoint, rtol=1e-8, own_rtol=1e-3)
    yield case("Torch.solve", randn(3, 2), randn(3, 3), rtol=1e-9, own_rtol=1e-3,
               ref=lambda b, a: (torch.linalg.solve(a, b), torch.linalg.lu_factor(a)[0]))
    yield case("Torch.solve", randn(4, 2), randn(3, 3), refused=True)
    yield case("Torch.lu_solve", randn(4, 2), randn(3, 3), one_based(3, 3), refused=True)
    yield case("Torch.linalg.tensorsolve", randn(2, 3, 6), randn(2, 3), rtol=1e-9, own_rtol=1e-3)
    yield case("Torch.linalg.tensorsolve", randn(4, 2, 2), randn(4), rtol=1e-9, own_rtol=1e-3)
    yield case("Torch.linalg.tensorsolve", randn(6, 2, 3), randn(2, 3), dims=(0,), rtol=1e-9, own_rtol=1e-3)
    yield case("Torch.linalg.tensorsolve", randn(2, 3, 5), randn(2, 3), refused=True)


def cases() -> Iterator[Case]:
    for family in (qr, reflections, lu, solutions):
        yield from family()
