"""Products and sums in the orders that right implementations use: one after the other, in blocks, as a
tree, from the end, with and without a rounding between multiply and add, and by the libraries here."""

from typing import Callable, Dict

import torch

Tensor = torch.Tensor
Product = Callable[[Tensor, Tensor], Tensor]
Total = Callable[[Tensor, int], Tensor]


def _nothing(a: Tensor, b: Tensor) -> Tensor:
    return torch.zeros(*a.shape[:-1], b.shape[-1], dtype=a.dtype)


# -- Products --------------------------------------------------------------------------------------


def sequential(a: Tensor, b: Tensor) -> Tensor:
    """A product that adds one term after the other."""
    out = _nothing(a, b)
    for k in range(a.shape[-1]):
        out = out + a[..., k:k + 1] * b[..., k:k + 1, :]
    return out


def fused(a: Tensor, b: Tensor) -> Tensor:
    """The same with FMA: float64 holds the product of two float32 exactly, only the sum is rounded."""
    out = _nothing(a, b)
    for k in range(a.shape[-1]):
        out = (out.double() + a[..., k:k + 1].double() * b[..., k:k + 1, :].double()).to(a.dtype)
    return out


def backwards(a: Tensor, b: Tensor) -> Tensor:
    return sequential(a.flip(-1), b.flip(-2))


def tree(a: Tensor, b: Tensor) -> Tensor:
    return pairwise(a.unsqueeze(-1) * b.unsqueeze(-3), -2)


def blocked(size: int) -> Product:
    """Blocks of so many terms, each added up by itself."""
    def run(a: Tensor, b: Tensor) -> Tensor:
        out = _nothing(a, b)
        for k in range(0, a.shape[-1], size):
            out = out + sequential(a[..., k:k + size], b[..., k:k + size, :])
        return out
    return run


def by_numpy(a: Tensor, b: Tensor) -> Tensor:
    """The BLAS that numpy has: OpenBLAS on Debian."""
    return torch.from_numpy(a.contiguous().numpy() @ b.contiguous().numpy())


def products(work: torch.dtype) -> Dict[str, Product]:
    found = {"sequential": sequential, "backwards": backwards, "pairwise": tree, "numpy": by_numpy,
             **{f"blocks of {size}": blocked(size) for size in (4, 16, 64)}}
    if work == torch.float32:
        found["FMA"] = fused
    return found


# -- Sums ------------------------------------------------------------------------------------------


def plain(x: Tensor, dim: int = -1) -> Tensor:
    return x.sum(dim)


def add_up(x: Tensor, dim: int = -1) -> Tensor:
    x = x.movedim(dim, 0)
    out = torch.zeros_like(x[0])
    for part in x:
        out = out + part
    return out


def add_down(x: Tensor, dim: int = -1) -> Tensor:
    return add_up(x.flip(dim), dim)


def pairwise(x: Tensor, dim: int = -1) -> Tensor:
    x = x.movedim(dim, 0)
    while x.shape[0] > 1:
        half = x.shape[0] // 2
        rest = x[2 * half:]
        x = torch.cat([x[:half] + x[half:2 * half], rest])
    return x[0]


def in_blocks(size: int) -> Total:
    def run(x: Tensor, dim: int = -1) -> Tensor:
        parts = [add_up(part, 0) for part in x.movedim(dim, 0).split(size)]
        return add_up(torch.stack(parts), 0)
    return run


TOTALS: Dict[str, Total] = {"sequential": add_up, "backwards": add_down, "pairwise": pairwise,
                            **{f"blocks of {size}": in_blocks(size) for size in (4, 16, 64)}}
