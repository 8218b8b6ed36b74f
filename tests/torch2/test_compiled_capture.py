"""Compiled regions while something is recorded: nothing raised, no graph broken, no number changed, and
the boundary of every region in the dump."""

import sys
import unittest
from pathlib import Path
from typing import Any, Callable, List, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "py"))

from capture_case import CaptureTest, Dump  # noqa: E402

import torch  # noqa: E402
from torch import nn  # noqa: E402

import plumb  # noqa: E402

WAYS = ("torch.compile(module)", "module.compile()", "function")
LEVELS = ("L0", "L1", "mix")


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(16, 32)
        self.norm = nn.LayerNorm(32)
        self.last = nn.Linear(32, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.norm(nn.functional.gelu(self.first(x))))


def made() -> Tuple[Model, torch.Tensor]:
    torch.manual_seed(0)
    return Model(), torch.randn(8, 16)


def compiled(model: nn.Module, way: str, **options: Any) -> Callable[..., Any]:
    options = {"fullgraph": True, **options}
    if way == "torch.compile(module)":
        return torch.compile(model, **options)
    if way == "module.compile()":
        model.compile(**options)
        return model

    def whole(x: torch.Tensor) -> torch.Tensor:
        return model(x)
    return torch.compile(whole, **options)


def train(model: nn.Module, run: Callable[..., Any], x: torch.Tensor) -> List[torch.Tensor]:
    """One step: the result and all gradients."""
    result = run(x)
    result.square().mean().backward()
    return [result.detach()] + [parameter.grad.clone() for parameter in model.parameters()]


