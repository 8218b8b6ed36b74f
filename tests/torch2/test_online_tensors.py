"""The online check and what PyTorch 2 calls a tensor, or a pass: wrappers, transforms, chance that is none."""

import io
import sys
import threading
import unittest
from pathlib import Path
from typing import Any, Callable, Dict, List
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "py"))

import python_case  # noqa: E402,F401  (puts the package under test into the path)
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import Tensor, nn  # noqa: E402

import plumb  # noqa: E402
from plumb._guard import check  # noqa: E402
from test_online_check import OnlineCheck, registered  # noqa: E402


class Quantised(torch.Tensor):
    """Whole numbers and a scale for each row, as libraries for quantised weights have them."""
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, whole: Tensor, scale: Tensor) -> "Quantised":
        return torch.Tensor._make_wrapper_subclass(cls, whole.shape, dtype=scale.dtype)

    def __init__(self, whole: Tensor, scale: Tensor) -> None:
        self.whole, self.scale = whole, scale

    def __tensor_flatten__(self) -> Any:
        return ["whole", "scale"], None

    @staticmethod
    def __tensor_unflatten__(inner: Dict[str, Tensor], meta: Any, size: Any, stride: Any) -> "Quantised":
        return Quantised(inner["whole"], inner["scale"])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        plain = lambda x: x.whole.to(x.scale.dtype) * x.scale if isinstance(x, Quantised) else x
        return func(*map(plain, args), **{name: plain(x) for name, x in (kwargs or {}).items()})


class Cuda(torch.Tensor):
    """Says it is on a graphics card; what it holds is not."""
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner: Tensor) -> "Cuda":
        far = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device="cuda:0")
        far.held = inner
        return far

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args = [x.held if isinstance(x, Cuda) else x for x in args]
        kwargs = {k: v for k, v in (kwargs or {}).items() if k != "device"}
        result = func(*args, **kwargs)
        return result if func._schema.name in ("aten::_to_copy", "aten::to") else Cuda(result)


def tensors(value: Any) -> List[Tensor]:
    return [value] if isinstance(value, Tensor) else [x for item in value for x in tensors(item)]


class Watched(OnlineCheck):
    def setUp(self) -> None:
        super().setUp()
        torch.manual_seed(0)
        self.x = torch.randn(8, 16)
        self.model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))

    def same(self, run: Callable[[], Any]) -> Dict[str, Dict[str, Any]]:
        """Bit for bit what it is without the check; the table."""
        torch.manual_seed(1)
        plain = tensors(run())
        self.enable(save_failures=False, max_checks=100)
        torch.manual_seed(1)
        with plumb.precision_check():
            got = tensors(run())
        table = self.finish()
        self.assertEqual(len(plain), len(got))
        self.assertTrue(all(torch.equal(a.detach(), b.detach()) for a, b in zip(plain, got)))
        self.assertEqual([name for name, row in table.items() if row["Failed"]], [], self.said)
        self.assertNotIn("went wrong", self.said)
        return table


class Wrappers(Watched):
    def test_quantised_weights_by_their_own_operators(self) -> None:
        weight = Quantised(torch.randint(-128, 127, (32, 16), dtype=torch.int8), torch.rand(32, 1))
        table = self.same(lambda: F.linear(self.x, weight))
        self.assertTrue({"mm", "mul.Tensor"} <= set(table) or {"addmm", "mul.Tensor"} <= set(table) or
                        "mul.Tensor" in table, table)
        self.enable(save_failures=False)
        with registered(mul__Tensor=lambda a, b: torch.add(a, b)), plumb.precision_check():
            F.linear(self.x, weight)
        self.assertEqual(self.finish()["mul.Tensor"]["Failed"], 1)

    def test_jagged(self) -> None:
        def run() -> Tensor:
            rows = torch.nested.nested_tensor([torch.ones(3, 16), torch.full((5, 16), 0.5)], layout=torch.jagged)
            return F.gelu(self.model[0](rows)).values()
        self.assertTrue({"gelu", "addmm"} & set(self.same(run)))

    def test_sharded(self) -> None:
        from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        try:
            mesh = init_device_mesh("cpu", (1,))
            x = distribute_tensor(self.x, mesh, [Shard(0)])
            w = distribute_tensor(torch.randn(16, 4), mesh, [Replicate()]).requires_grad_()

            def run() -> List[Tensor]:
                y = (x @ w).softmax(-1)
                grad, = torch.autograd.grad((y * y).sum(), w)
                return [y.to_local(), grad.to_local(), (x.redistribute(mesh, [Replicate()]) * 2).to_local()]
            table = self.same(run)
            self.assertEqual({"mm", "_softmax", "_softmax_backward_data"} - set(table), set())
            self.assertEqual(table["mm"]["Checked"], 2)
            self.enable(save_failures=False)
            with registered(tanh=lambda x: x.sigmoid()), plumb.precision_check():
                x.tanh()
            self.assertEqual(self.finish()["tanh"]["Failed"], 1)
            self.enable(save_failures=False)
            plumb.checked(lambda x: x * 2, "f", reference=lambda x: x * 2)(x)
            self.finish()
            self.assertIn("not checked, DTensor, a tensor that is made of others: f", self.said)
        finally:
            dist.destroy_process_group()

    def test_fake_and_functional(self) -> None:
        from torch._subclasses.fake_tensor import FakeTensorMode

        def fake() -> Tensor:
            with FakeTensorMode(allow_non_fake_inputs=True):
                self.model(torch.randn(8, 16))
            return self.model(self.x)
        table = self.same(fake)
        self.assertEqual(table["gelu"]["Checked"], 1)
        self.assertIn("not checked, fake tensors have no values: ", self.said)
        self.same(lambda: torch.func.functionalize(lambda x: x.clone().mul_(2).add_(1))(self.x))

    def test_captures_of_cuda_graphs_are_left_alone(self) -> None:
        """There is no graphics card here: what PyTorch says of one is put in its place."""
        x = Cuda(self.x)
        for capturing in (True, False):
            with mock.patch.object(torch.cuda, "is_current_stream_capturing", lambda: capturing):
                self.enable(save_failures=False)
                with plumb.precision_check():
                    x.exp()
                table = self.finish()
            self.assertEqual("exp" in table, not capturing, self.said)
            self.assertEqual("a CUDA graph is being captured: exp" in self.said, capturing)


