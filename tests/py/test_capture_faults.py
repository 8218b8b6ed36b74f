"""What a script and its machine do to a capture: Ctrl-C, full disks, forks, other captures."""

import contextlib
import gc
import io
import json
import os
import resource
import shutil
import subprocess
import sys
import threading
import unittest
import warnings
from pathlib import Path
from typing import Any, Iterator, List
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent))
import torch  # noqa: E402
from capture_case import BUILD, CaptureTest, leaves  # noqa: E402
from plumb import PrecisionDebugger  # noqa: E402
from plumb._capture.dump import DumpSink  # noqa: E402
from plumb._capture.files import JsonFile  # noqa: E402
from torch import nn  # noqa: E402


@contextlib.contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """To the one who writes, like a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


class FullDisk(CaptureTest):
    def test_dump_json_stays_whole(self) -> None:
        path = self.root / "dump.json"
        file = JsonFile(str(path), {"task": "statistics"})
        for i in range(3):
            file.add(f"early{i}", {"value": [0] * 40})
        with files_of_at_most(4096):
            for i in range(20):
                with contextlib.suppress(OSError):
                    file.add(f"more{i}", {"value": [i] * 100})
            written = json.loads(path.read_text())["data"]
        self.assertIn("early2", written)
        self.assertNotIn("more19", written)
        file.add("late", None)
        file.close()
        self.assertEqual(list(json.loads(path.read_text())["data"]), [*written, "late"])

    def test_no_room_for_the_first_byte(self) -> None:
        path = self.root / "dump.json"
        before = open_files()
        with files_of_at_most(0), self.assertRaises(OSError):
            JsonFile(str(path), {})
        self.assertEqual(open_files(), before)
        self.assertFalse(path.exists())

    def test_steps_without_room(self) -> None:
        """Nothing of them is left open or half written, and the next one is recorded."""
        debugger = self.debugger(level="L1")
        told = io.StringIO()
        before = open_files()
        with contextlib.redirect_stderr(told):
            for step in range(30):
                with files_of_at_most(0 if step < 29 else resource.RLIM_INFINITY):
                    debugger.start()
                    torch.exp(torch.ones(2))
                    debugger.stop()
                    debugger.step()
        self.assertLessEqual(open_files(), before)
        self.assertEqual(list(self.path.rglob("*.part")), [])
        self.assertEqual([file.parts[-3] for file in self.path.rglob("dump.json")], ["step29"])
        self.assertEqual(list(self.dump(29).data), ["Torch.exp.0.forward"])
        self.assertIn("File too large", told.getvalue())
        self.assertLess(len(told.getvalue().splitlines()), 25)

    def test_one_line_when_there_is_no_folder(self) -> None:
        """Not one for each call."""
        blocked = self.root / "file"
        blocked.write_text("")
        debugger = PrecisionDebugger(task="statistics", level="L1", dump_path=str(blocked))
        told = io.StringIO()
        with contextlib.redirect_stderr(told):
            debugger.start()
            for _ in range(5):
                torch.exp(torch.ones(2))
            debugger.stop()
            debugger._close()
        self.assertEqual(told.getvalue().count("Not a directory"), 2)
        self.assertIn("1 thing could not be recorded, see above", told.getvalue())

    def test_a_folder_that_goes_away(self) -> None:
        """What is lost is told beside the step that lost it."""
        debugger = self.debugger(task="tensor", level="L1")
        for step in range(2):
            debugger.start()
            torch.exp(torch.ones(2))
            if step == 0:
                debugger._sink.writer.flush()
                shutil.rmtree(self.path)
                torch.exp(torch.ones(3))
            debugger.stop()
            debugger.step()
        log = next((self.path / "step0").rglob("dump_error_info.log")).read_text()
        self.assertIn("Torch.exp.1.forward.output.0.pt: cannot create it", log)
        self.assertEqual(log.count("Torch.exp.1.forward.output.0.pt"), 1)
        self.assertEqual(self.dump(1).problems(), "")


class Interrupted(CaptureTest):
    def test_in_the_middle_of_a_function(self) -> None:
        debugger = self.debugger(level="L1")
        debugger.start()
        with mock.patch.object(DumpSink, "arguments", side_effect=KeyboardInterrupt), \
                self.assertRaises(KeyboardInterrupt):
            torch.exp(torch.ones(2))
        torch.exp(torch.ones(2))
        debugger.stop()
        self.assertEqual(list(self.dump().data), ["Torch.exp.1.forward"])

    def test_in_the_middle_of_stop(self) -> None:
        debugger = self.debugger(level="L1")
        debugger.start()
        with mock.patch.object(debugger._recorder.parameters, "unhook", side_effect=KeyboardInterrupt), \
                self.assertRaises(KeyboardInterrupt):
            debugger.stop()
        debugger.start()
        torch.exp(torch.ones(2))
        debugger.stop()
        self.assertEqual(list(self.dump().data), ["Torch.exp.0.forward"])


class Scripts(CaptureTest):
    def test_another_capture(self) -> None:
        first = PrecisionDebugger(task="statistics", level="L1", dump_path=str(self.root / "first"))
        self.addCleanup(first._close_quietly)
        call = nn.Module.__call__
        first.start()
        torch.exp(torch.ones(2))
        with self.capture():
            torch.exp(torch.ones(2))
        torch.exp(torch.ones(2))
        first.stop()
        self.assertIs(nn.Module.__call__, call)
        self.assertEqual(list((self.root / "first").rglob("*.log")), [])
        path = next((self.root / "first").rglob("dump.json"))
        self.assertEqual(list(json.loads(path.read_text())["data"]),
                         [f"Torch.exp.{i}.forward" for i in range(3)])
        self.assertEqual(list(self.dump().data), ["Torch.exp.0.forward"])

    def test_a_model_that_is_none(self) -> None:
        with self.capture("resnet", clean=False, level="mix"):
            pass
        self.assertEqual(self.dump().problems().splitlines(),
                         ["start: a model that is a str, not a torch.nn.Module"])

    def test_deep_models(self) -> None:
        """As deep as Python takes them without a capture."""
        class Around(nn.Module):
            def __init__(self, depth: int) -> None:
                super().__init__()
                self.inner = Around(depth - 1) if depth else nn.Linear(2, 2)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.inner(x)

        model = Around(280)
        limit = sys.getrecursionlimit()
        model(torch.ones(1, 2))
        with self.capture(model, level="mix"):
            model(torch.ones(1, 2))
        self.assertEqual(sys.getrecursionlimit(), limit)
        self.assertIn(f"Module.{'inner.' * 281}Linear.forward.0", self.dump().data)
        debugger = self.debugger()
        debugger.start()
        self.addCleanup(sys.setrecursionlimit, limit)
        sys.setrecursionlimit(limit + 5)
        debugger.stop()
        self.assertEqual(sys.getrecursionlimit(), limit + 5)

    def test_forward_without_backward(self) -> None:
        """Between a start and a far stop nothing piles up for graphs that are gone."""
        model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        with self.capture(model, level="mix") as debugger:
            for _ in range(5):
                model(torch.ones(2, 4)).sum()
            model(torch.ones(2, 4)).sum().backward()
            gc.collect()
            self.assertEqual(len(debugger._recorder.gradients.followed), 0)
            self.assertEqual(len(debugger._recorder.gradients.begun), 0)

    def test_a_graph_that_is_run_in_part(self) -> None:
        """And then dropped: what came is written."""
        class Split(nn.Module):
            def forward(self, x: torch.Tensor) -> Any:
                return x * 2, x.exp()

        model = nn.ModuleDict({"split": Split()})
        with self.capture(model, level="L0"):
            x = torch.ones(2, requires_grad=True)
            model["split"](x)[0].sum().backward()
            gc.collect()
        back = self.dump().data["Module.split.Split.backward.0"]
        self.assertEqual([leaf and leaf["Max"] for leaf in back["input"]], [1, None])
        self.assertEqual([leaf["Max"] for leaf in back["output"]], [2])

    def test_names_that_no_file_can_have(self) -> None:
        class Odd(nn.Module):
            def forward(self, x: torch.Tensor) -> Any:
                return {"a/b": x, "a_b": x + 1, "k" * 300: x + 2, "../up": x + 3, "\udc80": x + 4,
                        1: x + 5, "1": x + 6, "a.b": x + 7, "a": {"b": x + 8}}

        model = nn.ModuleDict({"odd": Odd()})
        with self.capture(model, level="L0", task="tensor"):
            model["odd"](torch.zeros(2))
        found = list(leaves(self.dump().data["Module.odd.Odd.forward.0"]["output"]))
        self.assertEqual([self.dump().tensor(leaf)[0].item() for leaf in found], list(range(9)))
        self.assertEqual([leaf["Max"] for leaf in found], list(range(9)))
        self.assertTrue(all(len(leaf["data_name"]) <= 255 for leaf in found))

    def test_arguments_that_fail_when_they_are_looked_at(self) -> None:
        class Strange(dict):
            def items(self) -> Any:
                raise RuntimeError("not now")

        class Closed:
            __slots__ = ()

            def __getattr__(self, name: str) -> Any:
                raise RuntimeError("nor here")

        class Odd(nn.Module):
            def forward(self, x: torch.Tensor, more: Any) -> Any:
                return {"x": x + 1, "more": more}
        model = nn.Sequential(nn.ModuleDict({"odd": Odd()}))
        for way in (Strange(a=1), Closed()):
            with self.capture(model, clean=False, level="L0"):
                model[0]["odd"](torch.zeros(2), [torch.ones(2), way])
            entry = self.dump().data["Module.0.odd.Odd.forward.0"]
            self.assertEqual([leaf["Max"] for leaf in leaves(entry["input_args"])], [0, 1])
            self.assertEqual([leaf["Max"] for leaf in leaves(entry["output"])], [1, 1])
            self.assertRegex(self.dump().problems(), r"Odd\.forward\.0.*(not now|nor here)")

    def test_modules_that_fail_when_they_are_listed(self) -> None:
        class Strange(nn.Module):
            def named_modules(self, *args: Any, **kwargs: Any) -> Any:
                raise RuntimeError("no list")

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return x.exp()

        class Grows(nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                self.late = Strange()
                return self.late(x)
        for model in (Strange(), nn.Sequential(Grows())):
            with self.capture(model, clean=False, level="mix"):
                self.assertEqual(model(torch.zeros(2)).tolist(), [1, 1])
            self.assertIn("Tensor.exp.0.forward", self.dump().data)
            self.assertIn("no list", self.dump().problems())

    def test_replicas(self) -> None:
        """DataParallel runs copies in threads; their calls have the names of the modules."""
        model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

        def replicated() -> nn.Module:
            copies = {module: module._replicate_for_data_parallel() for module in model.modules()}
            for module, replica in copies.items():
                for name, parameter in module._parameters.items():
                    setattr(replica, name, parameter.view_as(parameter))
                for name, child in module._modules.items():
                    replica._modules[name] = copies[child]
            return copies[model]

        with self.capture(model, level="L0") as debugger:
            replicas = [replicated() for _ in range(2)]
            threads = [threading.Thread(target=replica, args=(torch.ones(1, 4),))
                       for replica in replicas]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            del replicas, threads
            gc.collect()
            self.assertEqual(len(debugger._recorder.modules.replicas), 0)
        self.assertEqual(sorted(self.dump().data), [
            f"Module.{name}.forward.{number}" for name in ("0.Linear", "1.ReLU")
            for number in (0, 1)])

    def test_lazy_modules(self) -> None:
        """Their first call is recorded, without parameters, which are not there before it."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = nn.Sequential(nn.LazyLinear(3), nn.ReLU())
        with self.capture(model, level="L0"):
            model(torch.ones(2, 4))
            model(torch.ones(2, 4))
        data = self.dump().data
        first = next(entry for name, entry in data.items() if name.endswith("Linear.forward.0"))
        second = next(entry for name, entry in data.items() if name.endswith("Linear.forward.1"))
        self.assertEqual(list(first["parameters"]), [])
        self.assertEqual(list(second["parameters"]), ["weight", "bias"])

    def test_gradients_of_what_was_saved(self) -> None:
        """Have the places of the tensors that they belong to."""
        x = torch.ones(2, requires_grad=True)
        debugger = self.debugger(level="debug")
        debugger.save({"key": [x * 2, None]}, "kept")
        debugger.save([x * 3], "list")
        loss = x * 2
        debugger.save({"key": [loss]}, "used")
        loss.sum().backward()
        debugger.stop()
        debugger.step()
        debug = next(self.path.rglob("debug.json"))
        self.assertEqual(list(json.loads(debug.read_text())["data"]),
                         ["kept.0.debug", "list.0.debug", "used.0.debug",
                          "used_grad.0.debug.key.0"])

    def test_nested_tensors(self) -> None:
        """The fast path of a transformer makes them: recorded as the tensors in them."""
        class Same(nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return x

        model = nn.ModuleDict({"same": Same()})
        mask = torch.tensor([[True, True, False], [True, True, True]])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nested = torch._nested_tensor_from_mask(torch.ones(2, 3, 4), mask)
        with self.capture(model, level="L0", task="tensor"):
            self.assertIs(model["same"](nested), nested)
        entry = self.dump().data["Module.same.Same.forward.0"]
        self.assertEqual([leaf["shape"] for leaf in leaves(entry["output"])], [[2, 4], [3, 4]])
        for leaf, part in zip(leaves(entry["input_args"]), nested.unbind()):
            self.assertTrue(torch.equal(self.dump().tensor(leaf), part))


class Forked(CaptureTest):
    def run_fork(self, make: str, before: str, child: str) -> str:
        """A parent that records a call, forks, records another one and ends."""
        script = (
            "import os, sys, torch; from plumb import PrecisionDebugger as D\n"
            "m = torch.nn.Sequential(torch.nn.Linear(2, 2))\n"
            f"d = D(dump_path=sys.argv[1], {make}); d.start(m); m(torch.ones(1, 2)); {before}\n"
            f"if os.fork() == 0:\n    {child}\n    sys.exit(0)\n"
            "os.wait(); d.start(m); m(torch.ones(1, 2)); d.stop(); d.step()\n")
        self.made += 1
        self.path = self.root / f"dump{self.made}"
        done = subprocess.run([sys.executable, "-c", script, str(self.path)], text=True,
                              stderr=subprocess.PIPE,
                              env={**os.environ, "PYTHONPATH": str(BUILD / "python"),
                                   "PLUMB_H5": str(BUILD / "plumb-h5")})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def names(self) -> List[str]:
        """Of the files, but for those beside dump.json."""
        return sorted(str(file.relative_to(self.path)) for file in self.path.rglob("*")
                      if file.is_file() and file.name not in ("stack.json", "construct.json"))

    def test_child_that_only_ends(self) -> None:
        for make, files in (("task='statistics', level='L0'", 1), ("hook_name='dump', model=m", 3)):
            told = self.run_fork(make, "d.stop()", "m(torch.ones(1, 2))")
            self.assertEqual(told.count("plumb:"), 1, told)
            self.assertIn("1 step with 2 calls", told)
            self.assertEqual(len(self.names()), files, self.names())

    def test_child_that_records(self) -> None:
        child = "d.start(m); [m(torch.ones(1, 2)) for _ in range(5)]; d.stop(); d.step()"
        rank = "os.environ['RANK'] = '0'"
        for set_rank, before in (("0", "d.stop()"), (rank, "0")):
            self.run_fork(f"task='statistics', level='L0'); {set_rank}; (d", before, child)
            found = sorted(len(json.loads((self.path / name).read_text())["data"])
                           for name in self.names())
            self.assertEqual(found, [2, 5])
        self.run_fork("hook_name='dump', model=m", "d.stop()", child)
        rows = sorted(len(file.read_text().splitlines())
                      for file in self.path.glob("*_summary.csv"))
        self.assertEqual(rows, [1 + 2 + 2 * 2, 1 + 2 + 5 * 2])
        self.assertEqual(len(list(self.path.glob("*.h5"))), 2)


if __name__ == "__main__":
    unittest.main()