class Capture(CaptureTest):
    def setUp(self) -> None:
        super().setUp()
        torch._dynamo.reset()

    def recorded(self, way: str, level: str, early: bool, **options: Any) -> Tuple[List[torch.Tensor], Dump]:
        """early: compiled, and run once, before something is recorded."""
        model, x = made()
        run = compiled(model, way, **options) if early else None
        if run is not None:
            run(x)
        debugger = self.debugger(task="tensor", level=level)
        if run is None:
            run = compiled(model, way, **options)
        debugger.start(run if way == "torch.compile(module)" else model)
        found = train(model, run, x)
        debugger.stop()
        debugger.step()
        return found, self.dump()

    def same(self, a: List[torch.Tensor], b: List[torch.Tensor]) -> None:
        self.assertEqual(len(a), len(b))
        for one, other in zip(a, b):
            self.assertTrue(torch.equal(one, other))

    def test_every_way_is_bit_identical(self) -> None:
        model, x = made()
        plain = train(model, compiled(model, WAYS[0]), x)
        for way in WAYS:
            for level in LEVELS:
                for early in (False, True):
                    with self.subTest(way=way, level=level, early=early):
                        torch._dynamo.reset()
                        found, dump = self.recorded(way, level, early)
                        self.same(plain, found)
                        self.assertEqual("", dump.problems())

    def test_the_boundary_is_recorded(self) -> None:
        for way in WAYS:
            for level in LEVELS:
                with self.subTest(way=way, level=level):
                    torch._dynamo.reset()
                    found, dump = self.recorded(way, level, True)
                    as_module = way != "function" and level != "L1"
                    name = "Module.Model" if as_module else \
                        "Compiled.whole.0" if way == "function" else "Compiled.Model.0"
                    title = (lambda d: f"{name}.{d}.0") if as_module else (lambda d: f"{name}.{d}")
                    forward, backward = dump.data[title("forward")], dump.data[title("backward")]
                    self.same([made()[1]], [dump.tensor(forward["input_args"][0])])
                    self.same(found[:1], [dump.tensor(forward["output"][0])])
                    self.assertTrue(backward["input"])

    def test_no_eager_numbers_in_a_regions_name(self) -> None:
        """What runs inside is not recorded call by call, and the modules inside are listed."""
        _, dump = self.recorded(WAYS[0], "mix", True)
        inside = [name for name in dump.data if "Linear.forward" in name or "gelu" in name]
        self.assertEqual([], inside)
        listed = (dump.folder / "not_recorded.txt").read_text()
        for path in ("first", "norm", "last"):
            self.assertIn(f"{path} runs inside the compiled region of Model", listed)

    def test_gradients_of_parameters_inside(self) -> None:
        found, dump = self.recorded(WAYS[0], "L0", True)
        grads = dict(zip(("first.weight", "first.bias", "norm.weight", "norm.bias", "last.weight", "last.bias"),
                         found[1:]))
        for path, kind in (("first", "Linear"), ("norm", "LayerNorm"), ("last", "Linear")):
            entry = dump.data[f"Module.{path}.{kind}.parameters_grad.0"]
            for name in ("weight", "bias"):
                self.same([grads[f"{path}.{name}"]], [dump.tensor(entry[name][0])])

    def test_a_model_that_was_compiled_apart(self) -> None:
        """start() was given the model, and what runs is torch.compile(model)."""
        model, x = made()
        run = torch.compile(model, fullgraph=True)
        debugger = self.debugger(task="tensor", level="mix")
        debugger.start(model)
        train(model, run, x)
        debugger.stop()
        debugger.step()
        dump = self.dump()
        for name in ("first.Linear", "norm.LayerNorm", "last.Linear"):
            self.assertIn(f"Module.{name}.parameters_grad.0", dump.data)
        missing = (Path(dump.folder) / "not_recorded.txt").read_text()
        self.assertIn("first runs inside the compiled region of Compiled.Model", missing)
        self.assertNotIn("was not called", missing)

    def test_the_region_is_not_compiled_again(self) -> None:
        """Neither when recording begins, nor when it ends."""
        model, x = made()
        counted = torch._dynamo.testing.CompileCounter()
        run = torch.compile(model, backend=counted, fullgraph=True)
        run(x)
        for level in LEVELS:
            debugger = self.debugger(level=level)
            for _ in range(2):
                debugger.start(run)
                run(x)
                debugger.stop()
                run(x)
                debugger.step()
        self.assertEqual(1, counted.frame_count)

    def test_a_compiled_part_pairs_with_the_eager_one(self) -> None:
        """The block of a model that is compiled alone has the name that it has in an eager run."""
        titles = []
        for compile_it in (False, True):
            torch.manual_seed(0)
            model = nn.Sequential(nn.Linear(16, 16), Model())
            if compile_it:
                model[1].norm = torch.compile(model[1].norm)
            debugger = self.debugger(level="L0")
            debugger.start(model)
            model(torch.randn(8, 16)).sum().backward()
            debugger.stop()
            debugger.step()
            titles.append({name for name in self.dump().data})
        self.assertEqual(titles[0], titles[1])

    def test_what_is_outside_is_recorded_as_before(self) -> None:
        """Graph breaks run parts of a function as Python; calls before and after a region are seen."""
        model, x = made()

        def broken(x: torch.Tensor) -> torch.Tensor:
            x = model(x)
            print("", end="")
            return x * 2
        run = torch.compile(broken)
        debugger = self.debugger(level="L1")
        debugger.start()
        result = torch.relu(run(torch.tanh(x)))
        debugger.stop()
        debugger.step()
        data = self.dump().data
        self.assertEqual(["Torch.tanh.0.forward", "Compiled.broken.0.forward", "Torch.relu.0.forward"], list(data))
        self.assertEqual("", self.dump().problems())
        self.assertEqual(result.shape, (8, 4))

    def test_operators_of_a_compiled_backward_are_no_calls(self) -> None:
        """The compiler leaves some as they are: all of them (aot_eager), or those that it has no code for."""
        def distances(x: torch.Tensor) -> torch.Tensor:
            return torch.cdist(x * 2, x + 1, p=3.0)
        for backend in ("aot_eager", "inductor"):
            with self.subTest(backend=backend):
                torch._dynamo.reset()
                x = torch.randn(6, 4, generator=torch.Generator().manual_seed(1), requires_grad=True)
                run = torch.compile(distances, backend=backend)
                debugger = self.debugger(task="tensor", level="L1")
                debugger.start()
                torch.tanh(run(x)).sum().backward()
                torch.relu(x)
                debugger.stop()
                debugger.step()
                data = self.dump().data
                self.assertEqual(["Compiled.distances.0.forward", "Torch.tanh.0.forward", "Tensor.sum.0.forward",
                                  "Torch.relu.0.forward"], [name for name in data if name.endswith("forward")])
                self.assertIn("Compiled.distances.0.backward", data)
                self.assertEqual("", self.dump().problems())

    def test_an_error_inside_is_the_scripts_own(self) -> None:
        def wrong(x: torch.Tensor) -> torch.Tensor:
            return x @ torch.ones(3, 3)
        debugger = self.debugger(level="L1")
        debugger.start()
        with self.assertRaises(Exception):
            torch.compile(wrong)(torch.ones(2, 2))
        torch.relu(torch.ones(2))
        debugger.stop()
        debugger.step()
        self.assertIn("Torch.relu.0.forward", self.dump().data)
        torch.compile(lambda x: x + 1, fullgraph=True)(torch.ones(2))  # nothing of ours is left behind


