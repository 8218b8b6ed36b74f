"""A dump names the functions that a worker runs: which it may name, and what they can do there."""

import importlib.util
import os
import sys
import types
import unittest
from pathlib import Path
from typing import Any, Dict

import torch

sys.path.insert(0, str(Path(__file__).parent))
from check_dump import add, forward, save, tensor, value  # noqa: E402
from torch_runs import BUILD, Folder  # noqa: E402

# Everything that a module of the user's may have in reach without meaning to hand it out.
OPENS = """
import os, os.path, subprocess, sys, builtins, importlib, pathlib
from os import system
from subprocess import run as start
import torch
from torch import nn

def twice(x):
    return 2 * x

class Mine:
    os = os
    system = staticmethod(os.system)

    @staticmethod
    def thrice(x):
        return 3 * x

    class Inner:
        @classmethod
        def four(cls, x):
            return 4 * x

def writes(x):
    open({marker!r}, "w")
    return x

def removes(x):
    import os
    os.remove({kept!r})
    return x

def starts(x):
    import subprocess
    subprocess.run(["touch", {marker!r}], check=True)
    return x

def calls_out(x):
    import socket
    socket.create_connection(("127.0.0.1", {port}))
    return x

# Nothing outside can be changed, and nobody else be reached.
def alone(x):
    import ctypes, os
    outside = {kept!r}
    def refused(step, *arguments):
        try:
            step(*arguments)
        except OSError as error:
            return error.errno in (1, 13)
        return False
    steps = [(os.chmod, outside, 0o777), (os.chown, outside, -1, -1), (os.utime, outside, (1, 1)),
             (os.truncate, outside, 0), (os.setxattr, outside, "user.plumb", b"x"),
             (os.rename, outside, outside + "2"), (os.link, outside, outside + "2"), (os.symlink, "x", outside + "2"),
             (os.mkfifo, outside + "2"), (os.mkdir, outside + "2")]
    landlock = ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), ctypes.c_uint(1))
    steps += [(os.kill, os.getppid(), 0)] if landlock >= 6 else []
    missed = [step[0].__name__ for step in steps if not refused(*step)]
    if os.getsid(0) != os.getpid():
        missed.append("terminal")
    if missed:
        raise ValueError(str(missed))
    return x

def own_folder(x):
    import tempfile
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"some")
    return x

def path_is_clean(x):
    import os, sys
    if any(not path or os.path.realpath(path) == os.getcwd() for path in sys.path):
        raise ValueError(str(sys.path))
    return x

F = nn.functional
F.relu, F.gelu, F.silu, F.mish, F.elu, F.celu = writes, removes, starts, calls_out, own_folder, path_is_clean
F.relu6 = alone

borrowed = torch.nn.modules.activation._scripted if hasattr(torch.nn.modules.activation, "_scripted") else None

@torch.jit.script
def six(x):
    return 6 * x

library = torch.library.Library("mylib", "DEF")
library.define("five(Tensor x) -> Tensor")
library.impl("five", lambda x: 5 * x, "CPU")
"""

# Names that a dump may have, and that lead out of the module.
HIDDEN = ["Functional._add_docstr", "Torch.linalg._add_docstr",
          "opens.os.system", "opens.system", "opens.start", "opens.torch.os.system", "torch.os.system",
          "Torch.os.system", "os.system", "subprocess.run", "subprocess.getoutput", "opens.subprocess.getoutput",
          "builtins.exec", "opens.builtins.exec", "opens.__builtins__.exec", "Mine.system", "Mine.os.system",
          "opens.Mine.os.system", "opens.Mine.system", "opens.twice.__globals__.get", "opens.__dict__.get",
          "opens.Mine.__subclasses__", "nn.Module", "opens.nn.Module", "opens.Mine", "Functional.os.system",
          "torch.hub.load", "opens.torch.load", "opens.sys.exit", "opens.pathlib.Path", "opens.library.define",
          "importlib.import_module", "opens.twice.__call__", "mylib.__class__", "os.path.exists",
          # operators that it did not register, and what else torch.ops has
          "profiler._record_function_enter", "profiler._record_function_enter_new", "quantized.linear",
          "prims.add", "static_runtime.clamp_nan_to_num", "c10d.send", "prim.Print", "aten.save", "aten.from_file",
          "torch.ops.aten.save", "ops.aten.save", "mylib.name", "__class__.load_library", "load_library.__call__",
          # and functions that somebody else scripted
          "opens.borrowed", "borrowed.forward"]


