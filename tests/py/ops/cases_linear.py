"""Products of matrices, vectors and tensors."""

from typing import Iterator

import torch

from ops.harness import Case, bools, case, fixed, ints, randn

NAN = float("nan")


def matmul() -> Iterator[Case]:
    shapes = [((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)), ((3, 4), (4, 5)), ((2, 3, 4), (4, 5)),
              ((2, 3, 4), (2, 4, 5)), ((2, 1, 3, 4), (5, 4, 6)), ((7, 1, 3, 4), (1, 2, 4, 5)), ((3, 4), (2, 4, 5)),
              ((2, 3, 4), (4,)), ((4,), (2, 4, 3)), ((0, 4), (4, 5)), ((3, 0), (0, 5)), ((2, 3, 0), (2, 0, 4)),
              ((0,), (0,)), ((0, 3, 4), (4, 5)), ((1, 1), (1, 1)), ((5, 1), (1, 5)), ((1, 7), (7, 9)), ((9, 7), (7, 1)),
              ((65, 130), (130, 67)), ((1,), (1, 1, 1)), ((2, 2, 2, 3), (3,)), ((3, 1, 1, 2), (1, 4, 2, 3))]
    for a, b in shapes:
        yield case("Torch.matmul", randn(*a), randn(*b), bfloat16=a[-1] < 100)  # PyTorch adds bfloat16 up in bfloat16
    yield case("Tensor.matmul", randn(5, 3).t(), randn(10, 8)[::2, 1:4])
    yield case("Tensor.__matmul__", randn(2, 3), randn(3, 2))
    yield case("Tensor.__rmatmul__", randn(3, 2), randn(4, 3))
    yield case("Torch.linalg.matmul", randn(2, 3), randn(3, 2))
    yield case("Torch.matmul", ints(-9, 9, 3, 4), ints(-9, 9, 4, 2))
    yield case("Torch.matmul", ints(0, 200, 3, 40, dtype=torch.uint8), ints(0, 200, 40, 2, dtype=torch.uint8))
    yield case("Torch.matmul", ints(-2**62, 2**62, 3, 5), ints(-2**62, 2**62, 5, 2))
    yield case("Torch.matmul", fixed([[NAN, 0.0], [1.0, float("inf")]]), fixed([[0.0, 1.0], [0.0, 2.0]]))
    yield case("Torch.matmul", randn(3, 4), randn(5, 4), refused=True)
    yield case("Torch.matmul", randn(2, 3, 4), randn(3, 4, 5), refused=True)
    yield case("Torch.matmul", randn(), randn(3), refused=True)
    yield case("Torch.matmul", bools(2, 2), bools(2, 2), refused=True)


def mixed() -> Iterator[Case]:
    """What autocast leaves in dumps: PyTorch refuses it, plumb answers in the type of lower precision."""
    low = randn(3, 4, dtype=torch.bfloat16)

    def cast(function):
        def run(*args, **kwargs):
            if all(a.dtype == torch.float64 for a in args):
                return function(*args, **kwargs)
            return function(*[a.bfloat16() for a in args], **kwargs)
        return run
    yield case("Torch.matmul", low, randn(4, 5), ref=cast(torch.matmul), own_rtol=2e-2)
    yield case("Functional.linear", randn(2, 4), low, randn(3), ref=cast(torch.nn.functional.linear), own_rtol=2e-2)
    yield case("Torch.addmm", ints(0, 9, 2, 4), ints(0, 9, 2, 3), ints(0, 9, 3, 4), beta=0.6, alpha=2.7)
    yield case("Torch.addmm", randn(3, 5), low, randn(4, 5), ref=cast(torch.addmm), own_rtol=2e-2)
    yield case("Functional.conv1d", randn(1, 2, 6), randn(3, 2, 3, dtype=torch.bfloat16), randn(3),
               ref=cast(torch.nn.functional.conv1d), own_rtol=1e-1)


def strict() -> Iterator[Case]:
    yield case("Torch.mm", randn(3, 4), randn(4, 2), bfloat16=True)
    yield case("Tensor.mm", randn(4, 3).t(), randn(4, 2), bfloat16=True)
    yield case("Torch.mm", randn(3, 4), randn(4), refused=True)
    yield case("Torch.bmm", randn(2, 3, 4), randn(2, 4, 5))
    yield case("Tensor.bmm", randn(2, 3, 4), mat2=randn(2, 4, 5))
    yield case("Torch.bmm", randn(0, 3, 4), randn(0, 4, 5))
    yield case("Torch.bmm", randn(1, 3, 4), randn(2, 4, 5), refused=True)
    yield case("Torch.mv", randn(3, 4), randn(4))
    yield case("Tensor.mv", randn(3, 4), vec=randn(4))
    yield case("Torch.dot", randn(9), randn(9))
    yield case("Torch.dot", randn(0), randn(0))
    yield case("Torch.dot", ints(-9, 9, 4), ints(-9, 9, 4))
    yield case("Torch.vdot", randn(9), randn(9))
    yield case("Torch.dot", randn(9), randn(8), refused=True)
    yield case("Aten.mm", randn(3, 4), randn(4, 2))
    low = ints(-128, 128, 3, 40, dtype=torch.int8), ints(-128, 128, 40, 2, dtype=torch.int8)
    yield case("Torch._int_mm", *low, ref=lambda a, b: a.int() @ b.int())
    yield case("Torch._int_mm", randn(2, 2), randn(2, 2), refused=True)
    for name in ("outer", "ger"):
        yield case(f"Torch.{name}", randn(3), randn(4))
        yield case(f"Tensor.{name}", randn(3), vec2=randn(0))
    yield case("Torch.outer", ints(0, 5, 3), randn(2))
    for shape in [(4,), (3, 4), (2, 3, 4), (0, 4), (2, 1, 1, 4)]:
        yield case("Functional.linear", randn(*shape), randn(5, 4), randn(5), bfloat16=True)
        yield case("Functional.linear", randn(*shape), randn(5, 4))
    yield case("Functional.linear", randn(3, 4), weight=randn(4))
    yield case("Functional.linear", randn(3, 4), randn(6, 5)[:, 1:], bias=None)
    yield case("Functional.linear", randn(3, 4), randn(5, 3), refused=True)


