#!/usr/bin/python3
"""plumb.numeric_check: transformations that keep the numbers, and such as do not."""

import copy
import dataclasses
import json
import logging
import os
import random
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from typing import Any, Callable, List
from unittest import mock

sys.path.insert(0, str(Path(os.environ["PLUMB_BUILD"]) / "python"))

import numpy
import torch
import torch.nn.functional as F
from torch import fx, nn
from torch.fx.experimental import optimization as fx_optimization

import plumb


class ConvNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, padding=1)
        self.bn = nn.BatchNorm2d(6, eps=1e-3)
        self.head = nn.Linear(6, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.bn(self.conv(x))).mean((2, 3)))


class FusedConvNet(ConvNet):
    """What a correct fusion makes of ConvNet in eval mode, from the same parameters."""
    eps = 1e-3
    with_bias = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bn = self.bn
        scale = bn.weight * torch.rsqrt(bn.running_var + self.eps)
        bias = self.conv.bias - bn.running_mean if self.with_bias else -bn.running_mean
        y = F.conv2d(x, self.conv.weight * scale.reshape(-1, 1, 1, 1), bias * scale + bn.bias,
                     padding=1)
        return self.head(torch.relu(y).mean((2, 3)))


def conv_net(kind: Callable[[], nn.Module] = ConvNet) -> nn.Module:
    torch.manual_seed(3)
    net = kind()
    net.bn.running_mean.uniform_(-0.1, 0.1)
    net.bn.running_var.uniform_(0.01, 0.1)
    nn.init.uniform_(net.bn.weight, 0.5, 1.5)
    return net.eval()


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.b = nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.b(torch.relu(self.a(x))))


def mlp() -> fx.GraphModule:
    torch.manual_seed(5)
    return fx.symbolic_trace(Mlp())


def images() -> torch.Tensor:
    return torch.randn(2, 3, 5, 5, generator=torch.Generator().manual_seed(1))


def vectors() -> torch.Tensor:
    return torch.randn(4, 6, generator=torch.Generator().manual_seed(2))


def failed(report: Any, kind: str) -> set:
    return {row.name for row in report.failures if row.kind == kind}


def replace(old: Any, new: Any) -> Callable[[fx.GraphModule], None]:
    def swap(graph: fx.GraphModule) -> None:
        for node in graph.graph.nodes:
            if node.target is old:
                node.target = new
    return swap


