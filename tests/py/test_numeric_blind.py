#!/usr/bin/python3
"""plumb.numeric_check never says EQUAL about something that it did not compare, or that is not
equal; and never blames what is."""

import collections
import dataclasses
import enum
import logging
import os
import sys
import threading
import unittest
import warnings
from pathlib import Path
from typing import Any, Callable, List
from unittest import mock

sys.path.insert(0, str(Path(os.environ["PLUMB_BUILD"]) / "python"))

import numpy
import torch
from torch import fx, nn
from torch.utils.checkpoint import checkpoint

import plumb


def vectors() -> torch.Tensor:
    return torch.randn(4, 6, generator=torch.Generator().manual_seed(2))


class Gives(nn.Module):
    """Returns what a function makes of its parameters and inputs."""

    def __init__(self, function: Callable[..., Any], size: int = 6) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.fc = nn.Linear(6, size)
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(self.fc, *args, **kwargs)


def check(before: Callable[..., Any], after: Callable[..., Any], inputs: Any = None,
          iterations: int = 1, **more: Any) -> Any:
    return plumb.numeric_check(Gives(before), Gives(after), vectors() if inputs is None else inputs,
                               iterations, **more)


def setUpModule() -> None:
    free = mock.patch("plumb._passcheck.state.free_caches")  # takes longer than all of these checks
    free.start()
    unittest.addModuleCleanup(free.stop)


class Case(unittest.TestCase):
    def equal(self, report: Any) -> Any:
        self.assertTrue(report, str(report))
        self.assertTrue(str(report.summary()).startswith("EQUAL"), report.summary())
        return report

    def different(self, report: Any, kind: str, name: str, reason: str = "") -> Any:
        self.assertFalse(report, str(report))
        self.assertIsNone(report.error, report.error)
        self.assertIn((kind, name), {(row.kind, row.name) for row in report.failures})
        self.assertTrue(any(reason in row.reason for row in report.failures
                            if (row.kind, row.name) == (kind, name)), report.summary())
        return report


class Plain:
    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


class Slots:
    __slots__ = ("value", "__hidden")

    def __init__(self, value: Any, hidden: Any) -> None:
        self.value = value
        self.__hidden = hidden


@dataclasses.dataclass(eq=False)
class Data:
    value: Any


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Opaque:
    """Holds its value where nobody can see it."""

    def __init__(self, value: Any) -> None:
        self.get = lambda: value


class Row(list):
    pass


class Named(dict):
    pass


def with_attribute(holder: Any, value: Any) -> Any:
    holder.more = value
    return holder


WAYS: List[Callable[[Any], Any]] = [
    lambda y: Plain(y=y), lambda y: Slots(y, 1), lambda y: Slots(1, y), Data,
    lambda y: {y}, lambda y: frozenset((y, 1)), lambda y: iter([y]),
    lambda y: (item for item in [y, 2]), lambda y: map(lambda x: x, [y]),
    lambda y: collections.deque([y]), lambda y: {"a": y}.values(), lambda y: {"a": y}.items(),
    lambda y: collections.UserDict(a=y), lambda y: collections.UserList([y]),
    lambda y: [Plain(inner=Data([y]))], lambda y: {1: y, "1": 0}, lambda y: {"1": 0, 1: y},
    lambda y: {"a.b": y, "a": {"b": 0}}, lambda y: y.detach().numpy(),
    lambda y: torch.distributions.Normal(y, 1.0), lambda y: nn.Parameter(y.detach()),
    lambda y: torch.nested.nested_tensor([y.detach(), y.detach()[:2]]), lambda y: y.sum().item(),
    lambda y: complex(y.sum().item(), 1), lambda y: bytearray(str(y).encode()),
    lambda y: y.detach().to_sparse(), lambda y: with_attribute(Row([1]), y),
    lambda y: with_attribute(Named(a=1), [y]), lambda y: with_attribute(torch.ones(2), y),
]


