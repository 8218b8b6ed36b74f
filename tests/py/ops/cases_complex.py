"""Complex numbers: their parts, functions of them, and real operators on each part."""

from typing import Iterator

import torch

from ops.harness import Case, bools, case, crandn, fixed, ints, randn, uniform


def parts() -> Iterator[Case]:
    yield case("Torch.view_as_real", crandn(3, 4))
    yield case("Torch.view_as_real", crandn())
    yield case("Torch.view_as_real", randn(3, 2), refused=True)
    yield case("Torch.view_as_complex", randn(3, 4, 2))
    yield case("Torch.view_as_complex", randn(2))
    yield case("Torch.view_as_complex", randn(3, 4, 3), refused=True)
    yield case("Torch.real", crandn(3, 4))
    yield case("Torch.real", randn(3, 4))
    yield case("Torch.imag", crandn(3, 4))
    yield case("Torch.imag", randn(3, 4), refused=True)
    yield case("Torch.complex", randn(3, 4), randn(3, 4))
    yield case("Torch.complex", randn(3, 1), randn(4))
    yield case("Torch.polar", uniform(0.5, 2, 3, 4), randn(3, 4, scale=3))
    yield case("Torch.conj", crandn(3, 4))
    yield case("Torch.conj_physical", crandn(3, 4))
    yield case("Torch.resolve_conj", crandn(3, 4))
    yield case("Torch.resolve_neg", crandn(3, 4))
    yield case("Torch.adjoint", crandn(3, 4))
    yield case("Torch.adjoint", crandn(2, 3, 4))
    yield case("Torch.is_complex", crandn(3))
    yield case("Tensor.copy_", crandn(3, 4), crandn(4))
    yield case("Tensor.copy_", crandn(3, 4), randn(4))
    yield case("Tensor.copy_", randn(3, 4), crandn(3, 4), backward=False)
    yield case("Torch.abs", crandn(3, 4))
    yield case("Torch.abs", fixed([0j, 3 + 4j], torch.complex64, grad=True), differences=False)
    yield case("Torch.angle", crandn(3, 4))
    yield case("Torch.sgn", crandn(3, 4))
    yield case("Torch.sgn", fixed([0j, 3 + 4j], torch.complex64, grad=True), differences=False)


def functions() -> Iterator[Case]:
    for name in ("exp", "log", "log2", "log10", "sqrt", "rsqrt", "reciprocal", "square", "sin", "cos", "tan", "sinh",
                 "cosh", "tanh", "sigmoid", "asin", "acos", "atan", "asinh", "atanh"):
        yield case(f"Torch.{name}", crandn(4, 5))
        yield case(f"Torch.{name}", crandn(7, scale=0.1))
    yield case("Torch.exp2", crandn(5), ref=lambda z: torch.exp(z * 0.6931471805599453094))
    yield case("Torch.log1p", crandn(5), ref=lambda z: torch.log(1 + z))
    yield case("Torch.expm1", crandn(5), ref=lambda z: torch.exp(z) - 1)
    # PyTorch's derivative of acosh is that of another branch to the left of zero.
    right = torch.complex(uniform(0.1, 2, 6).detach(), randn(6).detach()).requires_grad_(True)
    yield case("Torch.acosh", right)
    yield case("Tensor.exp_", crandn(4))
    yield case("Functional.silu", crandn(5), ref=lambda z: z * torch.sigmoid(z))
    yield case("Tensor.sqrt", fixed([-4 + 0j, 4j, -3 - 4j, 1e-8 + 0j], torch.complex64, grad=True), differences=False)