class Verdicts(unittest.TestCase):
    def test_correct_fusion(self) -> None:
        report = plumb.numeric_check(conv_net(), conv_net(FusedConvNet), images())
        self.assertTrue(report, str(report))
        kinds = {row.kind for row in report.rows}
        self.assertEqual(kinds, {"parameter", "buffer", "output", "input", "gradient",
                                 "gradient of all outputs", "parameter after step"})
        self.assertEqual({row.iteration for row in report.rows}, set(range(10)))
        # Rounding differs, so something was really computed twice.
        self.assertTrue(any(row.metrics["max_abs"] > 0 for row in report.rows))

    def test_weights_folded_by_fx(self) -> None:
        """The pass of torch.fx itself: outputs are kept, parameters cannot be."""
        before = fx.symbolic_trace(conv_net())
        after = fx_optimization.fuse(conv_net())
        self.assertTrue(plumb.numeric_check(before, after, images(), compare=["output"]))
        report = plumb.numeric_check(before, after, images(), 1)
        self.assertEqual(failed(report, "parameter"), {"conv.weight", "conv.bias", "bn.weight",
                                                       "bn.bias"})
        self.assertEqual(failed(report, "output"), set())

    def test_wrong_eps(self) -> None:
        wrong = conv_net(FusedConvNet)
        wrong.eps = 1e-5
        report = plumb.numeric_check(conv_net(), wrong, images(), num_iterations=2)
        self.assertFalse(report)
        first = report.failures[0]
        self.assertEqual((first.kind, first.name, first.iteration), ("output", "output.0", 0))
        self.assertIn("not_close", first.reason)
        self.assertIn("conv.weight", failed(report, "gradient"))
        self.assertIn("conv.weight", failed(report, "parameter after step"))
        # What the mistake cannot reach is equal, before the first step at least.
        untouched = [row for row in report.failures if row.name == "head.bias"]
        self.assertEqual([row for row in untouched if row.iteration == 0], [])
        self.assertFalse(any(row.kind == "parameter" and row.iteration == 0
                             for row in report.failures))

    def test_dropped_bias(self) -> None:
        wrong = conv_net(FusedConvNet)
        wrong.with_bias = False
        report = plumb.numeric_check(conv_net(), wrong, images(), num_iterations=1)
        self.assertIn("output.0", failed(report, "output"))
        self.assertEqual([row.reason for row in report.failures
                          if (row.kind, row.name) == ("gradient", "conv.bias")], ["None after"])
        self.assertIn("conv.bias", failed(report, "parameter after step"))

    def test_transposed_weight(self) -> None:
        class Wrong(Mlp):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return torch.tanh(F.linear(torch.relu(self.a(x)), self.b.weight.t(), self.b.bias))
        torch.manual_seed(5)
        wrong = Wrong()
        report = plumb.numeric_check(mlp(), wrong, vectors(), num_iterations=1)
        self.assertIn("b.weight", failed(report, "gradient"))
        self.assertEqual(failed(report, "output"), {"output.0"})

    def test_tolerances(self) -> None:
        class Gives(nn.Module):
            def __init__(self, value: float) -> None:
                super().__init__()
                self.value = value

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return torch.tensor([self.value], dtype=torch.float64)
        for before, after, precision, equal in (
                (1e3, 1e3 + 0.09, 1e-4, True), (1e3, 1e3 + 0.11, 1e-4, False),  # rtol
                (0.0, 9e-5, 1e-4, True), (0.0, 1.1e-4, 1e-4, False),  # atol
                (1.0, 1.0, 0, True), (1.0, 1.0 + 2 ** -52, 0, False), (1.0, 1.5, 0.5, True)):
            report = plumb.numeric_check(Gives(before), Gives(after), vectors(), 1, precision)
            self.assertEqual(bool(report), equal, (before, after, precision))

    def test_only_the_gradient_is_wrong(self) -> None:
        class Wrong(Mlp):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                hidden = torch.relu(self.a(x))
                return torch.tanh(self.b(hidden + (hidden - hidden.detach())))
        torch.manual_seed(5)
        wrong = Wrong()
        report = plumb.numeric_check(mlp(), wrong, vectors(), num_iterations=1)
        self.assertEqual(failed(report, "output"), set())
        self.assertEqual(failed(report, "gradient"), {"a.weight", "a.bias"})
        self.assertTrue(plumb.numeric_check(mlp(), wrong, vectors(), 1, compare=["output"]))

    def test_no_optimizer(self) -> None:
        report = plumb.numeric_check(mlp(), mlp(), vectors(), 2, requires_optimizer=False)
        self.assertTrue(report)
        self.assertNotIn("parameter after step", {row.kind for row in report.rows})

    def test_precision(self) -> None:
        class Near(Mlp):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return super().forward(x) + 1e-3
        torch.manual_seed(5)
        near = Near()
        self.assertFalse(plumb.numeric_check(mlp(), near, vectors(), 1))
        self.assertTrue(plumb.numeric_check(mlp(), near, vectors(), 1, precision=1e-2))
        for bad in ({"num_iterations": 0}, {"precision": -1.0}, {"compare": ["outputs"]}):
            with self.assertRaises(ValueError):
                plumb.numeric_check(mlp(), near, vectors(), **bad)

    def test_missing_and_changed(self) -> None:
        class More(Mlp):
            def __init__(self) -> None:
                super().__init__()
                self.c = nn.Parameter(torch.ones(2))

            def forward(self, x: torch.Tensor) -> Any:
                y = super().forward(x)
                return y, y[:2].half()

        class Less(Mlp):
            def forward(self, x: torch.Tensor) -> Any:
                y = super().forward(x)
                return y, y[:2], y
        torch.manual_seed(5)
        more = More()
        torch.manual_seed(5)
        less = Less()
        report = plumb.numeric_check(more, less, vectors(), num_iterations=1)
        self.assertEqual({(row.kind, row.name, row.reason) for row in report.failures},
                         {("parameter", "c", "only before"),
                          ("gradient", "c", "only before"),
                          ("gradient of all outputs", "c", "only before"),
                          ("parameter after step", "c", "only before"),
                          ("output", "output.1", "the type changed"),
                          ("output", "output.2", "only after")})
        shorter = plumb.numeric_check(mlp(), fx.symbolic_trace(less), vectors()[:3], 1)
        self.assertFalse(shorter)


