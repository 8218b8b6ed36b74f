"""Tensors from nothing, other types, facts about tensors."""

from typing import Iterator, Optional

import torch

from ops.harness import Case, bools, case, fixed, ints, randn, seed

NAN, INF = float("nan"), float("inf")


def constants() -> Iterator[Case]:
    yield case("Torch.full", (2, 3), 2.5)
    yield case("Torch.full", (2, 3), 2 ** 62 + 1)
    yield case("Torch.full", (2,), True)
    yield case("Torch.full", (), 0.25)
    yield case("Torch.full", (2, 0), 1)
    yield case("Torch.full", (2, 3), 7, dtype=torch.float32)
    yield case("Torch.full", (2, 3), 2.75, dtype=torch.int32)
    yield case("Torch.full", (-1,), 1, refused=True)
    yield case("Torch.full", (2 ** 40, 2 ** 40), 1, refused=True)
    yield case("Torch.full_like", randn(2, 3), 2.5)
    yield case("Torch.full_like", ints(0, 9, 2), 2)
    yield case("Torch.full_like", randn(2, 3), 2, dtype=torch.int64)
    yield case("Tensor.new_full", ints(0, 9, 2), (2, 3), 4)
    for name in ("zeros", "ones"):
        yield case(f"Torch.{name}", 2, 3)
        yield case(f"Torch.{name}", (2, 3))
        yield case(f"Torch.{name}", ())
        yield case(f"Torch.{name}", size=(2, 3), dtype=torch.int64)
        yield case(f"Torch.{name}_like", randn(2, 3))
        yield case(f"Torch.{name}_like", randn(2, 3), dtype=torch.bool)
        yield case(f"Tensor.new_{name}", ints(0, 9, 2), 2, 3)
        yield case(f"Tensor.new_{name}", randn(2), (2, 3), dtype=torch.uint8)
        yield case(f"Torch.{name}", 2 ** 62, refused=True)
    for name, args in (("Torch.empty", (2, 3)), ("Torch.empty_like", (randn(2),)), ("Tensor.new_empty", (randn(2), 3)),
                       ("Torch.empty_strided", ((2, 3), (3, 1))), ("Tensor.new_empty_strided", (randn(2), (3,), (1,)))):
        yield case(name, *args, values=False, backward=False)
    yield case("Aten.empty_permuted", [2, 3], [1, 0], values=False, backward=False, ref=lambda size, layout: torch.zeros(size))
    yield case("Aten._efficientzerotensor", [2, 3], ref=torch.zeros)
    yield case("Torch.scalar_tensor", 2.5)
    yield case("Torch.scalar_tensor", 3)
    yield case("Torch.scalar_tensor", 3, dtype=torch.int64)


def sequences() -> Iterator[Case]:
    for args in ((5,), (0,), (2, 7), (2, 8, 3), (5, 0, -2), (5, 5), (-3, 3)):
        yield case("Torch.arange", *args)
        yield case("Torch.arange", *args, dtype=torch.float32)
        yield case("Torch.arange", *args, dtype=torch.uint8)
    yield case("Torch.arange", 2 ** 60, 2 ** 60 + 5)
    yield case("Torch.linspace", 1.7, 9.9, 4, dtype=torch.int64)
    for args in ((2.5,), (0, 1, 0.1), (1.0, 2.0, 0.25), (1, 0, -0.3)):
        yield case("Torch.arange", *args, rtol=1e-6)
    for args in ((0.5, 6.5, 2), (4.3, -2.1, -1.2), (1.0, 2.0, 1.0), (1.7, 6.2, 1.0)):
        yield case("Torch.arange", *args, dtype=torch.int64)
        yield case("Torch.arange", *args, dtype=torch.int32)
    for args in ((-2.7, 3.9, 1), (1.7, 6.2, 1.4), (3.8,)):  # int64 is counted in integers up to PyTorch 2.6
        yield case("Torch.arange", *args, dtype=torch.int64, refused=True)
        yield case("Torch.arange", *args, dtype=torch.int32)
    yield case("Torch.arange", start=1, end=4)
    yield case("Torch.arange", 5, 0, refused=True)
    yield case("Torch.arange", 0, 5, 0, refused=True)
    yield case("Torch.arange", NAN, refused=True)
    yield case("Torch.arange", 0, 1e30, 1, refused=True)
    yield case("Torch.range", 1, 4, rtol=1e-6)
    yield case("Torch.range", 0, 1, 0.3, rtol=1e-6)
    for n in (0, 1, 2, 5, 8):
        yield case("Torch.linspace", -1, 2.5, n, dtype=torch.float32)
        yield case("Torch.logspace", -1, 2, n, dtype=torch.float32)
        yield case("Torch.logspace", 0, 3, n, base=2.0, dtype=torch.float32)
    yield case("Torch.linspace", 0, 10, 5, dtype=torch.int64)
    for n in (1, 2, 3):  # PyTorch's own are wrong from the first full vector on
        yield case("Torch.linspace", 4.3, -3.9, n, dtype=torch.int64)
        yield case("Torch.linspace", 0, 3, n, dtype=torch.int32)
    for n in (1, 2, 5, 9):
        yield case("Torch.logspace", 0.9, 3.2, n, dtype=torch.int64)
        yield case("Torch.logspace", 4, 1, n, base=2.5, dtype=torch.int32)
    yield case("Torch.linspace", 0.1, 0.7, steps=7, rtol=1e-6)
    yield case("Torch.linspace", 0, 1, -1, refused=True)
    for args in ((3,), (2, 4), (4, 2), (0,), (0, 3)):
        yield case("Torch.eye", *args)
    yield case("Torch.eye", 3, dtype=torch.int64)
    yield case("Torch.eye", -1, refused=True)
    for name in ("tril_indices", "triu_indices"):
        for args in ((3, 4), (4, 3, 1), (3, 3, -1), (2, 5, 9), (5, 2, -9), (0, 3), (3, 0)):
            yield case(f"Torch.{name}", *args)
        yield case(f"Torch.{name}", 3, 3, dtype=torch.int32)
    for name in ("hann", "hamming", "blackman", "bartlett", "kaiser"):
        for n in (0, 1, 2, 7, 8):
            yield case(f"Torch.{name}_window", n, dtype=torch.float32)
            yield case(f"Torch.{name}_window", n, False, dtype=torch.float32, check_own=n != 2)
        yield case(f"Torch.{name}_window", 9, rtol=1e-5)
        yield case(f"Torch.{name}_window", -1, refused=True)
    yield case("Torch.hamming_window", 6, True, 0.4, 0.7, dtype=torch.float32)
    yield case("Torch.kaiser_window", 6, True, 3.5, dtype=torch.float32)
    # PyTorch cannot differentiate its own: it multiplies in place.
    def powers(x: torch.Tensor, N: Optional[int] = None, increasing: bool = False) -> torch.Tensor:
        columns = [x ** k for k in range(x.shape[-1] if N is None else N)]
        return torch.stack(columns if increasing else columns[::-1], -1) if columns else x.new_zeros(*x.shape, 0)

    for n in (None, 0, 1, 2, 5):
        yield case("Torch.vander", randn(4), n, ref=powers)
        yield case("Torch.vander", randn(4).detach(), n)
    for n in (None, 2, 5):
        yield case("Torch.linalg.vander", randn(2, 3).detach(), N=n)
    yield case("Torch.vander", randn(4), increasing=True, ref=powers)
    yield case("Torch.vander", ints(-5, 5, 4), N=4)
    yield case("Torch.vander", randn(4, 2), refused=True)