class Passes(Watched):
    def test_torch_func(self) -> None:
        weights = dict(self.model.named_parameters())
        loss = lambda w, x: torch.func.functional_call(self.model, w, (x,)).square().sum()
        self.assertIn("_softmax", self.same(lambda: torch.func.vmap(lambda a: F.softmax(a * 2, 0).sum())(self.x)))
        self.same(lambda: list(torch.func.grad(loss)(weights, self.x).values()))
        self.same(lambda: list(torch.func.vmap(torch.func.grad(loss), (None, 0))(weights, self.x).values()))
        self.same(lambda: [torch.func.jacrev(self.model)(self.x[0]), torch.func.jvp(self.model, (self.x,), (self.x,))[0],
                           torch.func.hessian(lambda a: self.model(a).sum())(self.x[0])])

    def test_inference_mode(self) -> None:
        with torch.inference_mode():
            table = self.same(lambda: self.model(self.x))
        self.assertEqual(table["gelu"]["Checked"], 1)

    def test_autocast(self) -> None:
        def run() -> List[Tensor]:
            with torch.autocast("cpu", torch.bfloat16):
                result = self.model(self.x)
            return [result, *torch.autograd.grad(result.float().sum(), list(self.model.parameters()))]
        self.assertIn("addmm", self.same(run))

    def test_backward_on_other_threads(self) -> None:
        def run() -> List[Tensor]:
            leaves = [self.x.clone().requires_grad_() for _ in range(3)]
            threads = [threading.Thread(target=self.model(leaf).square().sum().backward) for leaf in leaves]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return [leaf.grad for leaf in leaves]
        self.same(run)


class Chance(Watched):
    """Operators that PyTorch calls random are checked when nothing is drawn."""

    def test_what_may_be_random(self) -> None:
        aten = torch.ops.aten
        for func, unfit in ((aten.native_dropout.default, None), (aten.dropout.default, None),
                            (aten.rrelu_with_noise.default, None), (aten.bernoulli.default, "random"),
                            (aten._scaled_dot_product_flash_attention.default, None),
                            (aten._scaled_dot_product_efficient_attention.default, None),
                            (aten.rand.default, "random"), (aten.multinomial.default, "random")):
            self.assertEqual(check.why_unfit(func), unfit, func)

    def test_dropout(self) -> None:
        calls = {"p 0": lambda: torch.native_dropout(self.x, 0.0, True)[0],
                 "no training": lambda: torch.native_dropout(self.x, 0.5, False)[0],
                 "rrelu": lambda: F.rrelu(self.x, training=False)}
        for name, run in calls.items():
            with self.subTest(name):
                table = self.same(run)
                self.assertEqual(sum(row["Checked"] for row in table.values()), 1, self.said)
        self.same(lambda: torch.native_dropout(self.x, 0.5, True)[0])
        self.assertIn("it drops elements at random: native_dropout", self.said)
        with torch.inference_mode():  # which does not take it apart
            table = self.same(lambda: [F.dropout(self.x, 0.0, True), F.dropout(self.x, 0.5, False)])
        self.assertEqual(table["dropout"]["Checked"], 2, self.said)

    def test_a_wrong_one_is_found(self) -> None:
        self.enable(save_failures=False)
        wrong = lambda x, p, train: (x * 1.01, torch.ones(x.shape, dtype=torch.bool))
        with registered(native_dropout=wrong), plumb.precision_check():
            torch.native_dropout(self.x, 0.0, True)
        self.assertEqual(self.finish()["native_dropout"]["Failed"], 1)

    def test_attention_without_dropout(self) -> None:
        q = torch.randn(1, 2, 16, 8)
        self.enable(save_failures=False)
        with plumb.precision_check():
            F.scaled_dot_product_attention(q, q, q, is_causal=True)
        self.finish()
        self.assertNotIn("not checked, random", self.said)
        self.assertNotIn("drops elements", self.said)


if __name__ == "__main__":
    unittest.main()
