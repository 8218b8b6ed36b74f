"""Operators that PyTorch 2 has beside those of the other files; PyTorch 1.13 has no kernels for them."""

import math
from typing import Any, Iterator

import torch
import torch.nn.functional as F

from ops.harness import TORCH, Case, bools, case, ints, randn, uniform


def recurrence(kind: str, x: Any, n: int) -> Any:
    """A polynomial of degree n from numpy's coefficients, which are whole numbers or exact halves."""
    import numpy
    from numpy.polynomial import chebyshev, hermite, hermite_e, laguerre, legendre
    module = {"h": hermite, "he": hermite_e, "l": laguerre, "p": legendre}.get(kind, chebyshev)
    series = [0.0] * n + [1.0]
    if kind == "u":  # U_n = 2 (T_n + T_(n-2) + ...), T_0 once
        series = [0.0 if (n - k) % 2 else 2.0 if k else 1.0 for k in range(n + 1)]
    elif kind in ("v", "w"):  # U_n -+ U_(n-1)
        sign = -1 if kind == "v" else 1
        series = [(2.0 if k else 1.0) * (1 if (n - k) % 2 == 0 else sign) for k in range(n + 1)]
    name = {hermite: "hermval", hermite_e: "hermeval", laguerre: "lagval", legendre: "legval", chebyshev: "chebval"}
    return torch.from_numpy(numpy.asarray(getattr(module, name[module])(x.double().numpy(), series)))


def polynomial(kind: str, shifted: bool) -> Any:
    def ref(x: Any, n: Any) -> Any:
        x, n = torch.broadcast_tensors(torch.as_tensor(x, dtype=torch.float32 if isinstance(x, float) else None),
                                       torch.as_tensor(n))
        dtype = x.dtype
        found = [recurrence(kind, (2 * v.double() - 1 if shifted else v.double())[None], int(d))[0] if d >= 0 else
                 torch.zeros((), dtype=torch.float64) for v, d in zip(x.flatten(), n.flatten())]
        return torch.stack(found).reshape(x.shape).to(dtype)
    return ref


def polynomials() -> Iterator[Case]:
    for kind, name in (("t", "chebyshev_polynomial_t"), ("u", "chebyshev_polynomial_u"),
                       ("v", "chebyshev_polynomial_v"), ("w", "chebyshev_polynomial_w"),
                       ("h", "hermite_polynomial_h"), ("he", "hermite_polynomial_he"),
                       ("l", "laguerre_polynomial_l"), ("p", "legendre_polynomial_p")):
        for shifted in (False, True) if kind in "tuvw" else (False,):
            full = f"special.{'shifted_' if shifted else ''}{name}"
            ref = polynomial(kind, shifted)
            x = uniform(-1.5, 1.5, 4, 1).detach()
            yield case(f"Torch.{full}", x, torch.tensor([-1, 0, 1, 2, 5, 9]), ref=ref, backward=False, rtol=1e-10)
            yield case(f"Torch.{full}", x, 4, ref=ref, backward=False, rtol=1e-10)
            yield case(f"Torch.{full}", 0.25, torch.tensor([3, 7]), ref=ref, backward=False, rtol=1e-6)


def solved() -> Iterator[Case]:
    a, b = randn(2, 4, 4), randn(2, 4, 3)
    yield case("Aten._linalg_det", a, ref=torch.linalg.det)
    yield case("Aten._linalg_slogdet", a, ref=torch.linalg.slogdet, grad_output=1)
    yield case("Aten._linalg_solve_ex", a, b, ref=torch.linalg.solve)
    yield case("Aten._linalg_solve_ex", a, randn(2, 3, 4), left=False,
               ref=lambda a, b, left: torch.linalg.solve(a.mT, b.mT).mT)


def normed() -> Iterator[Case]:
    x, w, b = randn(4, 3, 5), randn(3), randn(3)
    mean, var = uniform(-1, 1, 3).detach(), uniform(0.5, 2, 3).detach()

    def updated(x: Any, w: Any, b: Any, mean: Any, var: Any, momentum: float, eps: float) -> Any:
        return torch.native_batch_norm(x, w, b, mean, var, True, momentum, eps)
    yield case("Aten._batch_norm_with_update", x, w, b, mean, var, 0.1, 1e-5, ref=updated)
    plain = [t.detach() for t in (randn(4, 3, 5), x, w)]
    _, kept, rstd = torch.native_batch_norm(plain[1], plain[2], None, None, None, True, 0.1, 1e-5)
    for update in (True, False):
        yield case("Aten.batch_norm_backward", *plain, mean, var, kept, rstd, update, 1e-5, [True, True, True],
                   torch.zeros(0, dtype=torch.uint8), ref=lambda *a: torch.ops.aten.native_batch_norm_backward(*a[:-1]))