class Outputs(Case):
    def test_any_container(self) -> None:
        for number, way in enumerate(WAYS):
            with self.subTest(way=number):
                self.equal(check(lambda fc, x: way(fc(x)), lambda fc, x: way(fc(x))))
                report = check(lambda fc, x: way(fc(x)), lambda fc, x: way(fc(x) + 1))
                self.assertFalse(report, str(report))
                self.assertEqual(report.summary()[:9], "DIFFERENT", str(report))

    def test_what_cannot_be_compared(self) -> None:
        def endless(y: Any) -> Any:
            while True:
                yield 0
        for way in (Opaque, lambda y: threading.Lock(), lambda y: object(), endless,
                    lambda y: y.detach().to("meta"), lambda y: lambda: y,
                    lambda y: [y, numpy.array([None, 1], dtype=object)]):
            report = check(lambda fc, x: way(fc(x)), lambda fc, x: way(fc(x)))
            self.assertFalse(report, str(report))
            self.assertTrue(report.summary().startswith("NOT COMPARED"), report.summary())
            self.assertIn("NOT COMPARED", {row.verdict for row in report.failures})

    def test_values_that_are_no_tensors(self) -> None:
        for one, other in ((Colour.RED, Colour.BLUE), (torch.float32, torch.float64), ("a", "b"),
                           (torch.device("cpu"), torch.device("meta")), (range(3), range(4)),
                           (numpy.float32(1), numpy.float32(2)), (True, 1), ([], [()]),
                           ([], None), ((), {"a": 1}), (torch.relu, len)):
            self.equal(check(lambda fc, x: (x, one), lambda fc, x: (x, one)))
            self.assertFalse(check(lambda fc, x: (x, one), lambda fc, x: (x, other)), (one, other))

    def test_integers_are_equal_or_not(self) -> None:
        for one, other in ((31999, 31998), (2**40, 2**40 + 1), (-10**6, 1 - 10**6)):
            for kind in (torch.tensor, numpy.array):
                self.equal(check(lambda fc, x: (kind([one]),), lambda fc, x: (kind([one]),)))
                report = check(lambda fc, x: (kind([one]),), lambda fc, x: (kind([other]),))
                self.different(report, "output", "output.0")
        # Who asks for whole numbers that may be off by one gets it.
        self.equal(check(lambda fc, x: torch.tensor([31999]), lambda fc, x: torch.tensor([31998]),
                         precision=1.0, compare=["output"]))
        self.equal(check(lambda fc, x: x * 1e6, lambda fc, x: x * 1e6 * (1 + 5e-5),
                         compare=["output"]))

    def test_a_thing_that_holds_itself(self) -> None:
        def ring(fc: Any, x: Any) -> Any:
            found = [fc(x)]
            found.append(found)
            return found
        self.equal(check(ring, ring))

        def deep(fc: Any, x: Any, add: float = 0) -> Any:
            value: Any = fc(x) + add
            for _ in range(100):
                value = [value]
            return value
        self.assertFalse(check(deep, lambda fc, x: deep(fc, x, 1)))

    def test_sets_of_tensors_have_no_order(self) -> None:
        def several(fc: Any, x: Any, add: float = 0) -> Any:
            y = fc(x)
            parts = [y[i] * (1 if i % 2 else -1) for i in range(4)] + [y.flip(0), y]
            return set(part + add for part in reversed(parts)) if add else set(parts)
        self.equal(check(several, lambda fc, x: several(fc, x, 1e-7)))
        self.assertFalse(check(several, lambda fc, x: several(fc, x, 1e-2)))

    def test_dicts_in_another_order(self) -> None:
        def one(fc: Any, x: Any) -> Any:
            y = fc(x)
            return {"a": y * 3, "b": y.tanh(), "c": 1}

        def other(fc: Any, x: Any) -> Any:
            y = fc(x)
            return {"c": 1, "b": y.tanh(), "a": y * 3}
        self.equal(check(one, other, iterations=3))
        self.different(check(one, lambda fc, x: {**other(fc, x), "b": fc(x)}), "output", "output.b")

    def test_an_output_that_became_none(self) -> None:
        self.different(check(lambda fc, x: (fc(x), fc(x)), lambda fc, x: (fc(x), None)),
                       "output", "output.1", "None after")
        self.different(check(lambda fc, x: {"a": None, "b": fc(x)},
                             lambda fc, x: {"a": fc(x), "b": fc(x)}),
                       "output", "output.a", "None before")
        self.equal(check(lambda fc, x: (fc(x), None), lambda fc, x: (fc(x), None)))