class Inside(CaptureTest):
    """compiled="inside": the nodes of the region's graph."""

    CALLS = ["InsideFunctional.linear.0.forward", "InsideFunctional.gelu.0.forward",
             "InsideFunctional.layer_norm.0.forward", "InsideFunctional.linear.1.forward"]

    def setUp(self) -> None:
        super().setUp()
        torch._dynamo.reset()

    def recorded(self, way: str, level: str) -> Tuple[List[torch.Tensor], Dump]:
        model, x = made()
        debugger = self.debugger(task="tensor", level=level, compiled="inside")
        run = compiled(model, way)
        debugger.start(run if way == WAYS[0] else model)
        found = train(model, run, x)
        debugger.stop()
        debugger.step()
        return found, self.dump()

    def test_nodes_are_recorded(self) -> None:
        model, x = made()
        plain = train(model, compiled(model, WAYS[0]), x)
        for way, level in ((WAYS[0], "mix"), (WAYS[1], "L0"), (WAYS[2], "L1")):
            with self.subTest(way=way, level=level):
                torch._dynamo.reset()
                found, dump = self.recorded(way, level)
                for one, other in zip(plain, found):
                    self.assertTrue(torch.equal(one, other))
                self.assertEqual("", dump.problems())
                self.assertEqual(self.CALLS, [name for name in dump.data if name.startswith("Inside")])
                self.assertTrue(any(name.startswith(("Compiled", "Module.Model")) for name in dump.data))
                model, x = made()
                entry = dump.data[self.CALLS[0]]
                self.assertTrue(torch.equal(x, dump.tensor(entry["input_args"][0])))
                self.assertTrue(torch.equal(model.first(x), dump.tensor(entry["output"][0])))

    def test_each_is_judged(self) -> None:
        _, dump = self.recorded(WAYS[0], "L1")
        found = plumb.blame(dump.folder)
        self.assertTrue(found, found)
        right = found["verdicts"]["same"] + found["verdicts"]["rounding"]
        self.assertGreaterEqual(right, len(self.CALLS), found)

    def blamed(self, backend: Any, scale: float, level: str) -> Any:
        """What is said of a run, against one that is right."""
        folders = []
        for which, factor in ((backend, scale), ("aot_eager", 1.0)):
            torch._dynamo.reset()
            model, x = made()
            with torch.no_grad():
                model.norm.weight.mul_(factor)
            debugger = self.debugger(task="tensor", level=level, compiled="inside")
            run = torch.compile(model, backend=which)
            debugger.start(run)
            train(model, run, x)
            debugger.stop()
            debugger.step()
            folders.append(self.dump().folder)
        return plumb.blame(*folders)

    def test_the_first_node_is_named(self) -> None:
        """Not the region around it."""
        for level in ("L1", "mix"):
            with self.subTest(level=level):
                found = self.blamed("aot_eager", 1.01, level)
                self.assertEqual([], found["faults"])
                first = found["sources"][0]
                self.assertEqual(("InsideFunctional.layer_norm.0.forward", "input.2"), (first["call"], first["place"]))
                self.assertIn("Model", first["parent"])

    def test_what_the_compiler_made_of_right_nodes(self) -> None:
        def wrong(graph: Any, example: Any) -> Any:
            for node in graph.graph.nodes:
                if node.op == "call_function" and "gelu" in str(node.target):
                    node.target, node.kwargs = nn.functional.relu, {}
            graph.recompile()
            return graph.forward
        for level in ("L1", "mix"):
            with self.subTest(level=level):
                found = self.blamed(wrong, 1.0, level)
                self.assertEqual(1, len(found["faults"]))
                self.assertIn("Model", found["faults"][0]["call"])
                self.assertIn("what the compiler made of them is not", found["faults"][0]["why"])
                self.assertNotIn("stale", found["faults"][0]["why"])

    def test_nobody_is_blamed_for_a_right_one(self) -> None:
        for level in ("L1", "mix"):
            found = self.blamed("inductor", 1.0, level)
            self.assertEqual(([], []), (found["faults"], found["sources"]))

    def test_random_numbers_are_not_drawn(self) -> None:
        def run(**settings: Any) -> torch.Tensor:
            torch._dynamo.reset()
            torch.manual_seed(3)
            model = nn.Sequential(nn.Linear(16, 16), nn.Dropout(0.5))
            debugger = self.debugger(level="L1", **settings)
            step = torch.compile(model)
            debugger.start()
            result = step(torch.ones(8, 16)) + torch.rand(8, 16)
            debugger.stop()
            debugger.step()
            return result
        self.assertTrue(torch.equal(run(), run(compiled="inside")))

    def test_a_region_that_was_compiled_before(self) -> None:
        """Only where no debugger of this process has asked for it yet."""
        model, x = made()
        from torch._dynamo.output_graph import OutputGraph
        from plumb._capture import inside
        if inside._original is not None:
            OutputGraph.call_user_compiler, inside._original = inside._original, None
        run = torch.compile(model)
        run(x)
        debugger = self.debugger(level="L1", compiled="inside")
        debugger.start()
        run(x)
        debugger.stop()
        debugger.step()
        self.assertIn("it was compiled before", self.dump().problems())


if __name__ == "__main__":
    unittest.main()