def conversions() -> Iterator[Case]:
    # Quarters: what half and bfloat16 hold too, so that rounding plays no part in the reference.
    exact = [0.0, -0.0, 0.25, -1.75, 2.5, 3.0, -7.0, 100.0]
    for name in "float double half bfloat16 byte char short int long bool".split():
        yield case(f"Tensor.{name}", fixed([v for v in exact if name != "byte" or v >= 0],
                                          grad=name in ("float", "double")))
        yield case(f"Tensor.{name}", ints(0, 100, 5))
        yield case(f"Tensor.{name}", bools(5))
    yield case("Tensor.byte", ints(-300, 300, 9))
    yield case("Tensor.char", ints(-300, 300, 9, dtype=torch.int32))
    yield case("Tensor.int", ints(-2 ** 40, 2 ** 40, 9))
    yield case("Tensor.bool", fixed([0.0, -0.0, NAN, 1e-30, INF]))
    yield case("Tensor.to", fixed(exact, grad=True), torch.float64)
    yield case("Tensor.to", fixed(exact), dtype=torch.bfloat16)
    yield case("Tensor.to", fixed(exact), torch.int32, True)
    yield case("Tensor.to", fixed(exact), "cpu")
    yield case("Tensor.to", fixed(exact), "cpu", torch.int64)
    yield case("Tensor.to", fixed(exact), fixed([1], torch.int16))
    yield case("Tensor.to", fixed(exact), device="cpu", dtype=torch.int64)
    yield case("Aten._to_copy", fixed(exact), dtype=torch.int64)
    yield case("Tensor.type_as", fixed(exact), fixed([1], torch.int16))
    yield case("Tensor.type", fixed(exact), torch.int64)
    yield case("Tensor.type", fixed(exact), "torch.LongTensor")
    yield case("Tensor.type", fixed(exact), "torch.NoTensor", refused=True)


def facts() -> Iterator[Case]:
    x = randn(2, 3)
    for name in ("size", "stride"):
        yield case(f"Tensor.{name}", x)
        yield case(f"Tensor.{name}", x, -1)
        yield case(f"Tensor.{name}", x, 2, refused=True)
        yield case(f"Tensor.{name}", randn(3, 2).t())
    for name in ("numel", "dim", "__len__", "is_floating_point", "is_complex"):
        yield case(f"Tensor.{name}", x)
        yield case(f"Tensor.{name}", ints(0, 9, 0, 3))
    yield case("Tensor.__len__", randn(), refused=True)
    for value in (fixed(0.0), fixed([NAN]), fixed(3, torch.int64), torch.tensor(True)):
        yield case("Tensor.__bool__", value)
    yield case("Tensor.__bool__", randn(2), refused=True)
    yield case("Tensor.item", torch.tensor([2 ** 62 + 1]))
    yield case("Tensor.item", torch.tensor(True))
    yield case("Tensor.item", fixed([2.5]), ref=lambda t: t.reshape(()))
    yield case("Aten.is_same_size", randn(2, 3), ints(0, 9, 2, 3))
    yield case("Aten.is_same_size", randn(2, 3), randn(3, 2))


def cases() -> Iterator[Case]:
    seed("create")
    for part in (constants, sequences, conversions, facts):
        yield from part()
