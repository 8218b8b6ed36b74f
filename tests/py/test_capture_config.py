"""Which calls, steps and ranks are recorded, and what is said about wrong settings."""

import contextlib
import io
import json
import os
import subprocess
import sys
import types
import unittest
from pathlib import Path
from typing import Any, List

sys.path.insert(0, str(Path(__file__).parent))
import torch  # noqa: E402
from capture_case import BUILD, CaptureTest, leaves  # noqa: E402
from plumb import Error, PrecisionDebugger  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.b(self.a(x).view(-1, 4)))


class ConfigTest(CaptureTest):
    def setUp(self) -> None:
        super().setUp()
        torch.manual_seed(0)
        self.model = Two()

    def forwards(self) -> List[str]:
        return [name for name in self.dump().data if "forward" in name]

    def run_step(self) -> None:
        self.model(torch.ones(2, 4)).sum().backward()

    # -- Wrong settings -----------------------------------------------------------------------------

    def refused(self, config: Any, *parts: str, **arguments: Any) -> None:
        file = self.root / "wrong.json"
        file.write_text(config if isinstance(config, str) else json.dumps(config))
        with self.assertRaises(Error) as caught:
            PrecisionDebugger(str(file), **{"dump_path": str(self.root / "x"), **arguments})
        for part in parts:
            self.assertIn(part, str(caught.exception))

    def test_wrong_settings(self) -> None:
        self.refused("{", "wrong.json", "not JSON")
        self.refused("[]", "wrong.json", "object")
        self.refused({"task": "tensors"}, "wrong.json", '"task"', '"tensors"', '"statistics"', '"structure"')
        self.refused({"level": 3}, '"level"', "3", '"mix"')
        self.refused({"levle": "L1"}, "wrong.json", '"levle"', 'did you mean "level"')
        self.refused({"level": "L2"}, "L2", "begin_dump")
        self.refused({"step": [1, -2]}, '"step"', "-2")
        self.refused({"step": ["6-4"]}, '"step"', '"6-4"')
        self.refused({"rank": ["x"]}, '"rank"', '"x"', '"4-6"')
        self.refused({"rank": [True]}, '"rank"')
        self.refused({"extra_info": "yes"}, '"extra_info"', "true nor false")
        self.refused({"risk_level": "SOME"}, '"risk_level"', '"FOCUS"')
        self.refused({"statistics": 3}, '"statistics"')
        self.refused({"statistics": {"summary_mode": "md4"}}, '"statistics.summary_mode"', '"xor"')
        self.refused({"statistics": {"scope": ["one"]}}, '"statistics.scope"', "1 names")
        self.refused({"statistics": {"list": "relu"}}, '"statistics.list"', "list of names")
        self.refused({"statistics": {"data_mode": ["forwards"]}}, '"statistics.data_mode"', '"backward"')
        self.refused({"statistics": {"sumary_mode": "md5"}}, '"sumary_mode"', '"summary_mode"')
        self.refused({}, "PrecisionDebugger: task", task="nothing")
        self.refused({"dump_path": ""}, "dump_path", dump_path=None)
        with self.assertRaisesRegex(Error, "none.json: No such file"):
            PrecisionDebugger(str(self.root / "none.json"))
        with self.assertRaisesRegex(Error, "dump_path"):
            PrecisionDebugger(task="statistics")
        with self.assertRaisesRegex(Error, "hook_name"):
            PrecisionDebugger(dump_path=str(self.root / "x"), hook_name="grab")

    def test_tasks_that_are_commands_here(self) -> None:
        told = io.StringIO()
        with contextlib.redirect_stderr(told), self.capture(task="acc_check"):
            torch.exp(torch.ones(2))
        self.assertIn("plumb acc_check", told.getvalue())
        self.assertEqual(self.dump().json["task"], "tensor")

    def test_keys_of_the_origin_are_accepted(self) -> None:
        told = io.StringIO()
        with contextlib.redirect_stderr(told):
            with self.capture(async_dump=False, precision="low", somewhere_else=3, monitor={"x": 1}):
                torch.exp(torch.ones(2))
        self.assertEqual(told.getvalue().count("\n"), 1)
        self.assertIn('"somewhere_else"', told.getvalue())

    def test_arguments_win(self) -> None:
        file = self.root / "c.json"
        file.write_text(json.dumps({"task": "statistics", "level": "L0", "dump_path": str(self.root / "no"),
                                    "tensor": {"list": ["tanh"]}}))
        self.path = self.root / "yes"
        debugger = PrecisionDebugger(str(file), task="tensor", level="L1", dump_path=str(self.path), step=[0])
        self.addCleanup(debugger._close_quietly)
        debugger.start(self.model)
        self.run_step()
        debugger.stop()
        self.assertEqual(self.forwards(), ["Torch.tanh.0.forward"])
        self.assertTrue(all("data_name" in leaf for leaf in leaves(self.dump().data)))
        self.assertFalse((self.root / "no").exists())

    # -- Which calls --------------------------------------------------------------------------------

    def test_levels(self) -> None:
        modules = ["Module.a.Linear.forward.0", "Module.b.0.Linear.forward.0", "Module.b.1.ReLU.forward.0",
                   "Module.b.Sequential.forward.0"]
        apis = ["Functional.linear.0.forward", "Functional.linear.1.forward", "Functional.relu.0.forward",
                "Torch.tanh.0.forward", "Tensor.sum.0.forward"]
        for level, expected in (("L0", modules), ("L1", apis)):
            with self.capture(self.model, level=level, risk_level="FOCUS"):
                self.run_step()
            self.assertEqual(self.forwards(), expected)
        with self.capture(self.model, level="mix", risk_level="FOCUS"):
            self.run_step()
        self.assertEqual(self.forwards(), [apis[0], modules[0], apis[1], modules[1], apis[2], modules[2],
                                           modules[3], *apis[3:]])
        construct = self.dump().beside("construct.json")
        self.assertEqual(construct["Functional.linear.1.forward"], "Module.b.0.Linear.forward.0")
        self.assertEqual(construct["Module.b.0.Linear.forward.0"], "Module.b.Sequential.forward.0")

    def test_risk_levels(self) -> None:
        for risk, expected in (("ALL", 1), ("FOCUS", 0), ("CORE", 0)):
            with self.capture(risk_level=risk):
                torch.tanh(F.linear(torch.ones(2, 2), torch.ones(2, 2))).reshape(4)
            self.assertEqual(sum("reshape" in name for name in self.dump().data), expected)
            self.assertEqual("Torch.tanh.0.forward" in self.dump().data, risk != "CORE")
            self.assertIn("Functional.linear.0.forward", self.dump().data)
        with self.capture(risk_level="FOCUS", section={"list": ["reshape"]}):
            torch.ones(2, 2).reshape(4)
        self.assertEqual(self.forwards(), ["Tensor.reshape.0.forward"])

    def test_list(self) -> None:
        with self.capture(self.model, level="mix", section={"list": ["Module.b.0", "tanh"]}):
            self.run_step()
        self.assertEqual(self.forwards(), ["Functional.linear.1.forward", "Module.b.0.Linear.forward.0",
                                           "Torch.tanh.0.forward"])
        self.assertEqual(self.dump().beside("construct.json")["Module.b.0.Linear.forward.0"],
                         "Module.b.Sequential.forward.0")

    def test_scope(self) -> None:
        with self.capture(self.model, level="mix",
                          section={"scope": ["Module.b.0.Linear.forward.0", "Functional.relu.0.forward"]}):
            self.run_step()
        self.assertEqual(self.forwards(), ["Functional.linear.1.forward", "Module.b.0.Linear.forward.0",
                                           "Functional.relu.0.forward", "Module.b.1.ReLU.forward.0"])
        with self.capture(self.model, level="L0", section={"scope": ["Module.b.Sequential.forward.0"] * 2}):
            self.run_step()
        self.assertEqual(self.forwards(), ["Module.b.0.Linear.forward.0", "Module.b.1.ReLU.forward.0",
                                           "Module.b.Sequential.forward.0"])

    def test_data_mode(self) -> None:
        for mode, forward, backward in ((["forward"], {"input_args", "input_kwargs", "output"}, None),
                                        (["backward"], None, {"input", "output"}),
                                        (["output"], {"output"}, {"output"}),
                                        (["forward", "input"], {"input_args", "input_kwargs"}, None),
                                        (["all"], {"input_args", "input_kwargs", "output"}, {"input", "output"})):
            with self.subTest(mode), self.capture(section={"data_mode": mode}):
                torch.tanh(torch.ones(2, requires_grad=True)).sum().backward()
            data = self.dump().data
            for name, keys in (("Torch.tanh.0.forward", forward), ("Torch.tanh.0.backward", backward)):
                self.assertEqual(name in data, keys is not None, mode)
                if keys is not None:
                    self.assertEqual(set(data[name]), keys)

    def test_tensor_list(self) -> None:
        with self.capture(section={"tensor_list": ["tanh"]}):
            torch.tanh(torch.exp(torch.ones(2)))
        self.assertEqual(sorted(os.listdir(self.dump().folder / "dump_tensor_data")),
                         ["Torch.tanh.0.forward.input.0.pt", "Torch.tanh.0.forward.output.0.pt"])
        self.assertIsNotNone(self.dump().json["dump_data_dir"])

    def test_extra_info(self) -> None:
        with self.capture(self.model, level="mix", extra_info=False):
            self.run_step()
        self.assertEqual([path.name for path in self.dump().folder.iterdir()], ["dump.json"])

    # -- Which steps and processes ------------------------------------------------------------------

    def steps(self, debugger: PrecisionDebugger, count: int) -> List[str]:
        for _ in range(count):
            debugger.start(self.model)
            self.run_step()
            debugger.stop()
            debugger.step()
        return sorted(path.name for path in self.path.iterdir()) if self.path.exists() else []

    def test_steps(self) -> None:
        self.assertEqual(self.steps(self.debugger(step=[0, "2-3"]), 6), ["step0", "step2", "step3"])
        debugger = self.debugger(step=[7])
        debugger.set_init_step(6)
        self.assertEqual(self.steps(debugger, 3), ["step7"])
        self.assertEqual(self.forwards_of(7)[0], "Functional.linear.0.forward")

    def forwards_of(self, step: int) -> List[str]:
        return list(self.dump(step).data)

    def test_ranks(self) -> None:
        self.assertEqual(self.steps(self.debugger(rank=[1, 2]), 1), [])
        debugger = self.debugger(rank=["1-2"])
        debugger.start(self.model, rank_id=2)
        self.run_step()
        debugger.step()
        self.assertEqual([path.name for path in (self.path / "step0").iterdir()], ["rank2"])

    def test_dump_enable(self) -> None:
        debugger = self.debugger(dump_enable=False)
        self.assertEqual(self.steps(debugger, 1), [])
        file = self.root / f"config{self.made}.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "dump_enable": True}))
        self.assertEqual(self.steps(debugger, 1), ["step1"])

    def test_a_second_one_goes_on(self) -> None:
        first = self.debugger()
        self.steps(first, 1)
        second = PrecisionDebugger(str(self.root / f"config{self.made}.json"))
        self.assertIs(first, second)
        self.assertEqual(self.steps(second, 1), ["step0", "step1"])

    def test_a_second_one_with_other_settings(self) -> None:
        first = self.debugger(task="tensor")
        self.steps(first, 1)
        second = PrecisionDebugger(task="statistics", level="L0", dump_path=str(self.path))
        self.assertIs(first, second)
        self.assertEqual(self.steps(second, 1), ["step0", "step1"])
        self.assertEqual([self.dump(step).json["level"] for step in (0, 1)], ["L1", "L0"])

    def test_start_and_stop_in_one_step(self) -> None:
        debugger = self.debugger()
        for _ in range(2):
            debugger.start()
            torch.exp(torch.ones(2))
            debugger.stop()
            torch.tanh(torch.ones(2))
        debugger.step()
        self.assertEqual(self.forwards(), ["Torch.exp.0.forward", "Torch.exp.1.forward"])
        self.assertEqual(self.dump().beside("stack.json")["0"][0], ["Torch.exp.0.forward", "Torch.exp.1.forward"])

    def test_token_range(self) -> None:
        debugger = self.debugger(level="mix")
        debugger.start(self.model, token_range=[1, 2])
        for _ in range(5):
            self.model(torch.ones(2, 4))
        debugger.stop()
        self.assertEqual(sum(name.startswith("Module.a") for name in self.dump().data), 2)
        self.assertEqual(sum(name.startswith("Torch.tanh") for name in self.dump().data), 2)

    def test_several_models(self) -> None:
        other = nn.Sequential(nn.Linear(4, 4))
        with self.capture([self.model, other], level="L0"):
            other(self.model(torch.ones(2, 4)))
        self.assertEqual([self.forwards()[0], self.forwards()[-1]],
                         ["Module.0.a.Linear.forward.0", "Module.1.0.Linear.forward.0"])

    def test_a_model_that_is_one_module(self) -> None:
        model = nn.Linear(2, 2)
        with self.capture(model, level="L0"):
            model(torch.ones(1, 2))
        self.assertEqual(self.forwards(), ["Module.Linear.forward.0"])

    def test_start_without_a_model_is_told(self) -> None:
        told = io.StringIO()
        with contextlib.redirect_stderr(told), self.capture(clean=False, level="L0"):
            pass
        self.assertIn("without a model", told.getvalue())
        self.assertIn("without a model", self.dump().problems())

    # -- More ways to record ------------------------------------------------------------------------

    def test_save(self) -> None:
        debugger = self.debugger(task="tensor", level="debug")
        debugger.start()
        x = torch.arange(3.).requires_grad_()
        debugger.save(x, "a.x")
        y = {"p": x * 2, "q": [x * 3, "text"]}
        debugger.save(y, "y")
        debugger.save(y["p"], "a.x", save_backward=False)
        (y["p"] + y["q"][0] * 2).sum().backward()
        debugger.stop()
        debugger.step()
        folder = next((self.path / "step0").iterdir())
        data = json.loads((folder / "debug.json").read_text())["data"]
        self.assertEqual(sorted(data), ["a.x.0.debug", "a.x.1.debug", "a.x_grad.0.debug", "y.0.debug",
                                        "y_grad.0.debug.p", "y_grad.0.debug.q.0"])
        self.assertEqual(data["y.0.debug"]["q"][1], {"type": "str", "value": "text"})
        self.assertEqual([data["a.x_grad.0.debug"]["Max"], data["y_grad.0.debug.q.0"]["Max"]], [8.0, 2.0])
        self.assertEqual(sorted(path.name for path in folder.iterdir()), ["debug.json", "dump_tensor_data"])

    def test_module_dump(self) -> None:
        debugger = self.debugger(level="mix")
        debugger.module_dump(self.model.b, "mine")
        self.run_step()
        debugger.module_dump_end()
        self.run_step()
        debugger.step()
        names = [name for name in self.forwards() if name.startswith("Module")]
        self.assertEqual(names, ["Module.mine.0.Linear.forward.0", "Module.mine.1.ReLU.forward.0",
                                 "Module.mine.Sequential.forward.0"])

    def test_custom_functions(self) -> None:
        home = types.ModuleType("some.kernels")
        home.twice = original = lambda x: x * 2
        debugger = self.debugger()
        with self.assertRaisesRegex(Error, "has no function nothing"):
            debugger.register_custom_api(home, "nothing")
        debugger.register_custom_api(home, "twice")
        for _ in range(2):
            debugger.start()
            home.twice(torch.ones(2))
            debugger.stop()
            self.assertIs(home.twice, original)
            debugger.restore_custom_api(home, "twice")
        debugger.step()
        self.assertEqual(self.forwards(), ["kernels.twice.0.forward", "Tensor.__mul__.0.forward"])

    def test_operators_called_by_name(self) -> None:
        packet = torch.ops.aten.tanh
        with self.capture():
            self.assertIs(torch.ops.aten.tanh, packet)
            torch.ops.aten.tanh(torch.ones(2))
        self.assertEqual(self.forwards(), ["Aten.tanh.0.forward"])

    def test_lstm_is_one_call(self) -> None:
        with self.capture():
            nn.LSTM(4, 4)(torch.ones(3, 4))
        self.assertIn("VF.lstm.0.forward", self.forwards())

    # -- Never into the model -----------------------------------------------------------------------

    def test_what_cannot_be_recorded(self) -> None:
        class Hostile:
            def __getattr__(self, name: str) -> Any:
                raise RuntimeError("no looking")

        class Odd(nn.Module):
            def forward(self, x: Any, more: Any) -> Any:
                return x

        model = nn.ModuleDict({"odd": Odd()})
        sparse = torch.eye(3).to_sparse()
        with self.capture(model, clean=False, level="mix", task="tensor"):
            self.assertIs(model["odd"](sparse, Hostile()), sparse)
            loop: List[Any] = [1]
            loop.append(loop)
            model["odd"](torch.ones(1), loop)
        self.assertIn("layout", self.dump().problems())
        self.assertIn("Module.odd.Odd.forward.1", self.dump().data)

    def test_a_folder_that_cannot_be_written(self) -> None:
        blocked = self.root / "file"
        blocked.write_text("")
        told = io.StringIO()
        debugger = PrecisionDebugger(task="tensor", level="L1", dump_path=str(blocked))
        with contextlib.redirect_stderr(told):
            debugger.start()
            self.assertTrue(torch.equal(torch.exp(torch.zeros(2)), torch.ones(2)))
            debugger.stop()
            debugger.step()
            debugger._close_quietly()
        self.assertIn("Not a directory", told.getvalue())

    def test_the_program_ends_or_dies(self) -> None:
        """Without stop() the files are complete; killed, the dump can be read as far as it goes."""
        script = ("import os, sys, torch; from plumb import PrecisionDebugger as D\n"
                  "d = D(task='statistics', level='L1', dump_path=sys.argv[1]); d.start()\n"
                  "for i in range(5): torch.exp(torch.full((2,), i / 1.0))\n"
                  "{end}\n")
        environment = {**os.environ, "PYTHONPATH": str(BUILD / "python")}
        for end, code in (("", 0), ("os.kill(os.getpid(), 9)", -9), ("raise SystemExit(3)", 3),
                          ("if os.fork() == 0: torch.exp(torch.ones(1)); sys.exit(0)\nos.wait()", 0)):
            self.made += 1
            self.path = self.root / f"dump{self.made}"
            done = subprocess.run([sys.executable, "-c", script.format(end=end), str(self.path)], env=environment,
                                  stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertEqual(len(self.forwards()), 5, end)
            if code != -9:
                self.assertEqual(done.stderr.count("1 step with 5 calls in "), 1, done.stderr)
                self.assertEqual(len(self.dump().beside("stack.json")), 1)


if __name__ == "__main__":
    unittest.main()