class Inputs(Case):
    def test_strides_sharing_and_overlap(self) -> None:
        base = torch.randn(6, 12, generator=torch.Generator().manual_seed(4))
        row = torch.randn(1, 6, generator=torch.Generator().manual_seed(4))
        whole = vectors()
        half = torch.randn(3, 6, dtype=torch.complex64)

        def add(fc: Any, x: Any) -> Any:
            return fc(x) * 1

        def ignores_strides(fc: Any, x: Any) -> Any:
            flat = x.as_strided(x.shape, (x.shape[1], 1), x.storage_offset()) \
                if x.stride() != (x.shape[1], 1) else x
            return fc(flat)
        for x in (base[:4, ::2], row.expand(4, 6), base.t()[:6, :6], base[:, 2:8]):
            self.assertFalse(check(add, ignores_strides, x))
            self.equal(check(add, add, x))
        self.equal(check(ignores_strides, ignores_strides, base[:4, ::2]))

        def ignores_the_offset(fc: Any, x: Any) -> Any:
            return fc(x.as_strided(x.shape, x.stride(), 0))
        rows = torch.randn(60_000, 6, generator=torch.Generator().manual_seed(4))
        for x in (base[2:, :6], rows[-4:], rows[1:5]):
            self.assertFalse(check(add, ignores_the_offset, x))
            self.equal(check(add, add, x))

        def both(fc: Any, x: Any, y: Any) -> Any:
            return fc(x) + fc(y)

        def in_place(fc: Any, x: Any, y: Any) -> Any:
            out = fc(x)
            x.zero_()  # harmless unless y is the same memory
            result = out + fc(y)
            return result
        for y in (whole, whole[:], whole.view(-1).view(4, 6)):
            report = check(both, in_place, (whole, y), compare=["output"])
            self.different(report, "output", "output.0")
        self.equal(check(both, in_place, (whole, whole.clone()), compare=["output"]))
        self.equal(check(lambda fc, x, y: x.real + y, lambda fc, x, y: x.real + y,
                         (half.conj(), half.view(torch.float32)[:, :6])))

    def test_numpy_views(self) -> None:
        array = numpy.arange(12, dtype=numpy.float32)

        def plain(fc: Any, x: Any, y: Any) -> Any:
            return x + y

        def in_place(fc: Any, x: Any, y: Any) -> Any:
            kept = x.copy()
            x[:] = 0
            return kept + y
        self.different(check(plain, in_place, (array[::2], array[::2]), compare=["output"]),
                       "output", "output")
        self.assertEqual(array[2], 2)

    def test_parameters_keep_their_memory(self) -> None:
        class Flat(nn.Module):
            """Two parameters that are one memory."""

            def __init__(self) -> None:
                super().__init__()
                memory = torch.linspace(-1, 1, 72)
                self.a = nn.Parameter(memory[::2].view(6, 6))
                self.b = nn.Parameter(memory[::2].view(6, 6).t())
                self.register_buffer("all", memory)

            def forward(self, x: torch.Tensor) -> Any:
                assert self.a.stride() == (12, 2) and self.b.stride() == (2, 12)
                with torch.no_grad():
                    self.all += 1
                return x @ self.a + x @ self.b
        flat = Flat()
        kept = flat.all.clone()
        self.equal(plumb.numeric_check(flat, flat, vectors(), 3))
        self.assertTrue(torch.equal(kept, flat.all))

    def test_an_input_that_is_changed(self) -> None:
        def changes(fc: Any, x: Any, *more: Any) -> Any:
            y = fc(x.clone())
            x.add_(1)
            return y
        self.different(check(lambda fc, x: fc(x), changes), "input", "input.0")
        self.different(check(changes, lambda fc, x: fc(x)), "input", "input.0")
        self.equal(check(changes, changes))

        def fills(fc: Any, x: Any, cache: Any) -> Any:
            cache["k"] = fc(x)
            return fc(x)
        self.different(check(lambda fc, x, cache: fc(x), fills, (vectors(), {"a": 1})), "input",
                       "input.1.k", "only after")
        self.different(check(lambda fc, x, cache: fc(x), fills, {"x": vectors(), "cache": {}}),
                       "input", "input.1.cache.k", "only after")
        self.equal(check(fills, fills, (vectors(), {})))
        self.equal(check(lambda fc, x: fc(x), changes, compare=["output"]))

    def test_inputs_of_any_kind(self) -> None:
        made = vectors().requires_grad_() * 2  # what deepcopy refuses
        held = Plain(x=made, lock=1)

        def uses(fc: Any, held: Any) -> Any:
            held.x.data.add_(1)
            return fc(held.x)
        self.equal(check(uses, uses, (held,), 2))
        report = check(lambda fc, x, lock: fc(x), lambda fc, x, lock: fc(x),
                       (vectors(), threading.Lock()))
        self.assertTrue(any("cannot be copied and is shared" in note for note in report.notes))
        report = self.equal(check(lambda fc, x, mark: fc(x), lambda fc, x, mark: fc(x),
                                  (vectors(), object())))
        self.assertTrue(any("input.1 was not compared" in note for note in report.notes))
        report = check(lambda fc, xs: fc(next(xs)), lambda fc, xs: fc(next(xs)),
                       ((x for x in [vectors()]),))
        self.assertFalse(report)
        self.assertIn("only once", report.error)


