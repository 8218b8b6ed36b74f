"""Metrics of values at the ends of their types, against exact arithmetic: subnormal numbers, numbers whose squares
leave float64 at either end, and numbers whose sums and differences do."""

import itertools
import math
import random
import unittest
from decimal import Context, Decimal, localcontext
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from python_case import Case

import torch

from plumb import _core
from plumb.tensors import view

WIDE = Context(prec=60, Emax=10**9, Emin=-10**9)
INFINITE = Decimal("inf")
SIZES: Dict[torch.dtype, Tuple[float, ...]] = {
    torch.float64: (1e-320, 1e-308, 1e-160, 1.0, 300.0, 1e20, 1e160, 1e308),
    torch.float32: (1e-44, 1e-38, 1e-20, 1.0, 300.0, 1e20, 1e38),
    torch.bfloat16: (1e-39, 1e-38, 1.0, 1e20, 1e38),
    torch.float16: (1e-7, 1e-5, 1.0, 300.0, 5e4),
}
# Explicit bits of the significand, the least exponent of a normal number.
TYPES = {torch.float64: (52, -1022), torch.float32: (23, -126), torch.bfloat16: (7, -126), torch.float16: (10, -14)}
GROUPS = (None, ("cosine", "euclidean", "max_abs", "max_rel"), ("kl",), ("mean_rel", "mean_abs", "target_norm", "golden_std"))


def root(x: Decimal) -> Decimal:
    return x.sqrt()


def quotient(a: Decimal, b: Decimal) -> Decimal:
    return Decimal(0) if a == 0 else a / b if b else INFINITE


def divergence(t: List[Decimal], g: List[Decimal]) -> Tuple[Decimal, Decimal]:
    """Of softmax(g) from softmax(t), and how much of it shares below exp(-355) may have, which are not counted."""
    def shares(x: List[Decimal]) -> Tuple[List[Decimal], Decimal]:
        away = [value - max(x) for value in x]
        return away, sum(value.exp() if value > -3000 else Decimal(0) for value in away)
    (of_g, sum_g), (of_t, sum_t) = shares(g), shares(t)
    constant = sum_t.ln() - sum_g.ln()
    parts = [(a, a.exp() / sum_g * (a - b + constant)) for a, b in zip(of_g, of_t) if a > -3000]
    return max(Decimal(0), sum(part for _, part in parts)), sum(abs(part) for a, part in parts if a < -355)


def side(name: str, x: List[Decimal]) -> Dict[str, Decimal]:
    n, mean = len(x), sum(x) / len(x)
    return {f"{name}_min": min(x), f"{name}_max": max(x), f"{name}_mean": mean, f"{name}_norm": root(sum(v * v for v in x)),
            f"{name}_std": root(sum((v - mean)**2 for v in x) / (n - 1)) if n > 1 else Decimal("nan")}


def expected(dtype: torch.dtype, target: Sequence[float], golden: Sequence[float]) -> Tuple[Dict[str, float], float]:
    t, g, n = list(map(Decimal, target)), list(map(Decimal, golden)), len(target)
    size = [abs(a - b) for a, b in zip(t, g)]
    tt, gg, dd = (sum(v * v for v in x) for x in (t, g, size))
    product = sum(a * b for a, b in zip(t, g))
    cosine = product / (root(tt) * root(gg)) if tt and gg else Decimal(int(tt == gg))
    # An infinite ratio is one that float64 cannot hold.
    ratio = [Decimal(float(quotient(a, abs(b)))) for a, b in zip(size, g)]
    kl, uncounted = divergence(t, g)
    bits, least = TYPES[dtype]
    exponents = [max(least, math.frexp(v)[1] - 1) if v else 0 for v in golden]
    ulps = [Decimal(float(a * Decimal(2)**(bits - e))) for a, e in zip(size, exponents)]
    wanted = {"cosine": cosine, "one_minus_cosine": 1 - cosine, "euclidean": root(dd), "rmse": root(dd / n),
              "relative_euclidean": root(quotient(dd, gg)), "max_abs": max(size), "mean_abs": sum(size) / n,
              "min_abs": min((v for v in size if v), default=Decimal(0)), "max_rel": max(ratio), "mean_rel": sum(ratio) / n,
              "max_ulp": max(ulps), "mean_ulp": sum(ulps) / n, "kl": kl,
              **side("target", t), **side("golden", g)}
    for name, limit in (("1e2", 1e-2), ("5e3", 5e-3), ("1e3", 1e-3), ("1e4", 1e-4)):
        wanted[f"rel_below_{name}"] = Decimal(sum(r < Decimal(limit) for r in ratio)) / n
    return {name: float(value) for name, value in wanted.items()}, float(uncounted)


