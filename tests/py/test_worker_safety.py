"""A dump names the functions that a worker runs: which it may name, and what they can do there."""

import importlib.util
import os
import sys
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

library = torch.library.Library("mylib", "DEF")
library.define("five(Tensor x) -> Tensor")
library.impl("five", lambda x: 5 * x, "CPU")
"""

# Names that a dump may have, and that lead out of the module.
HIDDEN = ["opens.os.system", "opens.system", "opens.start", "opens.torch.os.system", "torch.os.system",
          "Torch.os.system", "os.system", "subprocess.run", "subprocess.getoutput", "opens.subprocess.getoutput",
          "builtins.exec", "opens.builtins.exec", "opens.__builtins__.exec", "Mine.system", "Mine.os.system",
          "opens.Mine.os.system", "opens.Mine.system", "opens.twice.__globals__.get", "opens.__dict__.get",
          "opens.Mine.__subclasses__", "nn.Module", "opens.nn.Module", "opens.Mine", "Functional.os.system",
          "torch.hub.load", "opens.torch.load", "opens.sys.exit", "opens.pathlib.Path", "opens.library.define",
          "importlib.import_module", "opens.twice.__call__", "mylib.__class__", "os.path.exists"]


class Names(Folder):
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
        spec = importlib.util.spec_from_file_location("worker_alone", os.path.join(BUILD, "python/plumb/_worker/worker.py"))
        worker = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(worker)
        worker.torch = torch
        (self.folder / "opens.py").write_text(OPENS.format(marker="", kept="", port=1))
        functional = dict(vars(torch.nn.functional))
        try:
            names = worker.Names(torch.device("cpu"), [worker.load_file(self.folder / "opens.py", "opens")])
            for name in HIDDEN:
                with self.assertRaises(worker.Refusal, msg=name):
                    names.find(*name.split(".", 1))
            x = torch.ones(2)
            for name, factor in (("opens.twice", 2), ("Mine.thrice", 3), ("opens.Mine.thrice", 3), ("mylib.five", 5),
                                 ("Inner.four", None), ("NPU.twice", 2)):
                if factor:
                    self.assertEqual(float(names.find(*name.split(".", 1))(x)[0]), factor)
        finally:
            vars(torch.nn.functional).update(functional)

    def test_what_it_may_do(self) -> None:
        names = ["relu", "gelu", "silu", "mish", "elu", "celu"]
        rows = self.check_with({f"Functional.{name}": (tensor([4], low=0.0, high=1.0),) for name in names})
        for name, said in (("relu", "PermissionError"), ("gelu", "PermissionError"), ("silu", "CalledProcessError"),
                           ("mish", "PermissionError")):
            self.assertEqual(rows[f"Functional.{name}"][0], "SKIP")
            self.assertIn(said, rows[f"Functional.{name}"][2])
        for name in ("elu", "celu"):
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
