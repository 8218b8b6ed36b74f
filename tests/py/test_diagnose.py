"""plumb.diagnose on models of one page: what is wrong is named, what is not is not, and nothing is passed over."""

import copy
import math
import os
import unittest
from typing import Any, Callable, Optional

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

import python_case  # noqa: E402,F401  finds the package
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import plumb  # noqa: E402


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(32), nn.Linear(32, 64), nn.Linear(64, 32)
        self.approximate = "none"
        self.edge: Optional[float] = None
        self.scale = 1.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = F.gelu(self.up(self.norm(x)), approximate=self.approximate)
        return x + self.down(torch.logit(torch.sigmoid(h), eps=self.edge)) * self.scale


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*[Block() for _ in range(3)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.blocks(x)
        return y


class Diagnose(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(0)
        self.model, self.x = Model().eval(), torch.randn(8, 32)

    def changed(self, **how: Any) -> nn.Module:
        other = copy.deepcopy(self.model)
        for name, value in how.items():
            setattr(other.blocks[1], name, value)
        return other

    def test_right(self) -> None:
        for way in ("bfloat16", "float64", None):
            found = plumb.diagnose(self.model, self.x, way, backward=True)
            self.assertTrue(found, found)
            self.assertIsNone(found.first)
            self.assertIn("Nothing is wrong: what differs is rounding.", str(found))

    def test_another_word(self) -> None:
        """A text among the arguments: also where 16 bits do not show what it does."""
        other = self.changed(approximate="tanh")
        for a, b in ((other, None), ({"model": other, "dtype": "bfloat16"}, "bfloat16")):
            found = plumb.diagnose(self.model, self.x, a, b)
            self.assertFalse(found)
            self.assertEqual((found.first["kind"], found.first["module"], found.first["place"]),
                             ("source", "blocks.1", "input.approximate"))
            self.assertIn("it is 'tanh', and 'none' in the other run", str(found))

    def test_left_out(self) -> None:
        """An argument that one run leaves out counts where it changes the result."""
        found = plumb.diagnose(self.model, self.x, self.changed(edge=0.4))
        self.assertEqual((found.first["kind"], found.first["module"]), ("source", "blocks.1"), found)
        self.assertIn("it is 0.4, and left out in the other run", str(found))
        self.assertTrue(plumb.diagnose(self.model, self.x, self.changed(edge=1e-7)))

    def test_fault(self) -> None:
        other = self.changed()
        right = other.blocks[1].up.forward
        other.blocks[1].up.forward = lambda x: right(x) * 1.01
        found = plumb.diagnose(self.model, self.x, other)
        self.assertEqual((found.first["kind"], found.first["module"], found.first["place"]),
                         ("fault", "blocks.1.up", "output 0"), found)
        self.assertNotIn("stale", found.first["why"])  # what its own last call gave is no other tensor

    def test_more_calls(self) -> None:
        """A call that only one of them makes is never passed over."""
        class More(Block):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return super().forward(x).neg().neg()
        other = copy.deepcopy(self.model)
        other.blocks[1].__class__ = More
        self.assertIn("no counterpart", str(plumb.diagnose(self.model, self.x, other)))

    def with_more(self, more: Callable[[torch.Tensor], torch.Tensor]) -> nn.Module:
        """The second block does something to what it gives to `down`."""
        class More(Block):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                h = F.gelu(self.up(self.norm(x)), approximate=self.approximate)
                return x + self.down(more(torch.logit(torch.sigmoid(h), eps=self.edge))) * self.scale
        other = copy.deepcopy(self.model)
        other.blocks[1].__class__ = More
        return other

    def test_a_call_that_one_goes_on_without(self) -> None:
        """It is the first difference, though it is right and in 16 bits what follows might be rounding."""
        for more, name in ((lambda h: h * 1.02, "__mul__"), (lambda h: torch.tanh(h * 0.5) + 0.1, "__mul__"),
                           (lambda h: h.roll(1, -1), "roll")):
            other = self.with_more(more)
            for a, b in ((other, None), ({"model": other, "dtype": "bfloat16"}, None), (None, other),
                         ("bfloat16", other)):
                with self.subTest(name=name, a=a, b=b):
                    found = plumb.diagnose(self.model, self.x, a, b)
                    self.assertFalse(found, found)
                    side = "b" if b is other else "a"
                    self.assertEqual(("extra", "blocks.1", side),
                                     (found.first["kind"], found.first["module"], found.first["side"]), found)
                    self.assertIn(name, found.first["call"])
                    self.assertIn(f"only {side} does this; it changes what it is given by", str(found))

    def test_the_same_in_more_calls(self) -> None:
        class Stepwise(Block):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                h = self.up(self.norm(x))
                h = h * 0.5 * (1.0 + torch.erf(h / math.sqrt(2.0)))
                return x + self.down(torch.logit(torch.sigmoid(h), eps=self.edge)) * self.scale
        stepwise = copy.deepcopy(self.model)
        stepwise.blocks[1].__class__ = Stepwise
        for other in (self.with_more(lambda h: h * 1.0), self.with_more(lambda h: h.clone() + 0.0),
                      self.with_more(lambda h: (h * 2.0) / 2.0), self.with_more(lambda h: h.t().contiguous().t()),
                      stepwise):
            for way in (None, "bfloat16", "float64"):
                found = plumb.diagnose(self.model, self.x, {"model": other, "dtype": way} if way else other)
                self.assertEqual([], found.extras, found)

    def test_nan(self) -> None:
        """Both may agree in it, and yet something is wrong."""
        with torch.no_grad():
            self.model.blocks[2].down.weight[3, 5] = float("nan")
        found = plumb.diagnose(self.model, self.x, "bfloat16")
        self.assertFalse(found)
        for side in "ab":
            self.assertIn(f"8 of the 256 numbers that {side} gives are NaN.", str(found))


if __name__ == "__main__":
    unittest.main()