def tolerance(name: str, wanted: Dict[str, float], uncounted: float) -> float:
    size = abs(wanted[name])
    if name == "cosine":
        return 1e-13
    if name == "one_minus_cosine":
        return 1e-12 * size + 4e-16
    if name == "kl":
        return 1e-9 * size + 1e-10 + uncounted
    if name.endswith("_mean"):
        return 1e-13 * max(abs(wanted[name[:6] + "_min"]), abs(wanted[name[:6] + "_max"]))
    return 1e-11 * size + 1e-320


def is_right(name: str, got: float, wanted: Dict[str, float], uncounted: float) -> bool:
    if math.isfinite(got) and math.isfinite(wanted[name]):
        return abs(got - wanted[name]) <= tolerance(name, wanted, uncounted)
    return got == wanted[name] or (math.isnan(got) and math.isnan(wanted[name]))


def pairs(dtype: torch.dtype, draw: random.Random) -> Iterator[Tuple[str, torch.Tensor, torch.Tensor]]:
    """Sides of all sizes and mixtures of them; also close to each other, opposite, and with one change."""
    largest = torch.finfo(dtype).max
    sizes: Sequence[Optional[float]] = (*SIZES[dtype], None)

    def values(size: Optional[float], n: int) -> torch.Tensor:
        x = [draw.uniform(-1.7, 1.7) * (draw.choice(SIZES[dtype]) if size is None else size) for _ in range(n)]
        return torch.tensor([max(-largest, min(largest, v)) for v in x], dtype=torch.float64).to(dtype)

    def near(x: torch.Tensor) -> torch.Tensor:
        factors = [1 - draw.choice((0, 1e-3, 1e-8)) * draw.random() for _ in range(len(x))]
        return (x.double() * torch.tensor(factors, dtype=torch.float64)).to(dtype)

    def changed(x: torch.Tensor) -> torch.Tensor:
        x = x.clone()
        x[draw.randrange(len(x))] *= -1
        return x

    like: Dict[str, Callable[[torch.Tensor], torch.Tensor]] = {"near": near, "opposite": torch.neg, "one changed": changed}
    for n in (1, 3, 40):
        for a, b in itertools.product(sizes, sizes):
            yield f"{n} of {a} against {b}", values(a, n), values(b, n)
        for (what, make), size in itertools.product(like.items(), sizes):
            g = values(size, n)
            yield f"{n} of {size}, {what}", make(g), g
    for size in sizes:  # more than a block, with another one after it
        t, g = values(size, 1100), values(None, 1100)
        yield f"1100 of {size} against a mixture", t, g


class EdgesTest(Case):
    def check(self, dtype: torch.dtype) -> None:
        wrong: List[str] = []
        with localcontext(WIDE):
            for what, t, g in pairs(dtype, random.Random(1)):
                wanted, uncounted = expected(dtype, t.double().tolist(), g.double().tolist())
                for names in GROUPS:  # not all of them go the same way through memory
                    got = _core.compare(view(t), view(g), names)
                    wrong += [f"{name} of {what} is {got[name]}, not {wanted[name]}" for name in names or wanted
                              if not is_right(name, got[name], wanted, uncounted)]
        self.assertEqual(wrong, [])

    def test_float64(self) -> None:
        self.check(torch.float64)

    def test_float32(self) -> None:
        self.check(torch.float32)

    def test_bfloat16(self) -> None:
        self.check(torch.bfloat16)

    def test_float16(self) -> None:
        self.check(torch.float16)


if __name__ == "__main__":
    unittest.main()
