"""begin_dump and end_dump: what is recorded of operators, and that a program does not notice."""

import contextlib
import glob
import io
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
from collections import Counter
from pathlib import Path
from typing import Any, Dict, List

BUILD = os.environ.get("PLUMB_BUILD", str(Path(__file__).resolve().parents[2] / "build"))
sys.path.insert(0, os.path.join(BUILD, "python"))

import torch  # noqa: E402
from torch.utils import _python_dispatch  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import plumb  # noqa: E402
from plumb._capture import aten  # noqa: E402

FULL = dict(X_DEBUG=0x102, X_DEDUP=False, X_DUMP_NUM=0)


class Net(torch.nn.Module):
    """Records itself, as a script of a serving engine would."""

    def __init__(self, recorded: bool) -> None:
        super().__init__()
        self.recorded = recorded
        self.embedding = torch.nn.Embedding(20, 16)
        self.layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1)
        self.conv = torch.nn.Conv1d(16, 4, 3)
        self.lstm = torch.nn.LSTM(4, 4)
        self.out = torch.nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.recorded:
            plumb.begin_dump(X_DEBUG=0x102, X_DEDUP=True, X_DUMP_NUM=2)
        x = self.conv(self.layer(self.embedding(x)).transpose(1, 2)).transpose(1, 2)
        y = self.out(torch.relu(self.lstm(x)[0].mean(1)))
        y.add_(1)
        y = y / torch.linalg.norm(y, dim=1, keepdim=True)
        if self.recorded:
            plumb.end_dump(clear_context=True)
        return y


def train(recorded: bool, around: bool) -> List[Any]:
    torch.manual_seed(0)
    random.seed(0)
    net = Net(recorded)
    optimizer = torch.optim.Adam(net.parameters())
    if around:
        plumb.begin_dump(X_DEBUG=0x102, X_DEDUP=False, X_DUMP_NUM=1)
    for _ in range(3):
        x = torch.randint(0, 20, (2, 6))
        loss = torch.nn.functional.cross_entropy(net(x), torch.tensor([0, 2]))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
    if around:
        plumb.end_dump()
    return [loss.detach(), *[p.detach() for p in net.parameters()], torch.get_rng_state(),
            torch.tensor(random.random())]


class Case(unittest.TestCase):
    def setUp(self) -> None:
        self.before = os.getcwd()
        self.folder = tempfile.mkdtemp(prefix="plumb-aten-")
        os.chdir(self.folder)
        aten._recorder = None

    def tearDown(self) -> None:
        plumb.end_dump()
        aten._recorder = None
        os.chdir(self.before)
        shutil.rmtree(self.folder)

    def path(self, *parts: str) -> str:
        return os.path.join(self.folder, "xray_debug", f"proc_{os.getpid()}", *parts)

    def dump(self) -> Dict[str, Any]:
        with open(self.path("dump.json")) as file:
            return json.load(file)

    def entries(self) -> List[Dict[str, Any]]:
        return list(self.dump()["data"].values())

    def ops(self) -> List[str]:
        return [entry["op"] for entry in self.entries()]

    def told(self) -> Any:
        return contextlib.redirect_stderr(io.StringIO())