class Gradients(Case):
    def test_on_one_side_only(self) -> None:
        def cut(fc: Any, x: Any) -> Any:
            return x @ fc.weight.t() + fc.bias.detach()

        def whole(fc: Any, x: Any) -> Any:
            return x @ fc.weight.t() + fc.bias
        self.different(check(whole, cut), "gradient", "fc.bias", "None after")
        self.different(check(cut, whole), "gradient", "fc.bias", "None before")
        self.equal(check(cut, cut))

    def test_the_sum_of_a_softmax(self) -> None:
        def right(fc: Any, x: Any) -> Any:
            return torch.softmax(fc(x), 1)

        def wrong(fc: Any, x: Any) -> Any:
            y = fc(x)
            return torch.softmax(y + (y - y.detach()), 1)
        report = check(right, wrong)
        self.different(report, "gradient of all outputs", "fc.weight")
        self.assertEqual([row for row in report.failures if row.kind == "gradient"], [])
        self.equal(check(right, lambda fc, x: fc(x).exp() / fc(x).exp().sum(1, keepdim=True),
                         iterations=10))

    def test_other_outputs_than_the_first(self) -> None:
        def right(fc: Any, x: Any) -> Any:
            return fc(x), fc(x).tanh()

        def wrong(fc: Any, x: Any) -> Any:
            return fc(x), fc(x).detach().tanh()

        def scaled(fc: Any, x: Any) -> Any:
            y = fc(x)
            return y, (y + 2 * (y - y.detach())).tanh()
        self.different(check(right, wrong), "gradient", "output.1", "only before")
        self.different(check(right, scaled), "gradient of all outputs", "fc.bias")
        self.equal(check(right, right))

    def test_kinds_of_modules(self) -> None:
        def checkpointed(fc: Any, x: Any) -> Any:
            return checkpoint(lambda v: fc(v).relu(), x)
        x = vectors().requires_grad_()
        self.equal(check(checkpointed, lambda fc, x: fc(x).relu(), x, 2))
        self.equal(check(lambda fc, x: torch.fft.fft(fc(x)), lambda fc, x: torch.fft.fft(fc(x))))
        self.equal(plumb.numeric_check(nn.Embedding(7, 3, sparse=True), nn.Embedding(7, 3),
                                       torch.tensor([1, 2]), 1, compare=["gradient"]))

    def test_scripted_modules(self) -> None:
        torch.manual_seed(5)
        plain = nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Tanh())
        plain[0].bias.requires_grad_(False)
        scripted = torch.jit.script(plain)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traced = torch.jit.trace(plain, vectors(), check_trace=False)
        weight = plain[0].weight.detach().clone()
        for one in (scripted, traced, nn.Sequential(scripted)):
            self.equal(plumb.numeric_check(one, one, vectors(), 2))
        for one in (scripted, traced):
            report = self.equal(plumb.numeric_check(plain, one, vectors(), 2))
            self.assertIn("0.weight", {row.name for row in report.rows if row.kind == "gradient"})
        self.assertTrue(torch.equal(weight, plain[0].weight))
        other = torch.jit.script(nn.Sequential(plain[0], nn.BatchNorm1d(6, momentum=0.5), plain[2]))
        self.different(plumb.numeric_check(plain, other, vectors(), 1), "buffer", "1.running_mean")


