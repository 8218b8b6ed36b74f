"""What a capture could overlook: modules that work without being called, or come later; and what it
says about those it did not record."""

import collections.abc
import contextlib
import copy
import inspect
import io
import pickle
import re
import subprocess
import sys
import types
import unittest
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

sys.path.insert(0, str(Path(__file__).parent))
import h5py  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from capture_case import PLUMB, CaptureTest  # noqa: E402
from plumb import Error, PrecisionDebugger  # noqa: E402
from torch import nn  # noqa: E402

STEM = "globalrank-0_localrank-0"


class Scaled(nn.Module):
    """A parameter of its own beside a module."""

    def __init__(self) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.full((4,), 2.0))
        self.fc = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x) * self.gamma


class Tied(nn.Module):
    """Uses the weights of a module that it never calls."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, self.emb.weight)


class Direct(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.Tanh())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner[1].forward(self.inner[0].forward(x))


class BlindTest(CaptureTest):
    def setUp(self) -> None:
        super().setUp()
        torch.manual_seed(0)
        self.told = io.StringIO()
        self.x = torch.randn(2, 4)

    def h5(self, model: nn.Module, run: Callable[[], Any], **more: Any) -> Dict[str, np.ndarray]:
        """name -> values, of one step."""
        self.made += 1
        self.path = self.root / f"h5-{self.made}"
        debugger = PrecisionDebugger(dump_path=str(self.path), hook_name="dump", model=model, **more)
        self.addCleanup(debugger._close_quietly)
        with contextlib.redirect_stderr(self.told):
            debugger.start()
            run()
            debugger.stop()
            found = self.read()
            debugger.step()
            debugger._close()
        return found

    def read(self) -> Dict[str, np.ndarray]:
        with h5py.File(self.path / f"{STEM}.h5", "r") as file:
            names: List[str] = []
            group = file["1"]
            group.id.links.iterate(lambda link: names.append(link.decode()),
                                   idx_type=h5py.h5.INDEX_CRT_ORDER)
            return {name: group[name][()] for name in names}

    def json(self, model: Any, run: Callable[[], Any], **more: Any) -> Dict[str, Any]:
        with contextlib.redirect_stderr(self.told):
            with self.capture(model, **{"level": "L0", **more}) as debugger:
                run()
            debugger._close()
        return self.dump().data

    def listed(self) -> str:
        return "".join(path.read_text() for path in sorted(self.path.rglob("*not_recorded.txt")))


class Seen(BlindTest):
    def test_scripted(self) -> None:
        plain = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
        scripted = torch.jit.script(plain)
        found = self.h5(scripted, lambda: scripted(self.x))
        output = scripted(self.x).detach().numpy()
        self.assertTrue(np.array_equal(found["Sequential.0.forward_output.0"], output))
        self.assertIn("Sequential.0.forward_params.0.weight", found)
        self.assertIn("0 was not called; its parameters are recorded with Sequential",
                      self.listed())
        self.assertEqual(list(self.json(scripted, lambda: scripted(self.x))),
                         ["Module.Sequential.forward.0"])
        self.assertIn("0 is part of the scripted module", self.listed())
        holder = nn.Sequential(scripted, nn.ReLU())
        self.assertEqual([name for name in self.h5(holder, lambda: holder(self.x))
                          if "output" in name],
                         ["0.Sequential.0.forward_output.0", "1.ReLU.0.forward_output.0"])
        traced = torch.jit.trace(plain, self.x)
        self.assertIn("Sequential.0.forward_output.0", self.h5(traced, lambda: traced(self.x)))

    def test_scripting_while_recording(self) -> None:
        model = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
        found = self.h5(model, lambda: (torch.jit.script(Direct())(self.x), model(self.x)))
        self.assertIn("1.Tanh.0.forward_output.0", found)

    def test_attention(self) -> None:
        model = nn.ModuleDict({"attn": nn.MultiheadAttention(4, 2, batch_first=True)})
        attn = model["attn"].eval()
        x = torch.randn(1, 3, 4)
        with torch.no_grad():  # which lets it take the fast path, whose last digits are its own
            found = self.h5(model, lambda: attn(x, x, x))
            output = attn(x, x, x)[0].numpy()
        name = "attn.MultiheadAttention.0"
        for part in ("forward_params.in_proj_weight", "forward_params.out_proj.weight",
                     "forward_input.0", "forward_input.2", "forward_output.0"):
            self.assertIn(f"{name}.{part}", found)
        self.assertTrue(np.array_equal(found[f"{name}.forward_output.0"], output))

    def test_encoder_that_takes_the_fast_path(self) -> None:
        layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        model = nn.TransformerEncoder(layer, 2).eval()
        x = torch.randn(1, 3, 4)
        with torch.no_grad():
            found = self.h5(model, lambda: model(x))
            self.assertTrue(np.array_equal(
                found["layers.1.TransformerEncoderLayer.1.forward_output.0"], model(x).numpy()))
        self.assertIn("layers.0.TransformerEncoderLayer.0.forward_params.linear1.weight", found)
        model.train()  # the ordinary one: the modules inside speak for themselves
        found = self.h5(model, lambda: model(x))
        self.assertIn("layers.0.linear1.Linear.0.forward_output.0", found)
        self.assertNotIn("layers.0.TransformerEncoderLayer.0.forward_output.0", found)

    def test_parameters_beside_modules(self) -> None:
        model = nn.Sequential(Scaled())
        found = self.h5(model, lambda: model(self.x).sum().backward())
        self.assertEqual(found["0.Scaled.0.forward_params.gamma"].tolist(), [2.0] * 4)
        self.assertTrue(np.array_equal(found["0.Scaled.0.forward_output.0"],
                                       2 * found["0.fc.Linear.0.forward_output.0"]))
        self.assertIn("0.Scaled.0.backward_input.0", found)
        scaled = Scaled()
        for names in (list(self.h5(scaled, lambda: scaled(self.x))),
                      list(self.json(scaled, lambda: scaled(self.x)))):
            self.assertTrue(any(name.startswith(("Scaled.0.", "Module.Scaled.")) for name in names))

    def test_modules_that_only_hold(self) -> None:
        tied = Tied()
        found = self.h5(tied, lambda: tied(self.x).sum().backward())
        self.assertEqual(list(found), [f"Tied.0.{part}" for part in (
            "forward_input.0", "forward_output.0", "forward_params.emb.weight",
            "forward_params.emb.bias", "backward_input.0")])
        data = self.json(tied, lambda: tied(self.x))
        self.assertEqual(list(data), ["Module.Tied.forward.0"])
        self.assertIn("emb was not called", self.listed())
        self.assertIn("not recorded in ", self.told.getvalue())

        class Changes(Tied):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return super().forward(x.add_(1))
        changes = nn.Sequential(Changes())
        self.h5(changes, lambda: changes(self.x.clone()))
        log = (self.path / "dump_error_info.log").read_text()
        self.assertIn("Module.0.Changes.forward.0: it changed an input in place", log)

    def test_added_after_start(self) -> None:
        model = nn.Sequential(nn.Linear(4, 4))

        def run() -> None:
            model.add_module("late", nn.Sequential(nn.Linear(4, 4), nn.Tanh()))
            model(self.x)
        self.assertIn("late.1.Tanh.0.forward_output.0", self.h5(model, run))
        other = nn.Linear(4, 4)
        model = nn.Sequential(nn.Linear(4, 4))

        def later() -> None:
            other(self.x)  # of no model yet
            model(other(self.x))
            model.append(other)
            model(self.x)
        self.assertEqual(list(self.json(model, later)), [
            "Module.0.Linear.forward.0", "Module.0.Linear.forward.1", "Module.1.Linear.forward.0"])

    def test_forward_called_directly(self) -> None:
        model = Direct()
        self.assertEqual([name for name in self.h5(model, lambda: model.forward(self.x))
                          if "output" in name],
                         ["inner.0.Linear.0.forward_output.0", "inner.1.Tanh.0.forward_output.0"])
        data = self.json(model, lambda: model(self.x))
        self.assertEqual(list(data), ["Module.inner.0.Linear.forward.0",
                                      "Module.inner.1.Tanh.forward.0"])

        class Inherits(nn.Linear):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return super().forward(x) + 1
        model = nn.Sequential(Inherits(4, 4), nn.Linear(4, 4))
        before = nn.Linear.forward
        seen = {}

        def run() -> None:
            seen["signature"] = inspect.getfullargspec(model[1].forward).args
            model(self.x)
        self.assertEqual(list(self.json(model, run)), ["Module.0.Inherits.forward.0",
                                                       "Module.1.Linear.forward.0"])
        self.assertEqual(seen["signature"], ["self", "input"])
        self.assertIs(nn.Linear.forward, before)

    def test_constructed_inside_the_call(self) -> None:
        """The call that a new step begins in belongs to neither."""
        path = str(self.root / "inside")

        class Visual(Scaled):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                debugger = PrecisionDebugger(dump_path=path, hook_name="dump", model=self)
                debugger.start()
                return super().forward(x)
        model = Visual()
        outer = nn.Sequential(model)
        for _ in range(3):
            outer(self.x).sum().backward()
        for capture in list(PrecisionDebugger._captures.values()):
            capture._close_quietly()
        with h5py.File(f"{path}/{STEM}.h5", "r") as file:
            self.assertEqual(sorted(file), ["1", "2", "3"])
            for step in file.values():
                self.assertIn("fc.Linear.0.forward_output.0", step)
                self.assertIn("fc.Linear.0.backward_input.0", step)
                self.assertNotIn("Visual.0.forward_output.0", step)
        self.assertFalse((Path(path) / "dump_error_info.log").exists())

    def test_containers_on_request(self) -> None:
        model = nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.Tanh()))
        self.assertNotIn("0.Sequential.0.forward_output.0", self.h5(model, lambda: model(self.x)))
        found = self.h5(model, lambda: model(self.x), dump_containers=True)
        self.assertIn("0.Sequential.1.forward_output.0", found)
        self.assertIn("Sequential.0.forward_output.0", found)

    def test_buffers(self) -> None:
        model = nn.Sequential(nn.BatchNorm1d(4))
        found = self.h5(model, lambda: model(self.x))
        self.assertEqual(found["0.BatchNorm1d.0.forward_buffers.running_mean"].tolist(), [0] * 4)
        data = self.json(model, lambda: model(self.x), task="tensor")
        entry = data["Module.0.BatchNorm1d.forward.0"]
        self.assertEqual(sorted(entry["buffers"]),
                         ["num_batches_tracked", "running_mean", "running_var"])
        self.assertNotEqual(entry["buffers"]["running_mean"]["Max"], 0)
        self.assertTrue((self.dump().folder / "dump_tensor_data" /
                         entry["buffers"]["running_mean"]["data_name"]).exists())
        folder = str(self.dump().folder)
        for rules, rows in ((("--rules", "msprobe"), 0), ((), 3)):  # msProbe records none
            done = subprocess.run([str(PLUMB), "compare", folder, folder, "--format", "csv", *rules],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertEqual(len(re.findall(r"^[^,]*\.buffers\.", done.stdout, re.M)), rows)


class Told(BlindTest):
    def test_modules_that_were_not_called(self) -> None:
        model = nn.ModuleDict({"used": nn.Linear(4, 4), "idle": nn.Linear(4, 4),
                               "box": nn.ModuleList([nn.ReLU()])})
        self.h5(model, lambda: model["used"](self.x))
        self.assertEqual(self.listed(), "idle was not called\nbox.0 was not called\n")
        self.assertIn("idle was not called, box.0 was not called", self.told.getvalue())
        self.json(model, lambda: model["used"](self.x))
        self.assertEqual(self.listed(), "idle was not called\nbox.0 was not called\n")
        self.json(model, lambda: [part(self.x) for part in (model["used"], model["idle"],
                                                            model["box"][0])])
        self.assertEqual(self.listed(), "")
        self.json(model, lambda: model["used"](self.x), section={"list": ["used"]})
        self.assertEqual(self.listed(), "")

    def test_modules_of_no_model(self) -> None:
        class Holds(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.fc = nn.Linear(4, 4)
                self.hidden = [nn.Linear(4, 4)]

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.hidden[0](self.fc(x))
        model = Holds()
        self.h5(model, lambda: model(self.x))
        self.assertIn("Holds: Linear was called there but is no module of the model", self.listed())

    def test_objects_that_hold_tensors(self) -> None:
        class Cache:
            def __init__(self, *tensors: torch.Tensor) -> None:
                self.keys = list(tensors)
                self.again = self

        class Gives(nn.Module):
            def forward(self, x: torch.Tensor, cache: Any = None) -> Any:
                return Cache(x, x)
        model = nn.Sequential(Gives())
        self.h5(model, lambda: model(self.x))
        self.assertEqual(self.listed(), "a Cache (first in Module.0.Gives.forward.0) holds tensors "
                                        "and is no known container\n")
        self.json(model, lambda: model[0](self.x, cache=Cache()))
        self.assertIn("a Cache", self.listed())

    def test_a_second_backward(self) -> None:
        def twice() -> None:
            loss = model(self.x).sum()
            loss.backward(retain_graph=True)
            (3 * loss).backward()
        model = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
        for record in (self.h5, self.json):
            found = record(model, twice)
            self.assertTrue(any("Tanh" in name and "backward" in name for name in found), list(found))
            self.assertEqual(self.listed(), "gradients that came a second time, or after stop() (first of "
                             "Module.1.Tanh.backward.0) are not recorded; the first are\n")
            record(model, lambda: [model(self.x).sum().backward() for _ in range(2)])
            self.assertEqual(self.listed(), "")
            record(model, lambda: [loss.backward() for loss in [model(self.x).sum() for _ in range(2)]])
            self.assertEqual(self.listed(), "")

    def test_whatever_else_holds_tensors(self) -> None:
        class Slots:
            __slots__ = ("value", "other")

            def __init__(self, value: Any) -> None:
                self.value = value

        class Plain:
            def __init__(self, value: Any) -> None:
                self.value = value

        class Data(collections.abc.Sequence):
            def __len__(self) -> int:
                return 3

            def __getitem__(self, index: Any) -> Any:
                raise AssertionError("run by the capture")
        held = "holds tensors and is no known container"
        ways: List[Tuple[Callable[[Any], Any], str]] = [
            (lambda x: collections.deque([x]), f"a deque (first in {{}}) {held}\n"),
            (lambda x: {x}, f"a set (first in {{}}) {held}\n"),
            (lambda x: types.MappingProxyType({"a": x}), f"a mappingproxy (first in {{}}) {held}\n"),
            (Slots, f"a Slots (first in {{}}) {held}\n"),
            (lambda x: {"a": [Plain({"b": x})]}, f"a Plain (first in {{}}) {held}\n"),
            (lambda x: Plain(Plain(x)), f"a Plain (first in {{}}) {held}\n"),
            (lambda x: (item for item in [x]),
             "a generator (first in {}) is an iterator; what it gives is not recorded\n"),
            (lambda x: (x, Plain(1), Slots("a"), {1, 2}, collections.deque([1]), Data()), ""),
            (lambda x: {"a": x}.values(), f"a dict_values (first in {{}}) {held}\n"),
            (lambda x: [collections.UserDict(a=x)], f"a UserDict (first in {{}}) {held}\n"),
        ]

        class Gives(nn.Module):
            def forward(self, x: torch.Tensor) -> Any:
                return way(x)
        for way, line in ways:
            model = nn.Sequential(Gives())
            for record in (self.h5, self.json):
                record(model, lambda: model(self.x))
                self.assertEqual(self.listed(), line.format("Module.0.Gives.forward.0"))

    def test_steps_and_ranks_that_never_come(self) -> None:
        model = nn.Sequential(nn.Linear(4, 4))
        for settings, told in (
                ({"step": [0], "hook_name": "dump"}, "count from 1"),
                ({"step": [1, 7], "hook_name": "dump"}, "step 7 was asked for and never recorded"),
                ({"step": ["3-20"], "level": "L0"}, "step 3, 4, 5, 6, 7 and 13 more was asked for"),
                ({"rank": [3], "level": "L0"}, "rank 3 never came: this is rank 0 of 1")):
            self.told = io.StringIO()
            with contextlib.redirect_stderr(self.told):
                debugger = PrecisionDebugger(dump_path=str(self.root / str(settings)), **settings)
                for _ in range(2):
                    debugger.start(model)
                    model(self.x)
                    debugger.stop()
                    debugger.step()
                debugger._close()
            self.assertIn(told, self.told.getvalue(), settings)
        self.told = io.StringIO()
        with contextlib.redirect_stderr(self.told):
            debugger = PrecisionDebugger(dump_path=str(self.root / "all"), level="L0", step=[0, 1],
                                         rank=[0])
            for _ in range(2):
                debugger.start(model)
                model(self.x)
                debugger.step()
            debugger._close()
        self.assertNotIn("never", self.told.getvalue())


class Several(BlindTest):
    def test_two_at_once(self) -> None:
        """One of the pictures, one of the words."""
        model = nn.ModuleDict({"visual": nn.Sequential(nn.Linear(4, 4)),
                               "language": nn.Sequential(nn.Linear(4, 4), nn.Tanh())})
        debuggers = {}
        for part in model:
            debuggers[part] = PrecisionDebugger(dump_path=str(self.root / part), hook_name="dump",
                                                model=model[part], dump_torch_api=True)
            self.addCleanup(debuggers[part]._close_quietly)
            debuggers[part].start()
        model["language"](model["visual"](self.x)).sum().backward()
        debuggers["visual"].stop()
        torch.exp(self.x)
        debuggers["language"].stop()
        names = {}
        for part in model:
            self.path = self.root / part
            names[part] = set(self.read())
        self.assertIn("0.Linear.0.forward_output.0", names["visual"])
        self.assertIn("0.Linear.0.backward_input.0", names["visual"])
        self.assertIn("1.Tanh.0.backward_input.0", names["language"])
        self.assertNotIn("1.Tanh.0.forward_output.0", names["visual"])
        for part in model:  # every function, once
            self.assertIn("Functional.linear.1.forward_output.0", names[part])
            self.assertNotIn("Functional.linear.2.forward_output.0", names[part])
        self.assertIn("Torch.exp.0.forward_output.0", names["language"])
        self.assertNotIn("Torch.exp.0.forward_output.0", names["visual"])
        self.assertEqual(type(torch.exp).__name__, "builtin_function_or_method")

    def test_both_forms_of_one_model(self) -> None:
        model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

        def both() -> None:
            path = self.path
            self.assertIn("1.ReLU.0.forward_output.0", self.h5(model, lambda: model(self.x)))
            self.path = path
        self.assertEqual(list(self.json(model, both, level="mix")), [
            "Functional.linear.0.forward", "Module.0.Linear.forward.0",
            "Functional.relu.0.forward", "Module.1.ReLU.forward.0"])

    def test_a_model_that_holds_its_debugger(self) -> None:
        model = nn.Sequential(nn.Linear(4, 4))
        for settings in ({"hook_name": "dump", "model": model}, {"level": "mix"}):
            model.debugger = PrecisionDebugger(dump_path=str(self.root / f"held{len(settings)}"),
                                               **settings)
            self.addCleanup(model.debugger._close_quietly)
            model.debugger.start(model)
            twin, again = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
            buffer = io.BytesIO()
            torch.save(model, buffer)
            self.assertIs(twin.debugger, model.debugger)
            self.assertIs(again.debugger, model.debugger)
            self.assertIs(copy.copy(model.debugger), model.debugger)
            self.assertTrue(torch.equal(twin(self.x), model(self.x)))
            arguments = pickle.dumps(model.debugger)
            model.debugger._close_quietly()
            fresh = pickle.loads(arguments)  # as in another process
            self.addCleanup(fresh._close_quietly)
            self.assertEqual((fresh._h5, fresh._config), (model.debugger._h5,
                                                          model.debugger._config))


class Settings(BlindTest):
    def test_every_documented_one_is_an_argument(self) -> None:
        model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))

        def names(**settings: Any) -> List[str]:
            self.made += 1
            self.path = self.root / f"set{self.made}"
            debugger = PrecisionDebugger(dump_path=str(self.path), **settings)
            self.addCleanup(debugger._close_quietly)
            debugger.start(model)
            model(self.x).sum().backward()
            debugger.stop()
            debugger.step()
            return list(self.dump().data) if self.path.exists() else []
        self.assertEqual(names(level="L0", list=["2.Linear"], data_mode=["forward"]),
                         ["Module.2.Linear.forward.0"])
        self.assertEqual(names(level="L0", data_mode=["forward"], scope=[
            "Module.0.Linear.forward.0", "Module.1.ReLU.forward.0"]),
            ["Module.0.Linear.forward.0", "Module.1.ReLU.forward.0"])
        names(level="L0", summary_mode="md5", tensor_list=["1.ReLU"], extra_info=False)
        dump = self.dump()
        self.assertIn("md5", dump.data["Module.0.Linear.forward.0"]["output"][0])
        self.assertIn("data_name", dump.data["Module.1.ReLU.forward.0"]["output"][0])
        self.assertFalse((dump.folder / "stack.json").exists())
        self.assertEqual(set(names(level="L1", risk_level="CORE", data_mode="forward".split())),
                         {"Functional.linear.0.forward", "Functional.linear.1.forward"})
        self.assertEqual(names(level="L0", dump_enable=False), [])
        for wrong in ({"list": "fc"}, {"extra_info": 1}, {"risk_level": "LOW"},
                      {"dump_enable": "no"}):
            with self.assertRaises(Error):
                names(level="L0", **wrong)


if __name__ == "__main__":
    unittest.main()