class Recorded(Case):
    def test_entries(self) -> None:
        a = torch.tensor([[1.0, -2.0, 3.0], [0.5, 4.0, -8.0]])
        plumb.begin_dump(**FULL)
        b = torch.add(a.t(), a.t(), alpha=2)
        torch.linspace(0, 47, 10, dtype=torch.float64)
        torch.sum(a, dim=(0, 1), keepdim=True)
        torch.cat([a, b.t()], 1)
        a.to(torch.complex64).mul(1 + 2j)
        plumb.end_dump()
        dump = self.dump()
        self.assertEqual({key: value for key, value in dump.items() if key != "data"}, {
            "task": "statistics", "level": "aten", "framework": "pytorch",
            "dump_data_dir": self.path("dump")})
        self.assertEqual(list(dump["data"]), [f"{i:05d}-aten" for i in range(len(dump["data"]))])
        by_op = {entry["op"]: entry for entry in self.entries()}
        add = by_op["aten.add.Tensor"]
        self.assertEqual(list(add), ["op", "input_args", "input_kwargs", "output"])
        self.assertEqual(add["input_args"][0], {
            "type": "torch.Tensor", "dtype": "torch.float32", "shape": [3, 2], "Max": 4.0,
            "Min": -8.0,
            "Mean": a.double().mean().item(), "Norm": a.double().norm().item(),
            "requires_grad": False,
            "stride": [1, 3]})
        self.assertEqual(add["input_kwargs"], {"alpha": {"type": "int", "value": 2}})
        self.assertEqual(len(add["output"]), 1)
        self.assertEqual(add["output"][0]["Max"], 12.0)
        self.assertEqual(by_op["aten.linspace.default"]["input_args"][2],
                         {"type": "int", "value": 10})
        self.assertEqual(by_op["aten.linspace.default"]["input_kwargs"]["dtype"],
                         {"type": "torch.dtype", "value": "torch.float64"})
        self.assertEqual(by_op["aten.sum.dim_IntList"]["input_args"][1],
                         [{"type": "int", "value": 0}, {"type": "int", "value": 1}])
        self.assertEqual([leaf["shape"] for leaf in by_op["aten.cat.default"]["input_args"][0]],
                         [[2, 3], [2, 3]])
        self.assertIn({"type": "complex", "value": [1.0, 2.0]},
                      by_op["aten.mul.Tensor"]["input_args"])

    def test_inputs_are_those_before_the_call(self) -> None:
        a = torch.tensor([1.0, 2.0])
        plumb.begin_dump(**{**FULL, "X_DUMP_NUM": 1})
        a.mul_(10)
        plumb.end_dump()
        entry, = self.entries()
        self.assertEqual((entry["input_args"][0]["Max"], entry["output"][0]["Max"]), (2.0, 20.0))
        kept = torch.load(self.path("dump", entry["input_args"][0]["data_name"]))
        self.assertEqual(kept.tolist(), [1.0, 2.0])

    def test_backward(self) -> None:
        a = torch.ones(2, 3, requires_grad=True)
        plumb.begin_dump(**FULL)
        torch.relu(a).sum().backward()
        plumb.end_dump()
        self.assertIn("aten.threshold_backward.default", self.ops())

    def test_levels(self) -> None:
        plumb.begin_dump(X_DEBUG=0)
        torch.ones(2)
        plumb.end_dump()
        self.assertFalse(os.path.exists("xray_debug"))
        plumb.begin_dump(X_DEBUG=0x100)
        torch.ones(2)
        plumb.end_dump()
        self.assertEqual(self.entries(), [{"op": "aten.ones.default"}])

    def test_environment(self) -> None:
        names = {"X_DEBUG": "0x102", "X_DEDUP": "True", "X_DUMP_NUM": "1"}
        os.environ.update(names)
        try:
            plumb.begin_dump()
            for _ in range(3):
                torch.ones(2).add(1)
            plumb.end_dump()
            plumb.begin_dump(X_DEDUP=False)  # an argument wins
            torch.ones(2)
            torch.ones(2)
            plumb.end_dump()
        finally:
            for name in names:
                del os.environ[name]
        self.assertEqual(self.ops(),
                         ["aten.ones.default", "aten.add.Tensor"] + ["aten.ones.default"] * 2)
        self.assertIn("data_name", self.entries()[1]["input_args"][0])

    def test_repeated(self) -> None:
        def work() -> None:
            for i in range(4):
                torch.ones(2).add(i % 2)
                torch.ones(3).add(1)
        plumb.begin_dump(X_DEDUP=True)
        work()
        plumb.end_dump(clear_context=False)
        self.assertEqual(Counter(self.ops()), {"aten.ones.default": 2, "aten.add.Tensor": 3})
        plumb.begin_dump(X_DEDUP=True)
        work()
        plumb.end_dump(clear_context=True)
        self.assertEqual(len(self.ops()), 5)
        plumb.begin_dump(X_DEDUP=True)
        work()
        plumb.end_dump()
        self.assertEqual(len(self.ops()), 5)  # of one dump, however often it was begun
        plumb.begin_dump(X_DEDUP=False)
        work()
        plumb.end_dump()
        self.assertEqual(len(self.ops()), 5 + 16)
        self.assertEqual(list(self.dump()["data"])[-1], "00020-aten")


