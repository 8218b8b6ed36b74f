"""Dropout draws as PyTorch's CPU generator does, so that the same seed drops the same elements."""

import ctypes as c
import sys
import unittest
from pathlib import Path
from typing import Any, List

import numpy
import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).parent))
from ops.native import OWN, RAISED, Call, Native  # noqa: E402

NEXT = c.CFUNCTYPE(c.c_uint32, c.c_void_p)


class CDraws(c.Structure):
    _fields_ = [("next", NEXT), ("state", c.c_void_p)]


class Dropout(unittest.TestCase):
    native = Native()

    def run_plumb(self, seed: int, name: str, *args: Any, prefix: str = "Functional") -> "tuple[List[Any], int]":
        """Outputs, and how many draws they took of the Mersenne Twister that PyTorch has too."""
        twister = numpy.random.RandomState(seed)
        taken = [0]

        def draw(_: Any) -> int:
            taken[0] += 1
            return int(twister.randint(0, 2 ** 32, dtype=numpy.uint64))

        draws = CDraws(NEXT(draw), None)
        call = Call(prefix, name, args, {})
        call.c.draws = c.cast(c.pointer(draws), c.c_void_p)
        return self.native.run(call, OWN)[0], taken[0]

    def test_same_elements_as_torch(self) -> None:
        for name, shape in (("dropout", (7, 11)), ("alpha_dropout", (5, 4)), ("dropout1d", (3, 4, 2)),
                            ("dropout2d", (3, 4, 2, 2)), ("dropout3d", (2, 3, 2, 2, 2)), ("dropout3d", (3, 2, 2, 2)),
                            ("feature_alpha_dropout", (3, 4, 2))):
            for p in (0.1, 0.5, 0.93):
                x = torch.rand(shape) + 1
                torch.manual_seed(99)
                want = getattr(F, name)(x, p, True)
                got, _ = self.run_plumb(99, name, x, p, True)
                self.assertTrue(torch.allclose(got[0], want, rtol=1e-6, atol=1e-6), f"{name} {p}\n{got[0]}\n{want}")

    def test_number_of_draws(self) -> None:
        x = torch.rand(6, 5)
        for p, training, draws in ((0.5, True, 60), (0.0, True, 0), (1.0, True, 0), (0.5, False, 0)):
            self.assertEqual(self.run_plumb(1, "dropout", x, p, training)[1], draws)
        self.assertEqual(self.run_plumb(1, "dropout2d", torch.rand(2, 3, 4, 4), 0.5, True)[1], 12)

    def test_without_draws(self) -> None:
        x = torch.ones(100, 100, requires_grad=True)
        (out,), _, _ = self.native.run(Call("Functional", "dropout", [x, 0.3, True], {}), RAISED)
        self.assertEqual(set(out.flatten().tolist()), {0.0, 1 / (1 - 0.3)})
        self.assertAlmostEqual((out == 0).double().mean().item(), 0.3, delta=0.02)
        again = self.native.run(Call("Functional", "dropout", [x, 0.3, True], {}), RAISED)[0][0]
        self.assertTrue(torch.equal(out, again))

    def test_gradient_goes_where_elements_stayed(self) -> None:
        x = torch.rand(20, 5, requires_grad=True)
        grad = torch.rand(20, 5, dtype=torch.float64)
        (out,), _, (dx,) = self.native.run(Call("Functional", "dropout", [x, 0.4, True], {}, grad), RAISED)
        self.assertTrue(torch.allclose(dx, grad * (out != 0) / 0.6))

    def test_native_dropout_says_what_stayed(self) -> None:
        x = torch.rand(4, 5) + 1
        (out, mask), draws = self.run_plumb(3, "native_dropout", x, 0.5, True, prefix="Torch")
        self.assertEqual((mask.dtype, draws), (torch.bool, 40))
        self.assertTrue(torch.allclose(out, x * mask * 2))


if __name__ == "__main__":
    unittest.main()