def pairs() -> Iterator[Case]:
    for name in ("add", "sub", "mul", "div"):
        yield case(f"Torch.{name}", crandn(3, 4), crandn(4))
        yield case(f"Torch.{name}", crandn(3, 1), randn(4))
        yield case(f"Torch.{name}", randn(3, 4), crandn(4))
        yield case(f"Torch.{name}", crandn(3, 4), 2.5)
        yield case(f"Torch.{name}", crandn(3, 4), 1 - 2j)
        yield case(f"Torch.{name}", randn(3, 4), 1 - 2j)
        yield case(f"Tensor.{name}_", crandn(3, 4), crandn(4))
    yield case("Torch.add", crandn(3), crandn(3), alpha=2)
    yield case("Torch.mul", crandn(3), ints(1, 5, 3))
    yield case("Torch.mul", crandn(3), crandn(3, dtype=torch.complex128))
    yield case("Torch.mul", crandn(3), crandn(dtype=torch.complex128))
    yield case("Torch.div", crandn(3), crandn(dtype=torch.complex128))
    yield case("Torch.rsub", crandn(3), 2.5)
    yield case("Tensor.__rsub__", crandn(3), 1j)
    yield case("Tensor.__rtruediv__", crandn(3), 2.0)
    yield case("Torch.pow", crandn(5), 2)
    yield case("Torch.pow", crandn(5), 0.5)
    yield case("Torch.pow", crandn(5), -1.5)
    yield case("Torch.pow", crandn(5), crandn(5))
    yield case("Torch.pow", uniform(0.5, 2, 5), crandn(5))
    yield case("Tensor.__rpow__", crandn(5), 2.0)
    yield case("Torch.addcmul", crandn(3), crandn(3), crandn(3), value=2)
    yield case("Torch.neg", crandn(3))
    yield case("Torch.positive", crandn(3))
    yield case("Torch.cross", crandn(4, 3), crandn(4, 3), 1)
    yield case("Torch.clamp", crandn(3), 0, refused=True)
    yield case("Torch.sort", crandn(3), refused=True)
    yield case("Torch.softmax", crandn(3), 0, refused=True)


def sums() -> Iterator[Case]:
    yield case("Torch.sum", crandn(3, 4))
    yield case("Torch.sum", crandn(3, 4), 1, keepdim=True)
    yield case("Torch.mean", crandn(3, 4), 0)
    yield case("Torch.cumsum", crandn(3, 4), 1)
    yield case("Torch.trace", crandn(3, 3))
    yield case("Torch.prod", crandn(7))
    yield case("Torch.prod", crandn(3, 5), 1)
    yield case("Torch.prod", crandn(3, 4), 0, keepdim=True)
    yield case("Torch.var", crandn(3, 5), 1)
    yield case("Torch.var", crandn(3, 5), dim=(1,), correction=2, keepdim=True)
    yield case("Torch.norm", crandn(3, 4))
    yield case("Torch.linalg.vector_norm", crandn(3, 4), 3, 1)
    yield case("Torch.diff", crandn(3, 5))


def products() -> Iterator[Case]:
    yield case("Torch.matmul", crandn(3, 4), crandn(4, 2))
    yield case("Torch.matmul", crandn(2, 3, 4), crandn(4))
    yield case("Torch.mm", crandn(3, 4), crandn(4, 2))
    yield case("Torch.bmm", crandn(2, 3, 4), crandn(2, 4, 2))
    yield case("Torch.mv", crandn(3, 4), crandn(4))
    # Some builds of PyTorch get these wrong, where the BLAS returns complex numbers otherwise.
    yield case("Torch.dot", crandn(5), crandn(5), ref=lambda a, b: (a * b).sum())
    yield case("Torch.vdot", crandn(5), crandn(5), ref=lambda a, b: (a.conj() * b).sum())
    yield case("Torch.linalg.vecdot", crandn(3, 5), crandn(3, 5), ref=lambda a, b: (a.conj() * b).sum(-1))
    yield case("Torch.outer", crandn(3), crandn(4))
    yield case("Torch.addmm", crandn(3, 2), crandn(3, 4), crandn(4, 2), beta=0.5, alpha=2)
    yield case("Torch.baddbmm", crandn(2, 3, 2), crandn(2, 3, 4), crandn(2, 4, 2))
    yield case("Torch.einsum", "ij,kj->ik", crandn(3, 4), crandn(2, 4))
    yield case("Torch.einsum", "ij,jk,kl->il", crandn(2, 3), crandn(3, 4), crandn(4, 2))
    yield case("Torch.linalg.multi_dot", [crandn(2, 3), crandn(3, 4), crandn(4, 2)])
    yield case("Torch.kron", crandn(2, 3), crandn(2, 2))
    yield case("Torch.tensordot", crandn(3, 4), crandn(4, 2), 1)
    yield case("Functional.linear", crandn(3, 4), crandn(2, 4), crandn(2))
    yield case("Functional.linear", crandn(3, 4), crandn(2, 4))