def moved() -> Iterator[Case]:
    def chunks(tensors: Any, dim: int, n: int) -> Any:
        parts = []
        for x in tensors:
            short = -x.shape[dim] % n
            pad = x.new_zeros(*x.shape[:dim], short, *x.shape[dim + 1:])
            parts.append(torch.cat([x, pad], dim).reshape(*x.shape[:dim], n, -1))
        return torch.cat(parts, dim + 1)
    yield case("Aten._chunk_cat", [randn(5, 2), randn(3, 4), randn(4)], 0, 2, ref=chunks)
    yield case("Aten._chunk_cat", [randn(2, 5, 3), randn(2, 3)], 1, 3, ref=chunks)
    yield case("Aten._chunk_cat", [randn(2, 5)], 2, 3, refused=True)

    def chosen(g: Any, mask: Any, sizes: Any) -> Any:
        found, n = torch.masked_select(g, mask.expand_as(g)), math.prod(sizes)
        return torch.cat([found, found.new_zeros(max(0, n - found.numel()))])[:n].reshape(sizes)
    yield case("Aten.masked_scatter_backward", randn(3, 4), bools(3, 4), [2, 7], ref=chosen)
    yield case("Aten.masked_scatter_backward", randn(3, 4), bools(4), [12], ref=chosen)


def losses() -> Iterator[Case]:
    def ref(x: Any, w: Any, target: Any, linear_bias: Any = None, **more: Any) -> Any:
        return F.cross_entropy(F.linear(x, w, linear_bias), target, **more)
    x, w, target = randn(6, 4), randn(5, 4), ints(0, 5, 6)
    for named in ({}, {"linear_bias": randn(5)}, {"reduction": "sum", "label_smoothing": 0.1},
                  {"reduction": "none", "weight": uniform(0.5, 2, 5).detach()}, {"ignore_index": 2}):
        yield case("Functional.linear_cross_entropy", x, w, target, ref=ref, bfloat16=not named, **named)
    yield case("Functional.linear_cross_entropy", randn(4), w, ints(0, 5), ref=ref)
    yield case("Functional.linear_cross_entropy", randn(2, 3, 4), w, target, refused=True)


def masked_index(x: Any, mask: Any, indices: Any, fill: Any) -> Any:
    at = tuple(slice(None) if k is None else k.clamp(-n, n - 1) for k, n in zip(indices, x.shape))
    return x[at].masked_fill(~mask, fill)


def masked_put(x: Any, mask: Any, indices: Any, values: Any) -> Any:
    at = tuple(torch.arange(n) if k is None else k.clamp(-n, n - 1) for k, n in zip(indices, x.shape))
    return torch.index_put(x, at, values.masked_fill(~mask, 0), accumulate=True)


def masked() -> Iterator[Case]:
    """Places that the mask hides may lie anywhere."""
    rows, columns = torch.tensor([[0], [3], [1], [7]]), torch.tensor([[-3, 0, 9]])
    mask = (rows < 4) & (columns < 5) & (columns > -1)
    kernel = {"ref": masked_index}, {}
    put = {"ref": masked_put}, {}
    for k in range(2 if TORCH >= (2, 6) else 1):
        yield case("Aten._unsafe_masked_index", randn(4, 5), mask, [rows, columns], 0.5, **kernel[k])
        yield case("Aten._unsafe_masked_index", randn(2, 5), mask[:2, :2], [None, columns[0, :2]], 0, **kernel[k])
        yield case("Aten._unsafe_masked_index", ints(0, 9, 4, 5), mask, [rows, columns], 7, **kernel[k])
        yield case("Aten._unsafe_masked_index_put_accumulate", randn(4, 5), mask, [rows, columns], randn(4, 3), **put[k])
        yield case("Aten._unsafe_masked_index_put_accumulate", randn(4, 5), torch.ones(3, dtype=torch.bool),
                   [torch.tensor([1, 1, 2]), torch.tensor([0, 0, 4])], randn(3), **put[k])
    yield case("Aten._unsafe_masked_index", randn(4, 5), mask, [rows, columns, rows], 0.5, refused=True)
    yield case("Aten._unsafe_masked_index", randn(4, 5), mask[:, :2], [rows, columns], 0.5, refused=True)


def cases() -> Iterator[Case]:
    for part in (polynomials, solved, normed, moved, losses, masked):
        yield from part()