class Kept(Case):
    def names(self) -> List[str]:
        return [leaf["data_name"] for entry in self.entries() for leaf in entry["input_args"]
                if isinstance(leaf, dict) and leaf.get("data_name")]

    def record(self, calls: int) -> List[str]:
        aten._recorder = None
        plumb.begin_dump(X_DUMP_NUM=3)
        for i in range(calls):
            torch.add(torch.full((4,), float(i)), torch.ones(4))
        plumb.end_dump()
        return self.names()

    def test_n_of_many(self) -> None:
        before = torch.get_rng_state(), random.getstate()
        first = self.record(60)
        self.assertTrue(torch.equal(before[0], torch.get_rng_state()))
        self.assertEqual(before[1], random.getstate())
        self.assertEqual(len(first), 6)  # two tensors each of three calls
        self.assertEqual(sorted(os.listdir(self.path("dump"))), sorted(first))
        for entry in self.entries():
            for leaf in entry["input_args"]:
                if isinstance(leaf, dict) and leaf.get("data_name"):
                    kept = torch.load(self.path("dump", leaf["data_name"]))
                    self.assertEqual((kept.max().item(), list(kept.shape)),
                                     (leaf["Max"], leaf["shape"]))
        shutil.rmtree("xray_debug")
        self.assertEqual(self.record(60), first)

    def test_every_call_has_the_same_chance(self) -> None:
        chosen: Counter = Counter()
        for seed in range(3000):
            reservoir = aten.Reservoir(str(seed))
            places: Dict[int, int] = {}
            for call in range(10):
                place = reservoir.choose(2)
                if place >= 0:
                    places[place] = call
            self.assertEqual(len(places), 2)
            chosen.update(places.values())
        for call in range(10):  # 600 expected, with a deviation of 22
            self.assertLess(abs(chosen[call] - 600), 110)

    def test_a_call_that_raises_leaves_nothing(self) -> None:
        plumb.begin_dump(X_DUMP_NUM=3)
        with self.assertRaises(RuntimeError):
            torch.mm(torch.ones(2, 3), torch.ones(2, 3))
        torch.ones(2)
        plumb.end_dump()
        self.assertNotIn("aten.mm.default", self.ops())
        self.assertEqual(os.listdir(self.path("dump")), [])


