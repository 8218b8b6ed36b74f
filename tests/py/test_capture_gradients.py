"""The gradients of a call are those that this call takes and sends, wherever its tensors are used besides."""

import gc
import sys
import threading
import unittest
import weakref
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional

sys.path.insert(0, str(Path(__file__).parent))
import torch  # noqa: E402
from capture_case import CaptureTest  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402


class Pair(NamedTuple):
    first: torch.Tensor
    rest: Dict[str, torch.Tensor]


class GradientTest(CaptureTest):
    def setUp(self) -> None:
        super().setUp()
        torch.manual_seed(0)

    def grads(self, name: str) -> Dict[str, List[Optional[torch.Tensor]]]:
        """The gradients of an entry, read from its files."""
        dump = self.dump()
        return {side: [None if leaf is None else dump.tensor(leaf) for leaf in found]
                for side, found in dump.data[name].items()}

    def tensors(self, model: Any = None, **more: Any) -> Any:
        return self.capture(model, task="tensor", **more)

    def same(self, found: List[Optional[torch.Tensor]], *expected: Optional[torch.Tensor]) -> None:
        self.assertEqual(len(found), len(expected))
        for a, b in zip(found, expected):
            self.assertEqual(a is None, b is None, found)
            if a is not None:
                torch.testing.assert_close(a, b)

    def test_not_the_whole_gradient_of_a_tensor(self) -> None:
        x = torch.randn(3, requires_grad=True)
        with self.tensors():
            y = torch.exp(x)
            (torch.sin(y) + torch.cos(y) * 2 + x).sum().backward()
        y = y.detach()
        self.same(self.grads("Torch.sin.0.backward")["output"], y.cos())
        self.same(self.grads("Torch.cos.0.backward")["output"], -2 * y.sin())
        self.same(self.grads("Torch.exp.0.backward")["input"], y.cos() - 2 * y.sin())
        self.same(self.grads("Torch.exp.0.backward")["output"], (y.cos() - 2 * y.sin()) * y)

    def test_several_nodes_in_one_call(self) -> None:
        x, w, b = (torch.randn(*shape, requires_grad=True) for shape in ((2, 3, 4), (5, 4), (5,)))
        with self.tensors():
            F.linear(x, w, b).square().sum().backward()
        self.same(self.grads("Functional.linear.0.backward")["output"], x.grad, w.grad, b.grad)

        q = torch.randn(2, 3, 4, requires_grad=True)
        weight, bias, out = torch.randn(12, 4), torch.zeros(12), torch.randn(4, 4)
        with self.tensors():
            F.multi_head_attention_forward(q, q, q, 4, 2, weight, bias, None, None, False, 0.0, out, None,
                                           training=False)[0].square().sum().backward()
        dump = self.dump()
        self.assertEqual([name for name in dump.data if "forward" in name.rsplit(".", 1)[1]],
                         ["Functional.multi_head_attention_forward.0.forward", "Tensor.square.0.forward",
                          "Tensor.sum.0.forward"])
        found = self.grads("Functional.multi_head_attention_forward.0.backward")["output"]
        self.same([sum(grad for grad in found if grad is not None)], q.grad)

    def test_a_tensor_given_twice(self) -> None:
        x, y = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
        with self.tensors():
            torch.mul(x, x).sum().backward()
            (torch.cat([y, y]) * torch.arange(6)).sum().backward()
        value = x.detach()
        self.same(self.grads("Torch.mul.0.backward")["output"], value, value)
        self.same(self.grads("Torch.cat.0.backward")["output"], torch.arange(3.), torch.arange(3., 6))

    def test_in_place(self) -> None:
        x = torch.randn(4, requires_grad=True)
        with self.tensors():
            y = x * 2
            before = y.detach().clone()
            y.exp_()
            y.sum().backward()
        entry = self.dump().data["Tensor.exp_.0.forward"]
        self.same([self.dump().tensor(entry["input_args"][0])], before)
        self.same([self.dump().tensor(entry["output"][0])], before.exp())
        self.same(self.grads("Tensor.exp_.0.backward")["output"], before.exp())
        self.same(self.grads("Tensor.__mul__.0.backward")["output"], 2 * before.exp())

    def test_in_place_on_a_view(self) -> None:
        x = torch.randn(4, requires_grad=True)
        with self.tensors():
            y = x * 3
            y[:2].mul_(torch.ones(2, requires_grad=True) * 5)
            y.sum().backward()
        self.same([x.grad], torch.tensor([15., 15, 3, 3]))
        found = self.grads("Tensor.mul_.0.backward")["output"]
        self.assertEqual(len(found), 2)
        self.same(found[1:], x.detach()[:2] * 3)
        self.assertEqual(len(self.grads("Tensor.__mul__.0.backward")["output"]), 1)

    def test_outputs_that_are_inputs(self) -> None:
        x = torch.randn(4, requires_grad=True)
        model = nn.ModuleDict({"same": nn.Identity(), "drop": nn.Dropout(0.5).eval()})
        with self.tensors(model, level="mix"):
            y = x * 2
            (model["drop"](model["same"](y)) * torch.arange(4)).sum().backward()
        grad = torch.arange(4.)
        for name in ("Module.same.Identity.backward.0", "Module.drop.Dropout.backward.0",
                     "Functional.dropout.0.backward"):
            self.same(self.grads(name)["input"], grad)
            self.same(self.grads(name)["output"], grad)

    def test_modules_of_any_signature(self) -> None:
        class Odd(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.fc = nn.Linear(3, 3)

            def forward(self, pair: Any, scale: Any = None) -> Pair:
                return Pair(self.fc(pair[0]) * scale, {"kept": pair[1]["b"].exp(), "number": 3})

        x, b, scale = (torch.randn(2, 3, requires_grad=True) for _ in range(3))
        model = nn.ModuleDict({"odd": Odd()})
        with self.tensors(model, level="L0"):
            out = model["odd"]((x, {"b": b}), scale=scale)
            (out.first.sum() + out.rest["kept"].sum() * 2).backward()
        found = self.grads("Module.odd.Odd.backward.0")
        self.same(found["input"], torch.ones(2, 3), torch.full((2, 3), 2.))
        self.same(found["output"], x.grad, b.grad, scale.grad)
        fc = model["odd"].fc
        grads = self.dump().data["Module.odd.fc.Linear.parameters_grad.0"]
        self.same([self.dump().tensor(grads[key][0]) for key in ("weight", "bias")], fc.weight.grad, fc.bias.grad)

    def test_only_some_outputs_are_used(self) -> None:
        x = torch.randn(6, requires_grad=True)
        with self.tensors():
            low, _ = torch.std_mean(x)
            parts = x.split(2)
            (low * 3 + parts[1].sum()).backward()
        found = self.grads("Torch.std_mean.0.backward")
        self.assertEqual([grad is None for grad in found["input"]], [False, True])
        found = self.grads("Tensor.split.0.backward")
        self.same(found["output"], torch.tensor([0., 0, 1, 1, 0, 0]))

    def test_two_passes_are_told_by_parameters(self) -> None:
        model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        with self.tensors(model, level="mix"):
            for scale in (1, 3):
                (model(torch.ones(1, 2)).sum() * scale).backward()
        data = self.dump().data
        names = [name for name in data if "parameters_grad" in name]
        self.assertEqual(names, ["Module.0.Linear.parameters_grad.0", "Module.0.Linear.parameters_grad.1"])
        first, second = (self.dump().tensor(data[name]["weight"][0]) for name in names)
        self.same([second], first * 3)
        self.assertIn("Module.0.Linear.backward.1", data)

    def test_the_same_graph_twice(self) -> None:
        x = torch.randn(3, requires_grad=True)
        with self.tensors():
            y = torch.exp(x).sum()
            y.backward(retain_graph=True)
            y.backward()
        self.same(self.grads("Torch.exp.0.backward")["output"], x.detach().exp())

    def test_tied_weights(self) -> None:
        model = nn.ModuleDict({"a": nn.Linear(2, 2, bias=False), "b": nn.Linear(2, 2, bias=False)})
        model["b"].weight = model["a"].weight
        with self.tensors(model, level="L0"):
            model["b"](model["a"](torch.ones(1, 2))).sum().backward()
        data = self.dump().data
        for name in ("Module.a.Linear", "Module.b.Linear"):
            self.same([self.dump().tensor(data[f"{name}.parameters_grad.0"]["weight"][0])], model["a"].weight.grad)

    def test_recomputing_is_a_further_call(self) -> None:
        for reentrant in (True, False):
            model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
            x = torch.randn(1, 2, requires_grad=True)
            with self.tensors(model, level="mix"):
                checkpoint(model, x, use_reentrant=reentrant).sum().backward()
            data = self.dump().data
            self.assertIn("Module.0.Linear.forward.1", data)
            self.assertIn("Module.0.Linear.backward.1" if reentrant else "Module.0.Linear.backward.0", data)
            self.assertIn("Module.0.Linear.parameters_grad.0", data)

    def test_nothing_without_gradients(self) -> None:
        x = torch.randn(3, requires_grad=True)
        for mode in (torch.no_grad, torch.inference_mode):
            with self.tensors(), mode():
                torch.exp(x.detach().clone())
            self.assertEqual(list(self.dump().data), ["Torch.exp.0.forward"])

    def test_other_threads(self) -> None:
        """Each has its own modules around its calls; backward may run in any."""
        model = nn.ModuleDict({str(i): nn.Linear(4, 4) for i in range(4)})
        outputs: Dict[int, torch.Tensor] = {}

        def work(i: int) -> None:
            for _ in range(10):
                outputs[i] = model[str(i)](torch.ones(2, 4)).sum()
        with self.capture(model, level="mix"):
            threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            threads = [threading.Thread(target=out.backward) for out in outputs.values()]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        dump = self.dump()
        for i in range(4):
            self.assertIn(f"Module.{i}.Linear.backward.9", dump.data)
            self.assertIn(f"Module.{i}.Linear.parameters_grad.0", dump.data)
        parents = [parent for name, parent in dump.beside("construct.json").items()
                   if name.startswith("Functional.linear") and name.endswith("forward")]
        self.assertEqual(len(parents), 40)
        self.assertEqual(len(set(parents)), 40)

    def test_nothing_is_kept_alive(self) -> None:
        model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 4))
        with self.capture(model, level="mix"):
            gc.disable()
            self.addCleanup(gc.enable)
            x = torch.ones(2, 4, requires_grad=True)
            y = x * 1
            out = model(y).sum()
            seen = [weakref.ref(y), weakref.ref(out)]
            out.backward()
            del out, y
            self.assertEqual([ref() for ref in seen], [None, None])

    def test_a_long_chain(self) -> None:
        """Far more nodes than Python could recurse through."""
        class Chain(nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                for _ in range(3000):
                    x = x + 1
                return x
        x = torch.ones(2, requires_grad=True)
        model = nn.ModuleDict({"chain": Chain()})
        with self.tensors(model, level="L0"):
            model["chain"](x).sum().backward()
        self.same(self.grads("Module.chain.Chain.backward.0")["output"], x.grad)


if __name__ == "__main__":
    unittest.main()