class Names(Folder):
    @staticmethod
    def worker() -> Any:
        path = os.path.join(BUILD, "python/plumb/_worker/worker.py")
        spec = importlib.util.spec_from_file_location("worker_alone", path)
        worker = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(worker)
        worker.torch = torch
        return worker

    def check_with(self, names: Any, **arguments: Any) -> Dict[str, Any]:
        marker, kept = self.folder / "marker", self.folder / "kept"
        kept.write_text("mine")
        with __import__("socket").create_server(("127.0.0.1", 0)) as server:
            (self.folder / "opens.py").write_text(
                OPENS.format(marker=str(marker), kept=str(kept), port=server.getsockname()[1]))
            data: Dict[str, Any] = {}
            for name, args in names.items():
                add(data, f"{name}.0", forward(*args))
            result = self.check(save(self.folder / "dump.json", data), "-d", "torch:cpu", "--import", "opens",
                                **arguments)
        self.assertFalse(marker.exists())
        self.assertTrue(kept.exists())
        return {name[:-2]: row for name, row in result.rows.items()}

    def test_only_what_it_defines(self) -> None:
        touch = value(f"touch {self.folder / 'marker'}")
        rows = self.check_with({name: (touch,) for name in HIDDEN})
        self.assertEqual({name: row[0] for name, row in rows.items()}, {name: "SKIP" for name in rows})
        self.assertGreater(len(rows), 25)
        for name, row in rows.items():
            self.assertNotIn("device: Per", row[2], name)  # it was not even tried

    def test_which_function(self) -> None:
        """The same question to the worker itself: what plumb has no reference for is not even run."""
        worker = self.worker()
        (self.folder / "opens.py").write_text(OPENS.format(marker="", kept="", port=1))
        functional = dict(vars(torch.nn.functional))
        (self.folder / "elsewhere.py").write_text("import torch\n@torch.jit.script\ndef scripted(x):\n    return x\n")
        torch.nn.modules.activation._scripted = worker.load_file(self.folder / "elsewhere.py", "elsewhere").scripted
        try:
            before = worker.registered()
            modules = [worker.load_file(self.folder / "opens.py", "opens")]
            self.assertIsNotNone(modules[0].borrowed)
            names = worker.Names(torch.device("cpu"), modules, worker.registered() - before)
            for name in HIDDEN:
                with self.assertRaises(worker.Refusal, msg=name):
                    names.find(*name.split(".", 1))
            x = torch.ones(2)
            for name, factor in (("opens.twice", 2), ("Mine.thrice", 3), ("opens.Mine.thrice", 3), ("mylib.five", 5),
                                 ("Inner.four", None), ("NPU.twice", 2), ("opens.six", 6)):
                if factor:
                    self.assertEqual(float(names.find(*name.split(".", 1))(x)[0]), factor)
        finally:
            vars(torch.nn.functional).update(functional)
            del torch.nn.modules.activation._scripted

    def test_operators_of_npu(self) -> None:
        """torch_npu has its operators beside all that it imported, or defines for itself."""
        worker = self.worker()
        library = torch.library.Library("npu", "DEF")
        library.define("npu_six(Tensor x) -> Tensor")
        library.impl("npu_six", lambda x: 6 * x, "CPU")
        fake = types.ModuleType("torch_npu")
        exec("import os\nfrom os import system\nfrom functools import wraps\n"
             "def _shutdown(x): return x\ndef npu_seven(x): return 7 * x\n", vars(fake))
        fake.npu_six, fake.npu_type = torch.ops.npu.npu_six, torch.nn.Module  # type: ignore[attr-defined]
        sys.modules["torch_npu"] = fake
        try:
            names = worker.Names(types.SimpleNamespace(type="npu"), [])
            for name in ("system", "os", "wraps", "_shutdown", "npu_type", "__doc__", "__loader__"):
                with self.assertRaises(worker.Refusal, msg=name):
                    names.find("NPU", name)
            for name, factor in (("npu_six", 6), ("npu_seven", 7)):
                self.assertEqual(float(names.find("NPU", name)(torch.ones(2))[0]), factor)
        finally:
            del sys.modules["torch_npu"]

    def test_what_a_module_imports(self) -> None:
        """A module that Python has by itself gets nothing from the current folder, not even what it
        would like to have; one of the current folder gets what lies beside it."""
        marker, packages = self.folder / "ran", self.folder / "packages"
        packages.mkdir()
        (packages / "installed.py").write_text("try:\n    import faster\nexcept ImportError:\n    pass\n")
        (self.folder / "faster.py").write_text(f"open({str(marker)!r}, 'w')")
        (self.folder / "sub").mkdir()
        (self.folder / "sub" / "beside.py").write_text("VALUE = 1\n")
        (self.folder / "sub" / "lone.py").write_text("import beside\n" + (packages / "installed.py").read_text())
        dump = self.dump(Torch__relu__0=(forward(tensor([4])), None))
        for name, path in (("installed", str(packages)), ("sub/lone.py", "")):
            result = self.check(dump, "-d", "torch:cpu", "--import", name, PYTHONPATH=path)
            self.assertEqual(result.rows["Torch.relu.0"][0], "pass", result.stderr)
            self.assertFalse(marker.exists(), name)
        (self.folder / "near.py").write_text("import faster\n")
        self.check(dump, "-d", "torch:cpu", "--import", "near")
        self.assertTrue(marker.exists())

    def test_what_it_may_do(self) -> None:
        names = ["relu", "gelu", "silu", "mish", "elu", "celu", "relu6"]
        rows = self.check_with({f"Functional.{name}": (tensor([4], low=0.0, high=1.0),) for name in names})
        for name, said in (("relu", "PermissionError"), ("gelu", "PermissionError"), ("silu", "CalledProcessError"),
                           ("mish", "PermissionError")):
            self.assertEqual(rows[f"Functional.{name}"][0], "SKIP")
            self.assertIn(said, rows[f"Functional.{name}"][2])
        for name in ("elu", "celu", "relu6"):
            self.assertEqual(rows[f"Functional.{name}"][0], "pass", rows[f"Functional.{name}"])

    def test_current_folder(self) -> None:
        """An empty entry of PYTHONPATH is the current folder, and Python would run this in it."""
        marker = self.folder / "ran"
        for name in ("sitecustomize", "usercustomize", "torch"):
            (self.folder / f"{name}.py").write_text(f"open({str(marker)!r}, 'w')")
        dump = self.dump(Torch__relu__0=(forward(tensor([4])), None))
        for path in (":", ":/nowhere", "/nowhere:", "/nowhere::/elsewhere", ".", "./:"):
            result = self.check(dump, "-d", "torch:cpu", PYTHONPATH=path)
            self.assertFalse(marker.exists(), path)
            self.assertEqual(result.rows["Torch.relu.0"][0], "pass")


if __name__ == "__main__":
    unittest.main()