class Unnoticed(Case):
    def test_same_bits(self) -> None:
        plain = train(False, False)
        for recorded, around in ((True, False), (False, True), (True, True)):
            aten._recorder = None
            for a, b in zip(plain, train(recorded, around)):
                self.assertTrue(torch.equal(a, b))
            self.assertGreater(len(self.ops()), 30)

    def test_order_of_calls(self) -> None:
        plumb.end_dump()  # without a begin
        plumb.begin_dump(**FULL)
        plumb.begin_dump(**FULL)  # inside another
        torch.ones(2)
        plumb.end_dump()
        torch.zeros(2)
        plumb.end_dump()
        with self.assertRaises(ValueError):
            plumb.begin_dump(**FULL)
            raise ValueError
        torch.ones(3)
        plumb.begin_dump(**FULL)
        torch.ones(4)
        plumb.end_dump()
        torch.zeros(5)
        self.assertEqual(self.ops(), ["aten.ones.default"] * 3)
        self.assertEqual(aten._modes(), [])

    def test_other_modes(self) -> None:
        seen = []

        class Other(TorchDispatchMode):
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (),
                                   kwargs: Any = None) -> Any:
                seen.append(str(func))
                return func(*args, **(kwargs or {}))

        with Other():
            plumb.begin_dump(**FULL)
            with Other():
                torch.ones(2)
                plumb.end_dump()
                torch.zeros(2)
            torch.zeros(3)
        torch.zeros(4)
        self.assertEqual(self.ops(), ["aten.ones.default"])
        self.assertEqual(seen, ["aten.ones.default"] * 2 + ["aten.zeros.default"] * 3)

    def test_readable_at_any_moment(self) -> None:
        plumb.begin_dump(**FULL)
        for i in range(5):
            torch.ones(2)
            self.assertEqual(len(self.ops()), i + 1)

    def test_odd_tensors(self) -> None:
        plumb.begin_dump(X_DUMP_NUM=9)
        torch.ones(2, device="meta").add(1)
        torch.eye(3).to_sparse().mul(2)
        torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8).dequantize()
        torch.zeros(0).add(1)
        torch.tensor(float("nan")).add(float("inf"))
        torch.ones(2, dtype=torch.bfloat16).add(1)
        torch.rand(2, generator=torch.Generator())
        plumb.end_dump()
        self.assertEqual(aten._recorder.notes, [])
        self.assertIn({"type": "float", "value": float("inf")},
                      [leaf for entry in self.entries() for leaf in entry["input_args"]])

    def test_no_place_to_write(self) -> None:
        with open("xray_debug", "w"):
            pass
        with self.told() as text:
            plumb.begin_dump(**FULL)
            torch.ones(2)
            plumb.end_dump()
        self.assertIn("begin_dump: nothing is recorded", text.getvalue())

    def test_dump_taken_away(self) -> None:
        for i in range(3):
            plumb.begin_dump(X_DUMP_NUM=1)
            torch.ones(2).add(i)
            plumb.end_dump(clear_context=i == 1)
            self.assertEqual(self.ops(), ["aten.ones.default", "aten.add.Tensor"])
            shutil.rmtree("xray_debug")

    def test_wrong_arguments(self) -> None:
        with self.told() as text:
            plumb.begin_dump(X_DEBUG="much", X_DEDUP=None, X_DUMP_NUM=-1)
            torch.ones(2)
            plumb.end_dump()
        self.assertEqual(text.getvalue().count("is not a number from 0"), 2)
        self.assertEqual(self.ops(), ["aten.ones.default"])

    def test_threads(self) -> None:
        together = threading.Barrier(4)

        def work() -> None:
            together.wait()
            plumb.begin_dump(**FULL)
            for _ in range(50):
                torch.ones(2).add(1)
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        plumb.end_dump()
        self.assertEqual(len(self.ops()), 400)

    def test_engine_threads(self) -> None:
        """Backward passes inside backward passes go on in threads of the autograd engine. PyTorch 1.13
        never ends those threads, and one that wakes up while Python shuts down takes the process with it
        (std::terminate): so they run in a process of their own, which ends without a shutdown."""
        script = """
import os, sys, threading
import torch, plumb

seen = set()

class Deep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, depth):
        ctx.depth = depth
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        seen.add(threading.get_ident())
        if ctx.depth:
            with torch.enable_grad():
                x = torch.ones(1, requires_grad=True)
                Deep.apply(x, ctx.depth - 1).sum().backward()
        return grad.neg(), None

plumb.begin_dump(X_DEBUG=0x102, X_DEDUP=False, X_DUMP_NUM=0)
Deep.apply(torch.ones(1, requires_grad=True), 70).sum().backward()
plumb.end_dump()
os._exit(0 if len(seen) > 1 else 3)
"""
        child = subprocess.Popen([sys.executable, "-c", script],
                                 env={**os.environ, "PYTHONPATH": sys.path[0]})
        self.assertEqual(child.wait(), 0)
        with open(os.path.join("xray_debug", f"proc_{child.pid}", "dump.json")) as file:
            ops = [entry["op"] for entry in json.load(file)["data"].values()]
        self.assertEqual(ops.count("aten.neg.default"), 71)

    def test_other_ways_to_run(self) -> None:
        @torch.jit.script
        def scripted(x: torch.Tensor) -> torch.Tensor:
            return x.sin() + 1

        plumb.begin_dump(**FULL)
        with torch.inference_mode():
            a = torch.ones(2).cos()
        b = scripted(torch.ones(2))
        traced = torch.jit.trace(lambda x: x.exp(), torch.zeros(1))(torch.zeros(2))
        plumb.end_dump()
        self.assertEqual(aten._recorder.notes, [])
        self.assertEqual((a.tolist(), b.tolist(), traced.tolist()),
                         (torch.ones(2).cos().tolist(), (torch.ones(2).sin() + 1).tolist(),
                          [1.0, 1.0]))
        for op in ("cos", "sin", "exp"):
            self.assertIn(f"aten.{op}.default", self.ops())

    def test_fork(self) -> None:
        plumb.begin_dump(X_DUMP_NUM=2)
        torch.ones(2).add(1)
        child = os.fork()
        if not child:
            status = 1
            try:
                torch.zeros(2).sub(1)  # not recorded
                plumb.end_dump()
                plumb.begin_dump(X_DUMP_NUM=1)
                torch.ones(3).mul(2)
                plumb.end_dump()
                status = 0
            finally:
                os._exit(status)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        torch.ones(2).add(1)
        plumb.end_dump()
        self.assertEqual(self.ops(), ["aten.ones.default", "aten.add.Tensor"] * 2)
        with open(os.path.join("xray_debug", f"proc_{child}", "dump.json")) as file:
            data = json.load(file)["data"]
        self.assertEqual([entry["op"] for entry in data.values()],
                         ["aten.ones.default", "aten.mul.Tensor"])
        self.assertEqual(len(glob.glob(os.path.join("xray_debug", f"proc_{child}", "dump", "*"))),
                         1)

    def test_program_that_dies(self) -> None:
        script = ("import os, torch, plumb\nplumb.begin_dump()\ntorch.ones(2)\n"
                  "os.kill(os.getpid(), 9)\n")
        died = subprocess.Popen([sys.executable, "-c", script],
                                env={**os.environ, "PYTHONPATH": sys.path[0]})
        self.assertEqual(died.wait(), -9)
        with open(os.path.join("xray_debug", f"proc_{died.pid}", "dump.json")) as file:
            self.assertEqual([entry["op"] for entry in json.load(file)["data"].values()],
                             ["aten.ones.default"])


