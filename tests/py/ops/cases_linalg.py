"""Determinants, inverses, linear systems, Cholesky factors, the matrix exponential."""

from typing import Iterator

import torch

from ops.harness import Case, case, fixed, randn, uniform


def positive(*shape: int) -> torch.Tensor:
    """Symmetric positive definite matrices."""
    a = randn(*shape).detach()
    return (a @ a.transpose(-1, -2) + 2 * torch.eye(shape[-1])).requires_grad_(True)


def triangle(*shape: int, upper: bool = False) -> torch.Tensor:
    a = randn(*shape).detach() * 0.3 + 2 * torch.eye(shape[-1])
    return (a.triu() if upper else a.tril()).requires_grad_(True)


def determinants() -> Iterator[Case]:
    for shape in [(3, 3), (2, 4, 4), (1, 1), (0, 3, 3), (2, 3, 5, 5), (0, 0)]:
        yield case("Torch.det", randn(*shape), rtol=1e-10)
        yield case("Torch.linalg.det", randn(*shape), rtol=1e-10)
        yield case("Torch.slogdet", randn(*shape), grad_output=1, rtol=1e-10)
    yield case("Torch.linalg.slogdet", randn(3, 3), grad_output=1, rtol=1e-10)
    yield case("Torch.logdet", positive(3, 3), rtol=1e-10)
    yield case("Torch.logdet", fixed([[0.0, 1.0], [1.0, 0.0]]))
    yield case("Torch.det", fixed([[1.0, 2.0], [2.0, 4.0]], grad=True),  # PyTorch's gradient is not the cofactors
               ref=lambda x: x[0, 0] * x[1, 1] - x[0, 1] * x[1, 0])
    yield case("Torch.det", fixed([[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [0.0, 1.0, 5.0]], grad=True),
               ref=lambda x: (x[0] * torch.cross(x[1], x[2], 0)).sum())
    yield case("Torch.slogdet", fixed([[1.0, 2.0], [2.0, 4.0]]))
    yield case("Tensor.det", randn(4, 4).t(), rtol=1e-10)
    yield case("Torch.det", randn(2, 3), refused=True)


def systems() -> Iterator[Case]:
    for shape in [(3, 3), (2, 4, 4), (1, 1), (0, 3, 3), (0, 0)]:
        yield case("Torch.inverse", randn(*shape), rtol=1e-9)
        yield case("Torch.linalg.inv", positive(*shape), rtol=1e-9)
    yield case("Torch.linalg.inv_ex", positive(2, 3, 3), rtol=1e-9)
    yield case("Torch.inverse", fixed([[1.0, 2.0], [2.0, 4.0]]), refused=True)
    yield case("Torch.linalg.solve", randn(3, 3), randn(3), rtol=1e-9)
    yield case("Torch.linalg.solve", randn(3, 3), randn(3, 2), rtol=1e-9)
    yield case("Torch.linalg.solve", randn(2, 3, 3), randn(2, 3), rtol=1e-9)
    yield case("Torch.linalg.solve", randn(2, 1, 3, 3), randn(4, 3, 2), rtol=1e-9)
    yield case("Torch.linalg.solve", randn(3, 3), randn(2, 3), left=False, rtol=1e-9)
    yield case("Torch.linalg.solve", randn(3, 3), randn(2, 2), refused=True)
    yield case("Torch.triangular_solve", randn(3, 2), triangle(3, 3, upper=True), rtol=1e-10)
    yield case("Torch.triangular_solve", randn(3, 2), triangle(3, 3), upper=False, rtol=1e-10)
    yield case("Torch.triangular_solve", randn(2, 3, 2), triangle(3, 3, upper=True), True, True, rtol=1e-10)
    yield case("Torch.triangular_solve", randn(3, 2), uniform(-0.5, 0.5, 3, 3), unitriangular=True, rtol=1e-10)
    for kwargs in ({"upper": True}, {"upper": False}, {"upper": False, "unitriangular": True}):
        yield case("Torch.linalg.solve_triangular", triangle(2, 3, 3, upper=kwargs["upper"]), randn(2, 3, 4),
                   rtol=1e-10, **kwargs)
        yield case("Torch.linalg.solve_triangular", triangle(3, 3, upper=kwargs["upper"]), randn(4, 3), left=False,
                   rtol=1e-10, **kwargs)


def cholesky() -> Iterator[Case]:
    for shape in [(3, 3), (2, 4, 4), (1, 1), (0, 3, 3)]:
        # Only the lower triangle is read, so differences in one direction are not what the symmetric gradient says.
        yield case("Torch.linalg.cholesky", positive(*shape), rtol=1e-10, differences=False)
        yield case("Torch.cholesky", positive(*shape), upper=True, rtol=1e-10, differences=False,
                   ref=lambda x, upper: torch.linalg.cholesky(x, upper=upper))
    yield case("Torch.linalg.cholesky_ex", positive(3, 3), rtol=1e-10, differences=False)
    yield case("Torch.linalg.cholesky", fixed([[1.0, 2.0], [2.0, 1.0]]), refused=True)
    # PyTorch's gradient fills the triangle that is not read, too.
    yield case("Torch.cholesky_solve", randn(3, 2), triangle(3, 3), rtol=1e-10, differences=False)
    yield case("Torch.cholesky_solve", randn(2, 3, 2), triangle(2, 3, 3, upper=True), upper=True, rtol=1e-10,
               differences=False)
    yield case("Torch.cholesky_inverse", triangle(3, 3), rtol=1e-10, differences=False)
    yield case("Torch.cholesky_inverse", triangle(2, 3, 3, upper=True), upper=True, rtol=1e-10, differences=False)


def exponential() -> Iterator[Case]:
    for shape in [(3, 3), (2, 4, 4), (1, 1), (0, 2, 2), (0, 0)]:
        yield case("Torch.matrix_exp", randn(*shape), rtol=1e-10)
    yield case("Torch.linalg.matrix_exp", randn(3, 3, scale=10.0), rtol=1e-8, own_rtol=1e-2)
    yield case("Tensor.matrix_exp", fixed([[0.0, 1.0], [0.0, 0.0]]))


def cases() -> Iterator[Case]:
    yield case("Torch.linalg.solve_ex", randn(2, 3, 3), randn(2, 3, 2))
    yield from determinants()
    yield from systems()
    yield from cholesky()
    yield from exponential()