def moves() -> Iterator[Case]:
    yield case("Torch.reshape", crandn(2, 6), (3, 4))
    yield case("Tensor.view", crandn(2, 6), 3, 4)
    yield case("Tensor.permute", crandn(2, 3, 4), 2, 0, 1)
    yield case("Torch.transpose", crandn(2, 3, 4), 0, 2)
    yield case("Tensor.t", crandn(2, 3))
    yield case("Torch.squeeze", crandn(2, 1, 3))
    yield case("Torch.unsqueeze", crandn(2, 3), -1)
    yield case("Tensor.expand", crandn(3, 1), 3, 4)
    yield case("Torch.cat", [crandn(2, 3), crandn(1, 3)])
    yield case("Torch.cat", [crandn(2, 3), randn(1, 3)])
    yield case("Torch.stack", [crandn(3), crandn(3)], -1)
    yield case("Torch.split", crandn(5, 2), 2)
    yield case("Torch.unbind", crandn(2, 3))
    yield case("Tensor.__getitem__", crandn(4, 5), (slice(1, 3), 2))
    yield case("Tensor.__getitem__", crandn(4, 5), ints(0, 4, 3))
    yield case("Torch.index_select", crandn(4, 5), 1, ints(0, 5, 3))
    yield case("Torch.gather", crandn(4, 5), 1, ints(0, 5, 4, 2))
    yield case("Torch.masked_fill", crandn(3, 4), bools(3, 4), 1.5)
    yield case("Torch.where", bools(3, 4), crandn(3, 4), crandn(4))
    yield case("Torch.where", bools(3, 4), crandn(3, 4), randn(4), backward=False)  # PyTorch 1.13 has none
    yield case("Torch.index_put", crandn(4), [fixed([1, 2], torch.int64)], crandn(2))
    yield case("Torch.roll", crandn(3, 4), 1, 1)
    yield case("Torch.flip", crandn(3, 4), (0, 1))
    yield case("Torch.tril", crandn(4, 4))
    yield case("Torch.diagonal", crandn(4, 4))
    yield case("Functional.pad", crandn(3, 4), (1, 2))
    yield case("Functional.pad", crandn(3, 4), (1, 2), value=0.5)
    yield case("Tensor.clone", crandn(3))
    yield case("Tensor.repeat", crandn(3), 2, 2)
    yield case("Torch.zeros", 2, 3, dtype=torch.complex64)
    yield case("Torch.ones", 2, 3, dtype=torch.complex64)
    yield case("Torch.ones_like", crandn(3))
    yield case("Torch.zeros_like", crandn(3))
    yield case("Torch.full", (2, 3), 1 - 2j)
    yield case("Torch.full_like", crandn(3), 2.5)
    yield case("Torch.zeros_like", crandn(3), dtype=torch.float32)
    yield case("Torch.sum", crandn(3, 2), 0, dtype=torch.complex128)
    yield case("Torch.tensor_split", crandn(5), fixed([1, 3], torch.int64))
    yield case("Functional.pixel_shuffle", crandn(1, 4, 2, 2), 2)
    yield case("Torch.eye", 3, dtype=torch.complex64)


def truths() -> Iterator[Case]:
    same = fixed([1 + 2j, 1 + 3j, 2 + 2j, float("nan") + 0j], torch.complex64)
    other = fixed([1 + 2j, 1 + 2j, 1 + 2j, 1 + 2j], torch.complex64)
    yield case("Torch.eq", same, other)
    yield case("Torch.ne", same, other)
    yield case("Torch.equal", other, other)
    yield case("Torch.isfinite", same)
    yield case("Torch.isnan", same)
    yield case("Torch.isinf", fixed([1 + 2j, complex(0, float("inf"))], torch.complex64))
    yield case("Torch.count_nonzero", fixed([1j, 0j, 2 + 0j], torch.complex64))
    yield case("Torch.nonzero", fixed([1j, 0j, 2 + 0j], torch.complex64))


def cases() -> Iterator[Case]:
    for group in (parts, functions, pairs, sums, products, moves, truths):
        yield from group()
