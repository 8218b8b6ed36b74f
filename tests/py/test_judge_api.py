#!/usr/bin/python3
"""plumb.judge and assert_close(standard="expected") as a user calls them."""

import functools
import unittest

import python_case  # finds the package

import numpy
import torch
import torch.nn.functional as F
from torch import nn

import plumb
from plumb import _core

FINE = ("same", "rounding")


class Judge(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(1)
        self.x, self.w = torch.randn(24, 32), torch.randn(32, 40)

    def check(self, right, wrong, *call, **more) -> None:
        """Of two results the first is right, and the second is not."""
        good, bad = plumb.judge(right, *call, **more), plumb.judge(wrong, *call, **more)
        self.assertIn(good.verdict, FINE, good)
        self.assertTrue(good)
        self.assertEqual(bad.verdict, "fault", bad)
        self.assertFalse(bad)


class Operators(Judge):
    def test_every_way_to_name_one(self):
        y = torch.mm(self.x, self.w)
        for op in ("mm", "aten::mm", "aten.mm", "aten.mm.default", "torch.mm", "torch.ops.aten.mm",
                   torch.mm, torch.ops.aten.mm, torch.ops.aten.mm.default, torch.Tensor.mm):
            with self.subTest(op=str(op)):
                self.check(y, y * 1.01, op, (self.x, self.w))
        self.check(y, y * 1.01, self.x.mm, (self.w,))
        self.check(y, y * 1.01, self.x.mm, self.w)
        self.check(y, y * 1.01, functools.partial(torch.mm, self.x), self.w)
        g = F.gelu(self.x)
        for op in ("gelu", "torch.nn.functional.gelu", "F.gelu", F.gelu, torch._C._nn.gelu):
            with self.subTest(op=str(op)):
                self.check(g, g + 1e-3, op, self.x)
        z = F.softmax(self.x, -1)
        self.check(z, z * 1.01, F.softmax, self.x, {"dim": -1})
        self.check(z, z * 1.01, functools.partial(F.softmax, dim=-1), self.x)
        self.check(self.x.norm(), self.x.norm() * 1.01, torch.Tensor.norm, self.x)

    def test_two_orders_of_arguments(self):
        """A bare name is that of torch.nn.functional."""
        words = torch.randint(0, 24, (50,))
        y = F.embedding(words, self.x)
        for op in ("embedding", "F.embedding", F.embedding):
            self.check(y, y * 1.01, op, (words, self.x))
        self.check(y, y * 1.01, "aten::embedding", (self.x, words))

    def test_what_is_no_operator(self):
        for name, near in (("layernorm", "layer_norm"), ("matmull", "matmul"), ("relu7", "relu")):
            with self.assertRaises(plumb.Error) as caught:
                plumb.judge(self.x, name, self.x)
            self.assertIn(near, str(caught.exception))
        with self.assertRaisesRegex(plumb.Error, "plumb ops"):
            plumb.judge(self.x, "zzzzzzzz", self.x)
        for op in (lambda x: x, 3, None, torch.Tensor, sorted):
            with self.assertRaises(TypeError):
                plumb.judge(self.x, op, self.x)

    def test_arguments_that_make_no_sense(self):
        with self.assertRaises(plumb.Error):
            plumb.judge(self.x, "mm", (self.x, self.x))
        with self.assertRaises(plumb.Error):
            plumb.judge(self.x, "mm", (self.x, self.w), arithmetic="tf23")
        with self.assertRaisesRegex(TypeError, "list of numbers"):
            plumb.judge([[1.0, 2.0]], "neg", (torch.tensor([1.0, 2.0]),))
        with self.assertRaisesRegex(ValueError, "nothing to judge"):
            plumb.judge(None, "neg", self.x)
        with self.assertRaisesRegex(ValueError, "grad_outputs"):
            plumb.judge(self.x, "neg", self.x, got_grads=[self.x])


class Values(Judge):
    def test_on_an_autograd_graph(self):
        x = self.x.clone().requires_grad_()
        y = torch.mm(x, self.w)
        self.check(y, y * 1.01, "mm", (x, self.w))
        self.assertIsNone(x.grad)

    def test_numpy(self):
        x, w = self.x.numpy(), self.w.numpy()
        self.check(x @ w, x @ w * numpy.float32(1.01), "mm", (x, w))
        self.check((x @ w).T.copy().T, (x @ w)[::-1], "mm", (x, w))
        self.assertEqual(plumb.judge(numpy.float32(2), "neg", (numpy.float32(-2),)).verdict, "same")

    def test_strides_and_views(self):
        y = torch.mm(self.w.t(), self.x.t())
        self.check(y, y * 1.01, "mm", (self.w.t(), self.x.t()))
        self.check(y.t().contiguous().t(), y.flip(0), "mm", (self.w.t(), self.x.t()))
        part = self.x[::2, 1::3]
        self.check(part.exp(), part.exp() * 1.001, torch.exp, part)
        wide = self.x[:1].expand(5, 32)
        self.check(wide.exp(), wide.exp() * 1.001, torch.exp, wide)

    def test_scalars_and_empty_ones(self):
        x = torch.tensor(0.3)
        self.check(x.sin(), x.sin() * 1.01, "sin", x)
        empty = plumb.judge(torch.zeros(0, 3), "exp", torch.zeros(0, 3))
        self.assertEqual((empty.verdict, bool(empty)), ("not judged", False))

    def test_complex(self):
        z = torch.view_as_complex(torch.randn(40, 8, 2))
        self.check(z * z, z * z.conj(), torch.mul, (z, z))
        self.check(z * 2j, z * -2j, torch.mul, (z, 2j))
        with self.assertRaisesRegex(plumb.Error, "of complex numbers"):  # an error, no verdict
            plumb.judge(z, torch.cumprod, (z, 0))

    def test_16_bit(self):
        for dtype in (torch.bfloat16, torch.float16):
            x, w = self.x.to(dtype), self.w.to(dtype)
            y = (x.double() @ w.double())
            self.check(y.to(dtype), (y * 1.01).to(dtype), "mm", (x, w))

    def test_bytes_of_8_bit_floats(self):
        codes = torch.arange(128, dtype=torch.uint8)[:120]
        x = _core.Tensor(codes.data_ptr(), "float8_e4m3fn", [120], None, False, codes)
        self.assertEqual(plumb.judge(x, "abs", (x,)).verdict, "same")
        other = (codes + 1) % 120
        y = _core.Tensor(other.data_ptr(), "float8_e4m3fn", [120], None, False, other)
        self.assertEqual(plumb.judge(y, "abs", (x,)).verdict, "fault")

    def test_whole_numbers_and_truth(self):
        n = torch.arange(60).reshape(6, 10)
        self.check(n.sum(1), n.sum(1) + 1, torch.sum, (n, 1))
        self.check(self.x > 0, self.x > 0.1, torch.gt, (self.x, 0))
        self.check(self.x.argmax(1), self.x.argmin(1), torch.argmax, (self.x, 1))

    def test_in_place(self):
        before = self.x.clone()
        y = self.x.add_(1.5)
        self.check(y, y + 1, "add_", (before, 1.5))
        self.check(y, y + 1, torch.Tensor.add_, (before, 1.5))

    def test_several_results(self):
        for name, more in (("max", (1,)), ("sort", (1,)), ("topk", (3, 1))):
            right = getattr(torch, name)(self.x, *more)
            opinion = plumb.judge(right, name, (self.x, *more))
            self.assertEqual([part.verdict for part in opinion.parts], ["same", "same"], opinion)
            wrong = (right[0] + 1e-3, right[1])
            opinion = plumb.judge(wrong, name, (self.x, *more))
            self.assertEqual([part.verdict for part in opinion.parts], ["fault", "same"], opinion)
            self.assertFalse(opinion)
        one = plumb.judge(torch.max(self.x, 1)[0], torch.max, (self.x, 1))
        self.assertEqual([part.verdict for part in one.parts], ["same", "not judged"])
        self.assertTrue(one)
        self.assertIn("1 of 2 results are not judged", one.why)

    def test_another_shape_or_kind(self):
        y = torch.mm(self.x, self.w)
        self.assertIn("shape", plumb.judge(y.t(), "mm", (self.x, self.w)).why)
        self.assertEqual(plumb.judge(y.long(), "mm", (self.x, self.w)).verdict, "fault")


class Gradients(Judge):
    def test_of_a_function(self):
        x, w = self.x.clone().requires_grad_(), self.w.clone().requires_grad_()
        y = torch.mm(x, w)
        g = torch.randn_like(y)
        dx, dw = torch.autograd.grad(y, (x, w), g)
        self.check(y, y * 1.01, "mm", (x, w), grad_outputs=g, got_grads=(dx, dw))
        bad = plumb.judge(y, "mm", (x, w), grad_outputs=g, got_grads=(dx, dw * 1.01))
        self.assertEqual([part.verdict == "fault" for part in bad.parts], [False, False, True])
        self.assertEqual(bad.name, "mm gradient 1")

    def test_of_a_module(self):
        layer = nn.LayerNorm(32)
        nn.init.uniform_(layer.weight)
        x = self.x.clone().requires_grad_()
        y = layer(x)
        g = torch.randn_like(y)
        grads = torch.autograd.grad(y, (x, layer.weight, layer.bias), g)
        self.assertTrue(plumb.judge(y, layer, x, grad_outputs=g, got_grads=grads))
        self.assertFalse(plumb.judge(y, layer, x, grad_outputs=g,
                                     got_grads=(grads[0], grads[1] * 1.01, grads[2])))

    def test_not_given(self):
        """Gradients that were not given are named, and excuse nothing."""
        layer = nn.Linear(32, 8)
        y, grad = layer(self.x), torch.ones(24, 8)
        found = plumb.judge(y, layer, self.x, grad_outputs=grad, got_grads=[None] * 3)
        self.assertEqual([part.verdict for part in found.parts[1:]], ["not judged"] * 3)
        self.assertIn("3 of 4 results are not judged", found.why)
        self.assertTrue(found)
        self.assertFalse(plumb.judge(y * 1.01, layer, self.x, grad_outputs=grad, got_grads=[None] * 3))

    def test_of_the_wrong_number(self):
        with self.assertRaisesRegex(ValueError, "1 gradients for 2 tensors"):
            plumb.judge(None, "mm", (self.x, self.w), grad_outputs=torch.ones(24, 40),
                        got_grads=[self.x])


class Modules(Judge):
    def test_known_ones(self):
        image = torch.randn(2, 3, 9, 9)
        cases = [(nn.Linear(32, 8), self.x), (nn.Linear(32, 8, bias=False), self.x),
                 (nn.Conv2d(3, 4, 3, padding=1, stride=2), image),
                 (nn.BatchNorm2d(3).eval(), image), (nn.BatchNorm2d(3), image),
                 (nn.LayerNorm(32), self.x), (nn.GroupNorm(1, 3), image), (nn.GELU(), self.x),
                 (nn.Softmax(-1), self.x), (nn.AvgPool2d(3), image), (nn.MaxPool2d(2), image),
                 (nn.Embedding(9, 5), torch.randint(0, 9, (4, 6)))]
        for module, value in cases:
            with self.subTest(module=str(module)):
                with torch.no_grad():
                    y = module(value)
                self.check(y, y * 1.01 + 0.001, module, value)

    def test_losses_take_two(self):
        target = torch.randint(0, 32, (24,))
        y = F.cross_entropy(self.x, target)
        self.check(y, y * 1.2, nn.CrossEntropyLoss(), (self.x, target))

    def test_unknown_ones(self):
        class Mine(nn.Linear):
            def forward(self, x):
                return super().forward(x) + 1

        for module in (nn.LSTM(3, 3), Mine(32, 8), nn.Sequential(nn.ReLU())):
            with self.assertRaisesRegex(plumb.Error, type(module).__name__):
                plumb.judge(self.x, module, self.x)


class Answers(Judge):
    def test_text(self):
        y = torch.mm(self.x, self.w) * 1.01
        opinion = plumb.judge(y, "mm", (self.x, self.w))
        self.assertTrue(str(opinion).startswith("output 0: fault: "))
        self.assertTrue(repr(opinion).startswith("<Opinion mm output 0: fault: "))
        self.assertEqual(opinion.as_dict()["parts"][0]["verdict"], "fault")
        self.assertIn("scaled by 1.01", opinion.pattern)

    def test_random_results_are_not_true(self):
        opinion = plumb.judge(self.x, "gumbel_softmax", (self.x,))
        self.assertEqual((opinion.verdict, bool(opinion)), ("not judged", False))

    def test_assert_close(self):
        y = torch.mm(self.x, self.w)
        call = {"op": torch.mm, "inputs": (self.x, self.w)}
        plumb.assert_close(y, None, standard="expected", **call)
        with self.assertRaisesRegex(AssertionError, "scaled by 1.01"):
            plumb.assert_close(y * 1.01, None, standard="expected", **call)
        with self.assertRaisesRegex(AssertionError, "the expected result: output 0: fault"):
            plumb.assert_close(y, y * 1.01, standard="expected", **call)
        layer = nn.Linear(32, 8)
        plumb.assert_close(layer(self.x), None, standard="expected", op=layer, inputs=self.x)
        with self.assertRaises(TypeError):
            plumb.assert_close(y, None, standard="expected")
        with self.assertRaises(TypeError):
            plumb.assert_close(y, None, standard="expected", rtol=1, **call)

    def test_cheaper_arithmetic_can_be_allowed(self):
        y = torch.mm(self.x, self.w).bfloat16().float()
        found = plumb.judge(y, "mm", (self.x, self.w))
        self.assertEqual((found.verdict, found.allowed, bool(found)),
                         ("cheaper arithmetic", False, True))
        found = plumb.judge(y, "mm", (self.x, self.w), arithmetic=["bf16-result", "tf32"])
        self.assertTrue(found.allowed)


if __name__ == "__main__":
    unittest.main()