class Compiled(nn.Module):
    """As torch.compile wraps a module."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self._orig_mod = module

    def forward(self, *args: Any) -> Any:
        return self._orig_mod(*args)


class Renamed(nn.Module):
    def __init__(self, model: nn.Module, names: List[str], changed: bool = False) -> None:
        super().__init__()
        for name, value in zip(names, model.parameters()):
            value = nn.Parameter(value.detach().clone())
            self.register_parameter(name, value)
        self.names = names
        self.swapped = changed

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        w, b, v, c = (getattr(self, name) for name in self.names)
        b, c = (c, b) if self.swapped else (b, c)
        return torch.tanh(torch.relu(x @ w.t() + b) @ v.t() + c)


class Names(Case):
    def model(self) -> nn.Module:
        torch.manual_seed(5)
        return nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 6), nn.Tanh())

    def test_compiled(self) -> None:
        model = self.model()
        for sides in ((model, Compiled(model)), (Compiled(model), model),
                      (Compiled(model), Compiled(model)),
                      (nn.Sequential(model), nn.Sequential(Compiled(model)))):
            report = self.equal(plumb.numeric_check(*sides, vectors(), 2))
            self.assertIn("0.weight", {row.name[-8:] for row in report.rows
                                       if row.kind == "gradient"})

    def test_renamed(self) -> None:
        model = self.model()
        for names in (["0_weight", "0_bias", "2_weight", "2_bias"], ["a", "b", "c", "d"]):
            report = self.equal(plumb.numeric_check(model, Renamed(model, names), vectors(), 2))
            self.assertIn(f"parameter 2.bias is called {names[3]} after", report.notes)
            report = plumb.numeric_check(model, Renamed(model, names, True), vectors(), 1)
            self.different(report, "gradient", "2.bias")
        shared = nn.ModuleDict({"inner": model})
        shared.forward = model.forward  # the same parameters under other names
        self.assertTrue(plumb.numeric_check(model, shared, vectors(), 1, compare=["parameter"]))

    def test_not_a_name_for_something_else(self) -> None:
        model = self.model()
        other = Renamed(model, ["a", "b", "c", "d"])
        with torch.no_grad():
            other.d += 1e-3
        report = plumb.numeric_check(model, other, vectors(), 1)
        self.different(report, "parameter", "2.bias", "only before")
        self.different(report, "parameter", "d", "only after")


def replaces(old: Any, new: Any, name: str) -> Any:
    def one(graph: fx.GraphModule) -> None:
        for node in graph.graph.nodes:
            if node.target is old:
                node.target = new
    one.__name__ = name
    return one


class Traced(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(6, 6)
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return torch.tanh(self.fc(x)) * self.calls


class Passes(Case):
    def model(self) -> fx.GraphModule:
        return fx.symbolic_trace(nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 6)))

    def test_two_that_cancel(self) -> None:
        class Net(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.fc = nn.Linear(6, 6)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return torch.tanh(self.fc(x))

        def nothing(graph: fx.GraphModule) -> None:
            pass
        passes = [nothing, replaces(torch.tanh, torch.sigmoid, "breaks"), nothing,
                  replaces(torch.sigmoid, torch.tanh, "mends"), nothing]
        for net in (Net(), fx.symbolic_trace(Net())):
            report = plumb.numeric_check(net, passes, vectors(), 2)
            self.assertFalse(report, str(report))
            self.assertEqual((report.bad_pass_name, report.bad_passes), ("breaks", [1, 3]))
            self.assertIn("another pass that broke the numbers: mends (number 4)", str(report))
        self.equal(plumb.numeric_check(Net(), [nothing, nothing], vectors(), 2))

    def test_differences_that_add_up(self) -> None:
        def drifts(graph: fx.GraphModule) -> None:
            with torch.no_grad():
                graph.get_submodule("1").bias += 0.6e-4
        report = plumb.numeric_check(self.model(), [drifts] * 6, vectors(), 1)
        self.assertFalse(report)
        self.assertEqual(report.bad_pass, 1)
        self.assertLessEqual(report.runs, 4)

    def test_tracing_that_changes_the_module(self) -> None:
        module = Traced()
        report = plumb.numeric_check(module, [lambda graph: None], vectors(), 2)
        self.assertFalse(report, str(report))
        self.assertEqual((report.traced, report.bad_pass), (False, None))
        self.assertIn("tracing itself", str(report))
        self.assertEqual(module.calls, 0)

        class Folded(Traced):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.fc(x) if isinstance(x, fx.Proxy) else -self.fc(x)
        report = plumb.numeric_check(Folded(), [lambda graph: None], vectors(), 1)
        self.assertEqual((bool(report), report.traced, report.bad_pass), (False, False, None))


class Enabled(Case):
    def setUp(self) -> None:
        os.environ["PLUMB_NUMERIC_CHECK"] = "1"
        self.addCleanup(os.environ.pop, "PLUMB_NUMERIC_CHECK")

    def test_names_of_the_origin(self) -> None:
        module = Gives(lambda fc, x: fc(x))
        report = plumb.numeric_check_if_enabled(
            gm_before_fx_passes=module, gm_after_fx_passes=module, example_inputs=(vectors(),),
            num_iterations=2, precision=1e-4)
        self.equal(report)
        self.assertEqual(report.num_iterations, 2)

    def test_never_raises(self) -> None:
        module = Gives(lambda fc, x: fc(x))

        class Exits(nn.Module):
            def forward(self, x: torch.Tensor) -> Any:
                raise SystemExit(3)

        class Unspeakable(Exception):
            def __str__(self) -> str:
                raise RuntimeError("no words")

        class Raises(nn.Module):
            def forward(self, x: torch.Tensor) -> Any:
                raise Unspeakable
        for args, kwargs in (((), {}), ((module,), {}), ((module, module, vectors(), 1, 1e-4), {}),
                             ((module, module, vectors()), {"nonsense": 1}),
                             ((module, module, vectors()), {"before": module}),
                             ((module, module, vectors()), {"num_iterations": "many"}),
                             ((module, Exits(), vectors()), {}),
                             ((module, Raises(), vectors()), {})):
            with self.assertLogs("plumb.numeric_check", logging.INFO):
                plumb.numeric_check_if_enabled(*args, **kwargs)
        config, plumb.numeric_check_config = plumb.numeric_check_config, None
        try:
            with self.assertLogs("plumb.numeric_check", logging.ERROR):
                self.assertIsNone(plumb.numeric_check_if_enabled(module, module, vectors()))
        finally:
            plumb.numeric_check_config = config
        del os.environ["PLUMB_NUMERIC_CHECK"]
        self.assertIsNone(plumb.numeric_check_if_enabled(1, 2, 3, 4, 5, 6, 7, 8, 9))
        os.environ["PLUMB_NUMERIC_CHECK"] = "0"


if __name__ == "__main__":
    unittest.main()
