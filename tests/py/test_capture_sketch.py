"""Task "sketch": what it keeps is what `plumb condense` makes of a full dump, to the byte; and a second run that is
compared with it dumps the tensors at which the two part, and nothing else."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, List

import torch

BUILD = Path(os.environ["PLUMB_BUILD"]).resolve()
PLUMB = str(BUILD / "plumb")
SKETCHES = "sketches.condensed.json"

# Every kind of type, views, scalars, and tensors of several parts that threads share.
TYPES = """
import sys
import torch
from plumb import PrecisionDebugger
torch.manual_seed(3)
debugger = PrecisionDebugger(dump_path=sys.argv[1], task=sys.argv[2], level="L1", risk_level="ALL")
x = torch.randn(40, 130)
odd = x.clone()
odd[3, 5], odd[7, 9], odd[8, 0] = float("nan"), float("inf"), float("-inf")
debugger.start()
for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int8, torch.uint8,
              torch.complex64, torch.complex128):
    (x * 9).to(dtype) + 1
torch.logical_not(x > 0)
x.t() + 1
x[::2, 3::5] * 2
torch.tensor(2.5) * 3
torch.zeros(0, 7) + 1
odd * 2
torch.full((70, 70), 2 ** 60 + 1) + 1
torch.full((70, 70), 1e308, dtype=torch.float64) * 1.5
big = torch.randn(700, 1001)
big + 1
big.to(torch.complex64) * 1j
big.to(torch.bfloat16)[:, :1000] * 2
debugger.stop()
debugger.step()
"""

MODEL = """
import sys
import torch
from torch import nn
from plumb import PrecisionDebugger
settings = dict(eval(sys.argv[2]))
torch.manual_seed(0)
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.act, self.down = nn.LayerNorm(128), nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 128)
    def forward(self, x):
        return x + self.down(self.act(self.up(self.norm(x))))
model = nn.Sequential(*(Block() for _ in range(3)))
x = torch.randn(32, 128)
exec(sys.argv[3])
debugger = PrecisionDebugger(dump_path=sys.argv[1], task="sketch", level="mix", **settings)
for step in range(2):
    debugger.start(model)
    model(x).square().mean().backward()
    debugger.stop()
    debugger.step()
"""


class Case(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = Path(place.name)

    def run_script(self, script: str, *words: str) -> str:
        env = {**os.environ, "PYTHONPATH": str(BUILD / "python")}
        done = subprocess.run([sys.executable, "-c", script, *words], cwd=self.root, env=env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def train(self, name: str, fault: str = "", **settings: Any) -> str:
        return self.run_script(MODEL, name, repr(settings), fault)

    def plumb(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([PLUMB, *words], cwd=self.root, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=600)

    def step(self, name: str, step: int = 0) -> Path:
        return next((self.root / name / f"step{step}").iterdir())

    def dumped(self, name: str) -> List[str]:
        return sorted(path.name for path in (self.root / name).rglob("*.pt"))


def described(text: str) -> Dict[str, str]:
    """The tensors of a condensed file, each as it is written, by its name."""
    return {json.loads(f'"{name}"'): rest for name, rest in re.findall(r'^\{"name":"([^\n]*?)"(,[^\n]*\})[,\]]', text, re.M)}


class SameAsCondensed(Case):
    def test_every_type(self) -> None:
        self.run_script(TYPES, "sketched", "sketch")
        self.run_script(TYPES, "full", "tensor")
        mine = described((self.step("sketched") / SKETCHES).read_text("utf-8"))
        compared = self.plumb("compare", "sketched/step0", "full/step0")
        self.assertEqual(compared.returncode, 0, compared.stdout)
        files = sorted((self.step("full") / "dump_tensor_data").iterdir())
        self.assertEqual(sorted(mine), [path.name for path in files])
        checked = 0
        for path in files:  # one by one, since a small file is left alone, and padding makes it large
            folder = self.root / "one"
            folder.mkdir()
            big = folder / path.name
            big.write_bytes(path.read_bytes())
            done = self.plumb("condense", "one", "--settle", "0.001")
            left = folder / f"{path.name}.condensed.json"
            if left.exists():
                theirs = described(left.read_text("utf-8"))
                self.assertEqual(list(theirs.values()), [mine[path.name]], path.name)
                checked += 1
            else:
                self.assertIn("would not be smaller", done.stdout)
            for rest in folder.iterdir():
                rest.unlink()
            folder.rmdir()
        self.assertGreaterEqual(checked, 30)

    def test_large_and_small(self) -> None:
        """Sizes stay about what docs/FORMATS.md says."""
        self.run_script(TYPES, "sketched", "sketch")
        for name, text in described((self.step("sketched") / SKETCHES).read_text("utf-8")).items():
            tensor = json.loads("{" + text[1:])
            axes = sum(size > 1 for size in tensor["shape"])
            least = 20 * sum("finite_" in key for key in tensor)
            self.assertLess(len(text), 900 + 100 * max(axes, 1) + 30 * (least > 0) + least, name)

    def test_what_is_written_into_is_sketched_again(self) -> None:
        self.run_script("""
