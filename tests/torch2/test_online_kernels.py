"""Kernels of the user's own, as PyTorch 2 takes them, beside a reference: custom_op, register_kernel, triton_op."""

import sys
import unittest
from pathlib import Path
from typing import Any, Dict, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "py"))

import python_case  # noqa: E402,F401  (puts the package under test into the path)
import numpy  # noqa: E402
import torch  # noqa: E402
from torch import Tensor  # noqa: E402

import plumb  # noqa: E402
from test_online_check import OnlineCheck  # noqa: E402


def swish(x: Tensor) -> Tensor:
    return x * torch.sigmoid(x)


def swish_of_numpy(x: Tensor, factor: float = 1.0) -> Tensor:
    values = x.detach().numpy()
    return torch.from_numpy(values / (1 + numpy.exp(-values)) * numpy.float32(factor))


@torch.library.custom_op("plumb_test::swish", mutates_args=())
def custom_swish(x: Tensor) -> Tensor:
    return swish_of_numpy(x)


@torch.library.custom_op("plumb_test::bad_swish", mutates_args=())
def bad_swish(x: Tensor) -> Tensor:
    return swish_of_numpy(x, 1.001)


@torch.library.custom_op("plumb_test::bad_gradient", mutates_args=())
def bad_gradient(x: Tensor) -> Tensor:
    return swish_of_numpy(x)


def keep(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(*inputs)


def backward(ctx: Any, grad: Tensor) -> Tensor:
    x, = ctx.saved_tensors
    s = torch.sigmoid(x)
    return grad * s * (1 + x * (1 - s))


for op in (custom_swish, bad_swish, bad_gradient):
    op.register_fake(lambda x: torch.empty_like(x))
    op.register_autograd((lambda ctx, grad: backward(ctx, grad) * 1.01) if op is bad_gradient else backward,
                         setup_context=keep)


@torch.library.custom_op("plumb_test::with_kernel", mutates_args=(), device_types="cuda")
def with_kernel(x: Tensor) -> Tensor:
    raise NotImplementedError


@with_kernel.register_kernel("cpu")
@plumb.checked(name="plumb_test::with_kernel", reference=swish)
def kernel_of_cpu(x: Tensor) -> Tensor:
    return swish_of_numpy(x, 1.001)


with_kernel.register_fake(lambda x: torch.empty_like(x))


@torch.library.custom_op("plumb_test::scale_", mutates_args={"x"})
@plumb.checked(name="plumb_test::scale_", reference=lambda x, factor: x.mul_(factor))
def scale_in_place(x: Tensor, factor: float) -> None:
    x.mul_(factor * 1.01)


class Kernels(OnlineCheck):
    def setUp(self) -> None:
        super().setUp()
        torch.manual_seed(0)
        self.x = torch.randn(32, 16)

    def called(self, run: Any) -> Dict[str, Dict[str, Any]]:
        self.enable(save_failures=False)
        run()
        table = self.finish()
        self.assertNotIn("went wrong", self.said)
        return table

    def test_custom_op(self) -> None:
        x = self.x.clone().requires_grad_()
        for op, failed in ((custom_swish, 0), (bad_swish, 1), (bad_gradient, 1)):
            f = plumb.checked(op, reference=swish)
            row = self.called(lambda: f(x))[op._qualname]
            self.assertEqual((row["Checked"], row["Failed"]), (1, failed), op)
        self.assertIn("gradient of argument 0", self.said)

    def test_register_kernel(self) -> None:
        """Whoever calls the operator, the kernel is checked."""
        row = self.called(lambda: (with_kernel(self.x), torch.ops.plumb_test.with_kernel(self.x)))["plumb_test::with_kernel"]
        self.assertEqual((row["Calls"], row["Checked"], row["Failed"]), (2, 1, 1))

    def test_in_place(self) -> None:
        x = self.x.clone()
        row = self.called(lambda: torch.ops.plumb_test.scale_(x, 2.0))["plumb_test::scale_"]
        self.assertEqual((row["Checked"], row["Failed"]), (1, 1))
        self.assertTrue(torch.equal(x, self.x * (2.0 * 1.01)))

    def test_inside_a_compiled_region(self) -> None:
        """The kernel is called from compiled code, and checked there; the wrapper breaks no graph."""
        for inner in (with_kernel, plumb.checked(custom_swish, reference=swish)):
            torch._dynamo.reset()
            f = torch.compile(lambda x: inner(x * 2) + 1, fullgraph=True)
            plain = f(self.x)
            torch._dynamo.reset()
            got = []
            table = self.called(lambda: got.append(torch.compile(lambda x: inner(x * 2) + 1, fullgraph=True)(self.x)))
            self.assertTrue(torch.equal(plain, got[0]))
            if inner is with_kernel:
                self.assertEqual(table["plumb_test::with_kernel"]["Failed"], 1)

    def test_triton_op_without_triton(self) -> None:
        if not hasattr(torch.library, "triton_op"):
            self.fail("this PyTorch has no triton_op")

        @torch.library.triton_op("plumb_test::tri", mutates_args={})
        def tri(x: Tensor) -> Tensor:
            return x * torch.sigmoid(x) * 1.001  # where a kernel of Triton would be launched
        x = self.x.clone().requires_grad_(False)
        row = self.called(lambda: plumb.checked(tri, reference=swish)(x))["plumb_test::tri"]
        self.assertEqual((row["Checked"], row["Failed"]), (1, 1))
        with_block = plumb.checked(tri, "right", reference=lambda x: swish(x) * 1.001)
        self.enable(save_failures=False)
        with plumb.precision_check():
            with_block(x)
            torch.compile(tri, fullgraph=True)(x)
        self.assertEqual(self.finish()["right"]["Failed"], 0)
        self.assertNotIn("went wrong", self.said)

    def test_under_transforms_of_torch_func(self) -> None:
        f = plumb.checked(swish, "f", reference=swish)
        plain = torch.func.vmap(torch.func.grad(lambda x: swish(x).sum()))(self.x)
        self.enable(save_failures=False)
        got = torch.func.vmap(torch.func.grad(lambda x: f(x).sum()))(self.x)
        self.assertTrue(torch.equal(plain, got))
        self.finish()
        self.assertIn("not checked, a transform of torch.func is at work: f", self.said)
        self.assertNotIn("went wrong", self.said)


if __name__ == "__main__":
    unittest.main()