def sums() -> Iterator[Case]:
    for kwargs in ({}, {"beta": 0.5, "alpha": 2}, {"beta": 2}, {"alpha": 0}):
        yield case("Torch.addmm", randn(3, 5), randn(3, 4), randn(4, 5), **kwargs)
        yield case("Torch.addmv", randn(3), randn(3, 4), randn(4), **kwargs)
        yield case("Torch.addr", randn(3, 5), randn(3), randn(5), **kwargs)
        yield case("Torch.addbmm", randn(3, 5), randn(2, 3, 4), randn(2, 4, 5), **kwargs)
        yield case("Torch.baddbmm", randn(2, 3, 5), randn(2, 3, 4), randn(2, 4, 5), **kwargs)
    yield case("Tensor.addmm", randn(5), randn(3, 4), randn(4, 5), beta=0.25)
    for factors in ({"beta": 0.2, "alpha": 2.9}, {"beta": -2.6, "alpha": 0.6}):  # of integers what is whole
        yield case("Torch.addmm", ints(0, 9, 3, 5), ints(0, 9, 3, 4), ints(0, 9, 4, 5), **factors)
        yield case("Torch.addmv", ints(0, 9, 3), ints(0, 9, 3, 4), ints(0, 9, 4), **factors)
        yield case("Torch.baddbmm", ints(0, 9, 2, 3, 5), ints(0, 9, 2, 3, 4), ints(0, 9, 2, 4, 5), **factors)
        yield case("Torch.addbmm", ints(0, 9, 3, 5), ints(0, 9, 2, 3, 4), ints(0, 9, 2, 4, 5), **factors)
    yield case("Tensor.addmm_", randn(3, 5), randn(3, 4), randn(4, 5), alpha=-1)
    yield case("Tensor.addmv_", randn(3), randn(3, 4), randn(4))
    yield case("Tensor.addr_", randn(3, 5), randn(3), randn(5))
    yield case("Tensor.addbmm_", randn(3, 5), randn(2, 3, 4), randn(2, 4, 5))
    yield case("Tensor.baddbmm_", randn(2, 3, 5), randn(2, 3, 4), randn(2, 4, 5))
    yield case("Torch.addmm", randn(1, 5), randn(3, 4), randn(4, 5))
    yield case("Torch.addmm", randn(), randn(3, 4), randn(4, 5))
    yield case("Torch.addmm", fixed([[NAN, 1.0]]), randn(2, 3), randn(3, 2), beta=0)
    yield case("Torch.addmv", fixed([NAN, NAN]), randn(2, 3), randn(3), beta=0)
    yield case("Torch.addmm", ints(-5, 5, 2, 2), ints(-5, 5, 2, 3), ints(-5, 5, 3, 2), beta=2, alpha=-3)
    yield case("Torch.addmm", randn(3, 5), randn(3, 0), randn(0, 5))
    yield case("Torch.baddbmm", randn(1, 1, 5), randn(2, 3, 4), randn(2, 4, 5))
    yield case("Torch.addmm", randn(4, 5), randn(3, 4), randn(4, 5), refused=True)
    yield case("Torch.addmm", randn(2, 3, 5), randn(3, 4), randn(4, 5), refused=True)


def sparse() -> Iterator[Case]:
    """The names of sparse products; a dump holds their arguments as dense tensors."""
    for name in ("hspmm", "smm", "dsmm", "spmm", "hsmm"):
        yield case(f"Torch.{name}", randn(3, 4), randn(4, 2), ref=torch.mm)
    yield case("Tensor.smm", randn(3, 4), mat2=randn(4, 2), ref=lambda a, mat2: a @ mat2)
    yield case("Torch.hspmm", randn(3, 4), randn(3, 2), refused=True)
    for name in ("Torch.sspaddmm", "Tensor.sspaddmm", "Torch.saddmm"):
        yield case(name, randn(3, 5), randn(3, 4), randn(4, 5), ref=torch.addmm)
        yield case(name, randn(3, 5), randn(3, 4), randn(4, 5), beta=0.5, alpha=2, ref=torch.addmm)
    yield case("Torch.sspaddmm", randn(3, 5), randn(3, 4), randn(5, 4), refused=True)


def cases() -> Iterator[Case]:
    yield from matmul()
    yield from mixed()
    yield from strict()
    yield from sums()
    yield from sparse()