import torch
from plumb import PrecisionDebugger
debugger = PrecisionDebugger(dump_path="dump", task="sketch", level="L1")
x = torch.ones(3000)
debugger.start()
x * 1
x.data[5] = 7  # past the counter of writes
x * 1
debugger.stop()
debugger.step()
""")
        found = described((self.step("dump") / SKETCHES).read_text("utf-8"))
        hashes = {json.loads("{" + found[f"Tensor.__mul__.{n}.forward.input.0.pt"][1:])["hash"] for n in (0, 1)}
        self.assertEqual(len(hashes), 2)


class Against(Case):
    def test_the_same_again_dumps_nothing(self) -> None:
        self.train("first")
        told = self.train("second", bench_path="first")
        self.assertRegex(told, r"plumb: (\d+) tensors compared with \S+first: \1 equal, 0 near, 0 parted\n")
        self.assertEqual(self.dumped("second"), [])
        self.assertEqual(list((self.root / "second").rglob("parted.txt")), [])
        self.assertEqual(self.plumb("compare", "second", "first").returncode, 0)

    def test_planted_faults(self) -> None:
        """The first tensor that parts is the right one, and its file has its values."""
        self.train("first")
        faults = {
            "model[1].down.weight.data[48:64] *= 1.01":
                ("Module.1.down.Linear.forward.0.parameters.weight", "axis 0: 48-63 (2 of 16 blocks)"),
            "model[2].norm.eps = 0.1": ("Functional.layer_norm.2.forward.output.0", "relative distance"),
            "model[0].act.forward = lambda x: nn.functional.gelu(x, approximate='tanh') * 1.001":
                ("Functional.gelu.0.forward.output.0", "relative distance"),
            "model[1].up.bias.data[7] = float('nan')":
                ("Module.1.up.Linear.forward.0.parameters.bias", "1 NaN and 0 infinite values, but 0 and 0 there"),
            "x[3] = x[4]": ("Module.0.Block.forward.0.input.0", "axis 0: "),
        }
        for number, (fault, (wanted, why)) in enumerate(faults.items()):
            with self.subTest(fault):
                name = f"run{number}"
                told = self.train(name, fault, bench_path="first")
                first = re.search(r"first: (\S+)\.pt", told)
                self.assertIsNotNone(first, told)
                lines = (self.step(name) / "parted.txt").read_text().splitlines()
                names = [line.partition(".pt: ")[0] for line in lines]
                self.assertEqual(first[1], names[0])
                where = {line.partition(".pt: ")[0]: line for line in lines}
                self.assertIn(wanted, where, lines[:5])
                self.assertIn(why, where[wanted])
                self.assertLess(names.index(wanted), 4, names[:5])
                entry = self.step(name) / "dump_tensor_data" / f"{names[0]}.pt"
                value = torch.load(str(entry))
                self.assertGreater(value.numel(), 0)
                self.assertIn(self.plumb("compare", name, "first").returncode, (0, 1))

    def test_small_noise_is_near(self) -> None:
        self.train("first")
        fault = "model[0].up.weight.data *= 1 + 1e-6"
        told = self.train("near", fault, bench_path="first")
        self.assertRegex(told, r": [1-9]\d* equal, [1-9]\d* near, 0 parted\n")
        self.assertEqual(self.dumped("near"), [])
        told = self.train("strict", fault, bench_path="first", bench_limit=1e-9)
        self.assertRegex(told, r", 0 near, [1-9]\d* parted \([1-9]\d* dumped")
        self.assertGreater(len(self.dumped("strict")), 5)

    def test_files_are_counted(self) -> None:
        """The same bytes once, and no more than are asked for."""
        self.train("first")
        told = self.train("few", "x[0] = 0", bench_path="first", bench_dump=3)
        parted, dumped, same, left = (int(number) for number in re.search(
            r"(\d+) parted \((\d+) dumped, (\d+) the same bytes as these, (\d+) beyond bench_dump", told).groups())
        self.assertEqual((dumped, len(self.dumped("few"))), (6, 6))  # of two steps
        self.assertEqual(parted, dumped + same + left)
        for step in (0, 1):
            tree = json.loads((self.step("few", step) / "dump.json").read_text())
            names = set(re.findall(r'"data_name": "([^"]*)"', json.dumps(tree)))
            self.assertTrue(set(path.name for path in self.step("few", step).rglob("*.pt")) <= names)
        compared = self.plumb("compare", "few", "first")
        self.assertNotIn("unreadable", compared.stderr)

    def test_what_only_one_run_has_is_named(self) -> None:
        self.train("first")
        told = self.train("more", "model.append(nn.ReLU())", bench_path="first")
        self.assertRegex(told, r"; \d+ only in this run.*\(see parted.txt\)")
        self.assertIn("Functional.relu.0.forward.input.0.pt: not in the earlier run",
                      (self.step("more") / "parted.txt").read_text())
        told = self.train("less", "model = model[:2]", bench_path="first")
        self.assertRegex(told, r"\d+ only in the earlier one")
        self.assertIn("Module.2.norm.LayerNorm.forward.0.input.0.pt: only in the earlier run",
                      (self.step("less") / "parted.txt").read_text())
        for path in sorted((self.root / "first" / "step1").rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
        told = self.train("short", bench_path="first")
        self.assertRegex(told, r"nothing to compare with in step1/\w+: ")

    def test_a_full_dump_will_do(self) -> None:
        self.run_script(MODEL.replace('task="sketch"', 'task="tensor"'), "full", "{}", "")
        told = self.train("second", bench_path="full")
        self.assertRegex(told, r"(\d+) tensors compared with \S+full: \1 equal")
        self.plumb("condense", "full", "--settle", "0.001")
        told = self.train("third", bench_path="full")
        self.assertRegex(told, r"(\d+) tensors compared with \S+full: \1 equal")

    def test_wrong_settings(self) -> None:
        (self.root / "there").mkdir()
        for settings, word in ((dict(bench_path="nowhere"), "is not a folder"),
                               (dict(bench_path="there", task="tensor"), "is for task"),
                               (dict(bench_path="there", bench_limit=-1), "is not a number from 0"),
                               (dict(bench_path="there", bench_dump=1.5), "is not a number from 0"),
                               (dict(bench_path="there", dump_path="there"), "the same folder")):
            script = ("import sys; from plumb import PrecisionDebugger, Error\n"
                      "try: PrecisionDebugger(**{'task': 'sketch', 'dump_path': 'dump', **eval(sys.argv[1])})\n"
                      "except Error as error: print(error, file=sys.stderr)")
            self.assertIn(word, self.run_script(script, repr(settings)))


class Killed(Case):
    def test_what_is_named_is_there(self) -> None:
        """Whenever it is killed: both files are whole, and each tensor of dump.json has its sketch."""
        script = MODEL.replace("range(2)", "range(10 ** 6)").replace("debugger.start(model)",
                                                                     "debugger.start(model); print(step, flush=True)")
        env = {**os.environ, "PYTHONPATH": str(BUILD / "python")}
        for moment in (1, 2, 3):
            process = subprocess.Popen([sys.executable, "-c", script, f"dump{moment}", "{}", ""], cwd=self.root, env=env,
                                       text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for _ in range(moment + 1):
                process.stdout.readline()
            process.send_signal(signal.SIGKILL)
            process.communicate()
            found = 0
            for tree in (self.root / f"dump{moment}").rglob("dump.json"):
                names = set(re.findall(r'"data_name": "([^"]*)"', json.dumps(json.loads(tree.read_text()))))
                kept = {tensor["name"] for tensor in json.loads((tree.parent / SKETCHES).read_text())["tensors"]}
                self.assertLessEqual(names, kept)
                found += len(names)
            self.assertGreater(found, 10)
            self.assertEqual(self.plumb("info", f"dump{moment}").returncode, 0)

    def test_a_stale_file_is_not_taken_for_the_tensor(self) -> None:
        self.run_script(MODEL.replace('task="sketch"', 'task="tensor"'), "dump", "{}", "")
        self.step("dump").rename(self.root / "dump" / "step0" / "rank0")
        self.run_script(MODEL.replace("PrecisionDebugger(", "PrecisionDebugger(step=[0], ").replace(
            "debugger.start(model)", "debugger.start(model, rank_id=0)"), "dump", "{}", "x += 1")
        self.assertEqual([path.name for path in (self.root / "dump" / "step0").rglob("*.pt")], [])


if __name__ == "__main__":
    unittest.main()