class Models(unittest.TestCase):
    def equal(self, module: nn.Module, inputs: Any, **more: Any) -> Any:
        report = plumb.numeric_check(module, module, inputs, 2, **more)
        self.assertTrue(report, str(report))
        return report

    def test_dropout_and_running_statistics(self) -> None:
        net = nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.5), nn.BatchNorm1d(6))
        mean = net[2].running_mean.clone()
        report = self.equal(net, vectors())
        self.assertIn("2.running_mean", {row.name for row in report.rows if row.kind == "buffer"})
        self.assertTrue(torch.equal(mean, net[2].running_mean))
        slower = nn.Sequential(net[0], net[1], nn.BatchNorm1d(6, momentum=0.5))
        report = plumb.numeric_check(net, slower, vectors(), 1)
        self.assertEqual({row.kind for row in report.failures}, {"buffer"})

    def test_shared_parameters(self) -> None:
        class Tied(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first = nn.Linear(6, 6)
                self.second = nn.Linear(6, 6)
                self.second.weight = self.first.weight

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.second(self.first(x))
        tied = Tied()
        self.equal(tied, vectors())
        untied = Tied()
        untied.load_state_dict(tied.state_dict())
        untied.second.weight = nn.Parameter(tied.first.weight.detach().clone())
        report = plumb.numeric_check(tied, untied, vectors(), 1)
        self.assertIn("first.weight", failed(report, "gradient"))
        self.assertIn("second.weight", failed(report, "parameter"))

    def test_inputs_changed_in_place_and_with_gradients(self) -> None:
        class InPlace(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.fc = nn.Linear(6, 6)

            def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
                x += 1
                return F.relu(self.fc(x) * scale, inplace=True)
        x, scale = vectors(), torch.ones(6, requires_grad=True)
        kept = x.clone()
        report = self.equal(InPlace(), (x, scale))
        self.assertTrue(torch.equal(x, kept))
        self.assertIsNone(scale.grad)
        self.assertIn("input.1", {row.name for row in report.rows if row.kind == "gradient"})

    def test_outputs_of_every_kind(self) -> None:
        @dataclasses.dataclass
        class Output:
            loss: torch.Tensor
            extra: dict

        class Many(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.fc = nn.Linear(6, 6)
                self.steps = 7

            def forward(self, x: torch.Tensor) -> Output:
                y = self.fc(x)
                return Output(y.sum(), {"top": y.argmax(1), "mask": y > 0, "none": None,
                                        "steps": self.steps, "half": y.bfloat16(),
                                        "complex": torch.complex(y, y), "nan": y * float("nan"),
                                        "sparse": y.detach().to_sparse(), "empty": y[:0],
                                        "rate": 0.5, "text": "a"})
        many = Many()
        report = self.equal(many, vectors())
        names = {row.name for row in report.rows if row.kind == "output"}
        self.assertEqual(names, {"output.loss"} | {f"output.extra.{name}" for name in (
            "top", "mask", "steps", "half", "complex", "nan", "sparse", "empty", "rate", "text")})
        other = Many()
        other.load_state_dict(many.state_dict())
        other.steps = 8
        report = plumb.numeric_check(many, other, vectors(), 1)
        self.assertEqual([(row.name, row.reason) for row in report.failures],
                         [("output.extra.steps", "7 became 8")])

    def test_bfloat16_and_keyword_inputs(self) -> None:
        self.equal(Mlp().bfloat16(), {"x": vectors().bfloat16()})

    def test_output_without_gradient(self) -> None:
        class First(nn.Module):
            def __init__(self, both: bool) -> None:
                super().__init__()
                self.fc = nn.Linear(6, 6)
                self.both = both

            def forward(self, x: torch.Tensor) -> Any:
                top = self.fc(x).argmax(1)
                return (top, self.fc(x)) if self.both else top
        report = self.equal(First(True), vectors())
        self.assertTrue(any("output.0 has no grad_fn" in note for note in report.notes))
        self.assertTrue(any(row.kind == "gradient" for row in report.rows))
        report = self.equal(First(False), vectors())
        self.assertTrue(any("no gradients were compared" in note for note in report.notes))

    def test_gradients_start_anew_and_graphs_are_kept(self) -> None:
        class Sums(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.w = nn.Parameter(torch.ones(6))
                self.kept: Any = None

            def forward(self, x: torch.Tensor) -> Any:
                if self.kept is None:  # every later backward goes through the first graph again
                    self.kept = (x * self.w).exp().log()
                return self.kept * 1
        report = plumb.numeric_check(Sums(), Sums(), vectors().abs(), 3)
        self.assertTrue(report, str(report))
        sizes = {round(row.metrics["golden_norm"], 4) for row in report.rows
                 if row.kind == "gradient"}
        self.assertEqual(len(sizes), 1, sizes)

    def test_gradients_that_only_one_side_has(self) -> None:
        class Cut(Mlp):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return super().forward(x).detach()
        torch.manual_seed(5)
        cut = Cut()
        for sides, where, gone in (((mlp(), cut), "only before", "None after"),
                                   ((cut, mlp()), "only after", "None before")):
            report = plumb.numeric_check(*sides, vectors(), 1)
            self.assertFalse(report, str(report))
            self.assertEqual([(row.name, row.reason) for row in report.failures
                              if row.kind == "gradient"],
                             [("output.0", where), ("a.weight", gone), ("a.bias", gone),
                              ("b.weight", gone), ("b.bias", gone)])
            # One side has stepped, the other could not.
            self.assertEqual(failed(report, "parameter after step"),
                             {"a.weight", "a.bias", "b.weight", "b.bias"})
            self.assertTrue(any("no output has a grad_fn" in note for note in report.notes))
        self.assertFalse(plumb.numeric_check(mlp(), cut, vectors(), 1, compare=["step"]))
        self.assertFalse(plumb.numeric_check(mlp(), cut, vectors(), 1, requires_optimizer=False))
        self.assertTrue(plumb.numeric_check(mlp(), cut, vectors(), 1, compare=["output"]))

    def test_nan_gradients_are_compared(self) -> None:
        class Root(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.w = nn.Parameter(torch.zeros(3))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return torch.sqrt(self.w) * 0 + x[0, :3]
        report = self.equal(Root(), vectors())
        self.assertTrue(any(row.kind == "gradient" and row.metrics["golden_nan"] == 3
                            for row in report.rows))


class Hostile(unittest.TestCase):
    def test_not_copyable(self) -> None:
        class Locked(Mlp):
            def __init__(self) -> None:
                super().__init__()
                self.lock = threading.Lock()
                self.kept = self.a.weight * 2

        report = plumb.numeric_check(Locked(), mlp(), vectors(), 1, compare=["output"])
        self.assertTrue(any("lock" in note and "kept" in note for note in report.notes))
        self.assertIsNone(report.error)

        class Stubborn(Mlp):
            def __deepcopy__(self, memo: dict) -> Any:
                raise RuntimeError("no copies of me")
        report = plumb.numeric_check(Stubborn(), mlp(), vectors(), 1)
        self.assertFalse(report)
        self.assertIn("no copies of me", report.error)
        self.assertIn("NOT CHECKED", str(report))

    def test_forward_and_backward_that_raise(self) -> None:
        class Raises(Mlp):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                raise KeyError("boom")

        class NoBackward(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
                return x.clone()

            @staticmethod
            def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
                raise RuntimeError("one way only")

        class OneWay(Mlp):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return NoBackward.apply(super().forward(x))
        report = plumb.numeric_check(mlp(), Raises(), vectors(), 1)
        self.assertEqual(report.failed_side, "after")
        self.assertIn("boom", report.error)
        before = mlp()
        torch.manual_seed(5)
        report = plumb.numeric_check(before, OneWay(), vectors(), 1)
        self.assertIn("one way only", report.error)
        self.assertTrue(any(row.kind == "output" and row.equal for row in report.rows))
        report = plumb.numeric_check(nn.Identity(), nn.Identity(), (None,), 1)
        self.assertIn("nothing to compare", report.error)
        for what in (None, 3, "text"):
            self.assertFalse(plumb.numeric_check(what, mlp(), vectors(), 1))

    def test_state_is_restored(self) -> None:
        seen = {}

        class Looks(Mlp):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                seen.update(deterministic=torch.are_deterministic_algorithms_enabled(),
                            anomaly=torch.is_anomaly_enabled(),
                            workspace=os.environ.get("CUBLAS_WORKSPACE_CONFIG"))
                seen.setdefault("draws", []).append(
                    (random.random(), float(numpy.random.rand()), float(torch.rand(()))))
                if seen.get("raise"):
                    raise RuntimeError("on purpose")
                return super().forward(x)

        def state() -> Any:
            return (random.getstate(), str(numpy.random.get_state()),
                    torch.get_rng_state().tolist(), torch.is_anomaly_enabled(),
                    torch.are_deterministic_algorithms_enabled(),
                    torch.is_deterministic_algorithms_warn_only_enabled(),
                    os.environ.get("CUBLAS_WORKSPACE_CONFIG"), torch.is_grad_enabled())
        module = Looks()
        with mock.patch("gc.collect") as collect:
            self.assertTrue(plumb.numeric_check(module, module, vectors(), 1))
        collect.assert_called()
        gradient = torch.ones_like(module.a.weight)
        module.a.weight.grad = gradient
        weights = {name: value.clone() for name, value in module.state_dict().items()}
        for raises in (False, True):
            seen["raise"] = raises
            torch.use_deterministic_algorithms(False)  # whatever others have left
            torch.autograd.set_detect_anomaly(False)
            os.environ.pop("CUBLAS_WORKSPACE_CONFIG", None)
            with torch.no_grad():
                before = state()
                report = plumb.numeric_check(module, module, vectors(), 2)
                self.assertEqual(state(), before)
            self.assertEqual(bool(report), not raises)
            self.assertEqual((seen["deterministic"], seen["anomaly"], seen["workspace"]),
                             (True, True, ":4096:8"))
            self.assertIs(module.a.weight.grad, gradient)
            self.assertTrue(torch.equal(gradient, torch.ones_like(gradient)))
            for name, value in module.state_dict().items():
                self.assertTrue(torch.equal(value, weights[name]), name)
        self.assertEqual(len(set(seen["draws"])), 1)  # every run of each side starts the same
        random.seed(1337)
        self.assertEqual(seen["draws"][0][0], random.random())

    def test_parameters_that_passes_share(self) -> None:
        one = mlp()
        other = fx.GraphModule(one, copy.deepcopy(one.graph))
        self.assertIs(one.a.weight, other.a.weight)
        self.assertTrue(plumb.numeric_check(one, other, vectors()))

    def test_two_modules_over_one_graph(self) -> None:
        """A pass that works in place changes both: nothing could be found."""
        before = mlp()
        after = copy.copy(before)
        self.assertIs(before.graph, after.graph)
        for pair in ((before, after), (before, before)):
            with self.assertRaisesRegex(ValueError, "over one graph"):
                plumb.numeric_check(*pair, vectors())
        os.environ["PLUMB_NUMERIC_CHECK"] = "1"
        self.addCleanup(os.environ.pop, "PLUMB_NUMERIC_CHECK")
        with self.assertLogs("plumb.numeric_check", "ERROR") as told:
            self.assertIsNone(plumb.numeric_check_if_enabled(before, after, vectors(), 1, 1e-4))
        self.assertIn("over one graph", told.output[0])


class Graphs(unittest.TestCase):
    def test_first_node(self) -> None:
        wrong = mlp()
        replace(torch.relu, torch.sigmoid)(wrong)
        wrong.recompile()
        report = plumb.numeric_check(mlp(), wrong, vectors(), 1)
        self.assertEqual(report.first_node, "relu")
        self.assertNotIn("node", {row.kind for row in report.rows})
        report = plumb.numeric_check(mlp(), wrong, vectors(), 1, follow=True)
        nodes = {row.name: row.equal for row in report.rows if row.kind == "node"}
        self.assertEqual(nodes, {"a": True, "relu": False, "b": False, "tanh": False})
        self.assertIn("first node that differs: relu", str(report))
        self.assertTrue(plumb.numeric_check(mlp(), mlp(), vectors(), 1, follow=True))

    def test_unsorted_graph_is_sorted_in_a_copy(self) -> None:
        graph = mlp()
        nodes = {node.name: node for node in graph.graph.nodes}
        nodes["a"].prepend(nodes["b"])
        names = [node.name for node in graph.graph.nodes]
        report = plumb.numeric_check(graph, mlp(), vectors(), 1)
        self.assertTrue(report, str(report))
        self.assertTrue(any("order" in note for note in report.notes))
        self.assertEqual([node.name for node in graph.graph.nodes], names)

    def test_cycle(self) -> None:
        graph = mlp()
        nodes = {node.name: node for node in graph.graph.nodes}
        nodes["a"].args = (nodes["tanh"],)
        report = plumb.numeric_check(graph, mlp(), vectors(), 1)
        self.assertFalse(report)
        self.assertIn("cycle", report.error)


class Passes(unittest.TestCase):
    def passes(self, bad: int, count: int = 16) -> List[Any]:
        calls = [0] * count

        def make(index: int) -> Any:
            def one(graph: fx.GraphModule) -> Any:
                calls[index] += 1
                if index == bad:
                    replace(torch.tanh, torch.sigmoid)(graph)
                return graph if index % 2 else None
            one.__name__ = f"pass_{index}"
            return one
        made = [make(index) for index in range(count)]
        self.calls = calls
        return made

    def test_each_position(self) -> None:
        for bad in (0, 1, 7, 14, 15):
            report = plumb.numeric_check(mlp(), self.passes(bad), vectors(), 1)
            self.assertEqual((report.bad_pass, report.bad_pass_name), (bad, f"pass_{bad}"))
            self.assertEqual((report.runs, report.bad_passes), (1, [bad]))
            self.assertEqual(report.first_node, "tanh")
            self.assertIn(f"pass_{bad} (number {bad + 1} of 16", str(report))

    def test_all_good(self) -> None:
        report = plumb.numeric_check(Mlp(), self.passes(-1), vectors(), 1)
        self.assertTrue(report)
        self.assertEqual((report.runs, report.bad_pass), (1, None))
        self.assertEqual(self.calls, [1] * 16)
        self.assertTrue(plumb.numeric_check(mlp(), [], vectors(), 1))

    def test_original_is_left_alone(self) -> None:
        graph = mlp()
        code = graph.code
        plumb.numeric_check(graph, self.passes(3), vectors(), 1)
        self.assertEqual(graph.code, code)

    def test_a_pass_that_raises(self) -> None:
        def broken(graph: fx.GraphModule) -> None:
            raise ValueError("cannot match")
        report = plumb.numeric_check(mlp(), self.passes(-1, 4) + [broken], vectors(), 1)
        self.assertFalse(report)
        self.assertEqual((report.raised, report.bad_pass), (4, None))
        self.assertIn("broken (number 5 of 5) raised ValueError: cannot match", str(report))
        # One that breaks the numbers before it is still found.
        report = plumb.numeric_check(mlp(), self.passes(2, 4) + [broken], vectors(), 1)
        self.assertEqual((report.raised, report.bad_pass), (4, 2))

    def test_what_passes_return(self) -> None:
        def nonsense(graph: fx.GraphModule) -> Any:
            return "done"

        class Result:
            def __init__(self, graph: fx.GraphModule) -> None:
                self.graph_module = graph
        report = plumb.numeric_check(mlp(), [nonsense], vectors(), 1)
        self.assertEqual(report.raised, 0)
        self.assertTrue(plumb.numeric_check(mlp(), [Result], vectors(), 1))

    def test_a_module_that_fails_blames_no_pass(self) -> None:
        report = plumb.numeric_check(mlp(), self.passes(-1), torch.ones(3), 1)
        self.assertIsNone(report.bad_pass)
        self.assertEqual(report.failed_side, "before")


class Reports(unittest.TestCase):
    def test_save(self) -> None:
        wrong = mlp()
        replace(torch.tanh, torch.sigmoid)(wrong)
        wrong.recompile()
        report = plumb.numeric_check(mlp(), wrong, vectors(), 2)
        with tempfile.TemporaryDirectory() as folder:
            for ending in ("csv", "json", "xlsx", "md", "txt"):
                path = Path(folder) / f"result.{ending}"
                report.save(path)
                self.assertGreater(path.stat().st_size, 500, ending)
            lines = (Path(folder) / "result.csv").read_text().splitlines()
            self.assertEqual(len(lines), len(report.rows) + 1)
            for metric in ("rmse", "max_ulp", "kl", "Cosine", "MaxAbsErr"):
                self.assertIn(metric, lines[0])
            json.loads((Path(folder) / "result.json").read_text())
        self.assertIn("| Iteration", str(report))
        self.assertIn("DIFFERENT", repr(report))
        page = report._repr_html_()
        self.assertIn("<table>", page)
        self.assertIn("FAIL", page)

    def test_many_rows_stay_readable(self) -> None:
        deep = nn.Sequential(*(nn.Linear(2, 2) for _ in range(60)))
        report = plumb.numeric_check(deep, deep, torch.ones(1, 2), 1)
        self.assertLess(len(str(report).splitlines()), 80)


class Enabled(unittest.TestCase):
    def setUp(self) -> None:
        self.config = dict(plumb.numeric_check_config)

    def tearDown(self) -> None:
        plumb.numeric_check_config.update(self.config)
        os.environ.pop("PLUMB_NUMERIC_CHECK", None)

    def test_off_by_default(self) -> None:
        self.assertIsNone(plumb.numeric_check_if_enabled(mlp(), mlp(), vectors()))

    def test_on(self) -> None:
        os.environ["PLUMB_NUMERIC_CHECK"] = "1"
        with self.assertLogs("plumb.numeric_check", logging.INFO) as logs:
            report = plumb.numeric_check_if_enabled(mlp(), mlp(), vectors())
        self.assertTrue(report)
        self.assertEqual(report.num_iterations, 1)
        self.assertIn("EQUAL", logs.output[0])
        os.environ["PLUMB_NUMERIC_CHECK"] = "0"
        plumb.numeric_check_config.update(pre_grad=True, num_iterations=3)
        self.assertIsNone(plumb.numeric_check_if_enabled(mlp(), mlp(), vectors()))
        del os.environ["PLUMB_NUMERIC_CHECK"]
        report = plumb.numeric_check_if_enabled(mlp(), mlp(), vectors())
        self.assertEqual(report.num_iterations, 3)

    def test_never_raises(self) -> None:
        plumb.numeric_check_config["pre_grad"] = True
        with self.assertLogs("plumb.numeric_check", logging.WARNING):
            self.assertFalse(plumb.numeric_check_if_enabled(mlp(), None, vectors()))
        with self.assertLogs("plumb.numeric_check", logging.ERROR):
            self.assertIsNone(plumb.numeric_check_if_enabled(mlp(), mlp(), vectors(), 0))


if __name__ == "__main__":
    unittest.main()