class Checked(Case):
    def test_acc_check(self) -> None:
        """The same calls, checked natively: rows are named as in the dump."""
        torch.manual_seed(1)
        plumb.begin_dump(X_DUMP_NUM=1)
        x = torch.randn(4, 8)
        torch.nn.functional.layer_norm(torch.nn.functional.gelu(x @ torch.randn(8, 8)),
                                       (8,)).softmax(-1)
        plumb.end_dump()
        done = subprocess.run([os.path.join(BUILD, "plumb"), "acc_check", "-api_info",
                               self.path("dump.json"),
                               "-o", self.folder], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        result, = glob.glob("accuracy_checking_result_*.csv")
        with open(result) as file:
            rows = [line.split(",")[:2] for line in file.read().splitlines()[1:]]
        wanted = [[name, "SKIP" if "randn" in entry["op"] else "pass"]
                  for name, entry in self.dump()["data"].items()]
        self.assertEqual(rows, wanted, done.stdout)


@unittest.skipUnless(hasattr(torch, "cond"), "PyTorch 1.13 has no operators that are given functions")
class HigherOrder(Case):
    """Nothing is raised, nothing changes, and what the functions call is recorded."""

    def same(self, run: Any, *ops: str) -> None:
        plain = run()
        with self.told() as told:
            plumb.begin_dump(**FULL)
            found = run()
            plumb.end_dump()
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(plain, found)))
        self.assertEqual(len(plain), len(found))
        self.assertTrue(set(ops) <= set(self.ops()), self.ops())
        self.assertNotIn("not recorded", told.getvalue())

    def test_cond(self) -> None:
        from torch._higher_order_ops.cond import cond_op
        x = torch.randn(4, 8)
        yes, sin, cos = torch.tensor(True), lambda x: [x.sin()], lambda x: [x.cos()]
        self.same(lambda: cond_op(yes, sin, cos, [x]), "aten.sin.default")

        def run() -> List[torch.Tensor]:
            given = x.clone().requires_grad_()
            result = torch.cond(given.sum() > 99, lambda x: x.sin(), lambda x: x.tanh(), (given,))
            return [result, *torch.autograd.grad(result.sum(), [given])]
        self.same(run, "aten.tanh.default", "aten.tanh_backward.default")

    def test_the_compiler_compiles_afterwards(self) -> None:
        flags = lambda: {name: value for name, value in vars(_python_dispatch).items() if name.startswith("_is_in_")
                         and isinstance(value, bool)}
        before = flags()
        with self.told():
            plumb.begin_dump(**FULL)
            there = threading.Thread(target=lambda: (plumb.begin_dump(**FULL), plumb.end_dump()))
            there.start()
            there.join()
            torch.ones(2).neg()
            plumb.begin_dump(**FULL)
            plumb.end_dump()
            plumb.end_dump()
        self.assertEqual(before, flags())
        from torch._dynamo.testing import CompileCounter
        counted = CompileCounter()
        torch.compile(lambda x: x.sin() + 1, backend=counted)(torch.ones(3))
        self.assertEqual(counted.frame_count, 1)

    def test_flex_attention(self) -> None:
        from torch.nn.attention.flex_attention import flex_attention
        q, k, v = (torch.randn(1, 2, 32, 16) for _ in range(3))
        causal = lambda s, b, h, i, j: torch.where(i >= j, s, -float("inf"))
        self.same(lambda: [flex_attention(q, k, v, score_mod=causal)], "aten.logsumexp.default")

        def run() -> List[torch.Tensor]:
            given = [one.clone().requires_grad_() for one in (q, k, v)]
            return list(torch.autograd.grad(flex_attention(*given, score_mod=causal).sum(), given))
        try:
            run()
        except NotImplementedError:  # newer versions refuse gradients on the CPU, with or without a dump
            return
        self.same(run, "aten.logsumexp.default")
        with self.told() as told:
            plumb.begin_dump(**FULL)
            run()
            plumb.end_dump()
            plumb._capture.aten._close()
        self.assertIn("flex_attention ran uncompiled", told.getvalue())


if __name__ == "__main__":
    unittest.main()
