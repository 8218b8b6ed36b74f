"""Runs of acc_check on devices of PyTorch, for the tests of those."""

import csv
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, List

import torch

sys.path.insert(0, str(Path(__file__).parent))
from check_dump import add, backward, forward, save, tensor  # noqa: E402
from dump_model import Recorder  # noqa: E402
from small_models import MODELS  # noqa: E402

BUILD = Path(os.environ["PLUMB_BUILD"])

# Functions of PyTorch that fail in every way there is, and some of the user's own.
MY_OPS = """
import ctypes
import os
import signal
import time

import torch
import torch.nn.functional as F


def twice(x):
    return 2 * x


class Mine:
    @staticmethod
    def thrice(x):
        return 3 * x


def crash(x):
    ctypes.string_at(0)


def abort(x):
    os.write(2, b"terminate called\\n")
    os.abort()


def instruction(x):
    os.kill(os.getpid(), signal.SIGILL)


def kill(x):
    os.kill(os.getpid(), signal.SIGKILL)


def leave(x):
    os._exit(7)


def loop(x):
    while True:
        pass


def hold(x):
    ctypes.PyDLL(None).sleep(1000)  # and nobody else gets the interpreter


def memory(x):
    return torch.empty(1 << 50)


def missing(x):
    import no_such_module


def fault(x):
    raise ValueError("what a\\nday")


def slow(x):
    with open(os.path.join(os.environ["TMPDIR"], "asleep"), "w") as file:
        file.write(str(os.getpid()))
    time.sleep(3)
    return torch.sigmoid(x)


F.relu, F.gelu, F.silu, F.mish, F.elu, F.selu = crash, abort, kill, leave, loop, hold
F.celu, F.softplus, F.tanh, F.sigmoid, F.hardswish = memory, missing, fault, slow, instruction
"""

class Result:
    def __init__(self, done: "subprocess.CompletedProcess[str]") -> None:
        self.code, self.stdout, self.stderr = done.returncode, done.stdout, done.stderr
        paths = [line for line in done.stdout.splitlines() if line.endswith(".csv")]
        self.rows: Dict[str, List[str]] = {}
        self.details: List[List[str]] = []
        if len(paths) == 2:
            self.bytes = [Path(path).read_bytes() for path in paths]
            self.rows = {row[0]: row[1:] for row in self.read(paths[0])}
            self.details = self.read(paths[1])

    @staticmethod
    def read(path: str) -> List[List[str]]:
        with open(path, newline="", encoding="utf-8-sig") as file:
            return [row + [""] for row in csv.reader(file)][1:]

    def not_passed(self) -> Dict[str, List[str]]:
        return {name: row for name, row in self.rows.items()
                if row[0] != "pass" or row[1] not in ("pass", " ")}


class Folder(unittest.TestCase):
    maxDiff = None

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "my_ops.py").write_text(MY_OPS)

    def command(self, dump: Path, *options: str) -> List[str]:
        return [str(BUILD / "plumb"), "multi_acc_check", "-api_info", str(dump), "-o",
                tempfile.mkdtemp(dir=self.folder), "-n", "1", *options]

    def check(self, dump: Path, *options: str, **environment: str) -> Result:
        return Result(subprocess.run(
            self.command(dump, *options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            check=False, cwd=self.folder, env={**os.environ, **environment}))

    def dump(self, **calls: Any) -> Path:
        data: Dict[str, Any] = {}
        for name, (call, grads) in calls.items():
            add(data, name.replace("__", "."), call, grads)
        return save(self.folder / "dump" / "dump.json", data)

    def dump_of(self, names: List[str], grad: bool = True) -> Path:
        """Calls of one tensor each: Functional.relu, ..."""
        data: Dict[str, Any] = {}
        for k, name in enumerate(names):
            one = tensor([4, 6], grad=grad)
            add(data, f"{name}.{k}", forward(one), backward(one) if grad else None)
        return save(self.folder / "dump" / "dump.json", data)

    def model(self, name: str, task: str = "statistics") -> Path:
        torch.manual_seed(1)
        recorder = Recorder(self.folder / name, task)
        step = MODELS[name](torch.float32)
        with recorder:
            step()
        return recorder.write()
