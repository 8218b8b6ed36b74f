"""Inputs of the pre-check: the values that msProbe drew, bit for bit, and that plumb's own do not
depend on what was generated before.

A small set lives in tests/data/golden; with PLUMB_GOLDEN the whole of it is checked.
"""

import ast
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import numpy as np

BUILD = Path(os.environ["PLUMB_BUILD"])
DATA = Path(os.environ["PLUMB_TEST_DATA"]) / "golden"
STORED = {"bfloat16": np.uint16, "bool": np.bool_}  # else numpy has the type of that name


def roots() -> List[Path]:
    return [DATA] + ([Path(os.environ["PLUMB_GOLDEN"])] if "PLUMB_GOLDEN" in os.environ else [])


def same(mine: np.ndarray, golden: np.ndarray) -> bool:
    """Bits, but that one NaN is as good as another."""
    if mine.dtype != golden.dtype or mine.shape != golden.shape:
        return False
    if mine.dtype.kind != "f":
        return np.array_equal(mine, golden)
    nan = np.isnan(golden)
    return np.array_equal(np.isnan(mine), nan) and mine[~nan].tobytes() == golden[~nan].tobytes()


class Tool:
    """A dump, and what gen_inputs makes of its calls, in order."""

    def __init__(self, dump: Path, *words: str) -> None:
        self.dump, self.words = dump, words

    def run(self, commands: List[str]) -> List[Dict[str, Any]]:
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([str(BUILD / "tests" / "gen_inputs"), str(self.dump), folder, *self.words],
                                  input="\n".join(commands) + "\n", stdout=subprocess.PIPE, text=True,
                                  check=True)
            found = [json.loads(line) for line in done.stdout.splitlines()]
            assert len(found) == len(commands), f"{len(found)} answers to {len(commands)} commands"
            return [self.arrays(one, Path(folder)) for one in found]

    def arrays(self, value: Any, folder: Path) -> Any:
        if isinstance(value, list):
            return [self.arrays(item, folder) for item in value]
        if not isinstance(value, dict):
            return value
        if "file" not in value:
            return {key: self.arrays(item, folder) for key, item in value.items()}
        dtype = STORED.get(value["dtype"], None) or np.dtype(value["dtype"])
        return np.fromfile(folder / value["file"], dtype=dtype).reshape(value["shape"])


def write_dump(folder: str, calls: List[Tuple[str, List[Any]]]) -> Path:
    path = Path(folder) / "dump.json"
    data = {f"{name}.forward": {"input_args": args, "input_kwargs": {}, "output": []}
            for name, args in calls}
    path.write_text(json.dumps({"task": "statistics", "framework": "pytorch", "dump_data_dir": None,
                                "data": data}))
    return path


class Entries(unittest.TestCase):
    """Single arguments, all drawn from one generator in order."""

    def test_entries(self) -> None:
        for root in roots():
            folder = root / "precheck" / "inputs"
            entries = json.loads((folder / "manifest.json").read_text())["entries"]
            calls = [(f"Torch.{entry['api']}.{entry['i']}", [entry["info"]]) for entry in entries]
            with tempfile.TemporaryDirectory() as scratch:
                tool = Tool(write_dump(scratch, calls), "msprobe", "mt")
                answers = tool.run([f"forward {name}" for name, _ in calls])
            self.assertGreater(len(entries), 40)
            for entry, answer in zip(entries, answers):
                with self.subTest(i=entry["i"], info=entry["info"]):
                    self.compare(folder, entry, answer)

    def compare(self, folder: Path, entry: Dict[str, Any], answer: Dict[str, Any]) -> None:
        if entry.get("raised"):
            self.assertIn("error", answer)
            self.assertIn("forward.input.0", answer["error"])
            return
        self.assertNotIn("error", answer)
        value = answer["args"][0]
        if "file" in entry:
            golden = np.load(folder / entry["file"])
            self.assertTrue(same(value, golden), f"{value} is not {golden}")
            return
        if isinstance(value, list):  # slice and torch.Size
            parts = entry["python"][entry["python"].index("("):].replace("[", "").replace("]", "")
            self.assertEqual(value, list(ast.literal_eval(parts)))
        elif value == "...":
            self.assertEqual(entry["python"], "Ellipsis")
        elif entry["info"]["type"] == "torch.dtype":
            self.assertEqual("torch." + value, ast.literal_eval(entry["python"]))
        else:
            self.assertEqual(value, ast.literal_eval(entry["python"]))


class Replay(unittest.TestCase):
    """Whole runs. What a run did besides drawing inputs is told here: calls that fell out before
    their inputs were drawn, and what dropout drew itself. Gradients are drawn where golden has one."""

    UNDRAWN = {"Distributed.all_reduce.0", "MindSpeed.rms_norm.0", "Tensor.to.0", "Torch.empty.0",
               "Torch.a.b.c.0"}

    def commands(self, folder: Path, golden: Dict[str, Any]) -> Iterator[str]:
        dump = json.loads((folder / "dump.json").read_text())
        done = set()  # by the run that this one goes on with
        for earlier in folder.glob("before/*result*.csv"):
            done |= {line.split(",")[0] for line in earlier.read_text(encoding="utf-8-sig").splitlines()}
        for key in dump["data"]:
            name, _, direction = key.rpartition(".")
            if direction != "forward" or name in self.UNDRAWN or name in done:
                continue
            yield f"forward {name}"
            if "dropout" in name:
                shape = dump["data"][key]["input_args"][0]["shape"]
                yield f"draw {2 * 2 * int(np.prod(shape))}"
            if golden.get(name, {}).get("bench_grad_in"):
                yield f"grad {name}"

    def leaves(self, mine: Any, golden: Any) -> Iterator[Tuple[np.ndarray, Dict[str, Any]]]:
        if isinstance(golden, dict) and "file" in golden:
            yield mine, golden
        elif isinstance(golden, dict):
            for key, value in golden.items():
                yield from self.leaves(mine[key], value)
        elif isinstance(golden, list):
            self.assertEqual(len(mine), len(golden))
            for one, other in zip(mine, golden):
                yield from self.leaves(one, other)

    def check(self, case: str, *words: str) -> None:
        for root in roots():
            folder = root / "precheck" / "e2e" / case
            if not (folder / "tensors").exists():
                continue
            golden = json.loads((folder / "tensors" / "tensors.json").read_text())
            commands = list(self.commands(folder, golden))
            checked = 0
            for command, answer in zip(commands, Tool(folder / "dump.json", *words).run(commands)):
                verb, name = command.split()
                if verb == "draw" or name not in golden:
                    continue
                self.assertNotIn("error", answer, name)
                if verb == "grad":
                    self.gradient(folder, name, answer["grad"], golden[name]["bench_grad_in"])
                    checked += 1
                    continue
                pairs = list(self.leaves(answer["args"], golden[name]["input_args"]))
                pairs += self.leaves(answer["kwargs"], golden[name]["input_kwargs"])
                for mine, info in pairs:
                    want = np.load(folder / "tensors" / info["file"])
                    self.assertTrue(same(mine, want), f"{case} {name} {info['file']}:\n{mine}\n{want}")
                    checked += 1
            self.assertGreater(checked, 20)

    def gradient(self, folder: Path, name: str, mine: np.ndarray, info: Dict[str, Any]) -> None:
        """The bench's gradient is the device's with its type raised."""
        want = np.load(folder / "tensors" / info["file"])
        if mine.dtype == np.uint16 and want.dtype == np.float32:
            mine = (mine.astype(np.uint32) << 16).view(np.float32)
        self.assertTrue(same(mine.astype(want.dtype), want), name)

    def test_random(self) -> None:
        self.check("random", "msprobe", "mt")

    def test_skips(self) -> None:
        self.check("skips", "msprobe", "mt")

    def test_resume(self) -> None:
        self.check("resume", "msprobe", "mt")

    def test_real(self) -> None:
        self.check("real", "msprobe", "mt", "real")


class Order(unittest.TestCase):
    """Without the origin's generator nothing depends on what came before."""

    def test_order(self) -> None:
        for root in roots():
            folder = root / "precheck" / "inputs"
            entries = json.loads((folder / "manifest.json").read_text())["entries"][:29]
            calls = [(f"Torch.{entry['api']}.{entry['i']}", [entry["info"], [entry["info"]]])
                     for entry in entries]
            commands = [f"forward {name}" for name, _ in calls]
            for words in (["seed=7"], ["normal"], ["adversarial"], ["msprobe"]):
                with tempfile.TemporaryDirectory() as scratch, self.subTest(words=words):
                    tool = Tool(write_dump(scratch, calls), *words)
                    forth = [self.bits(answer) for answer in tool.run(commands)]
                    back = [self.bits(answer) for answer in tool.run(commands[::-1])]
                    alone = [self.bits(tool.run([command])[0]) for command in commands[::5]]
                    self.assertEqual(forth, back[::-1])
                    self.assertEqual(forth[::5], alone)

    def bits(self, answer: Dict[str, Any]) -> Any:
        """Of an argument and the same one in a list, which must differ."""
        if "error" in answer:
            return answer["error"]
        outer, inner = answer["args"][0], answer["args"][1][0]
        if outer.dtype.kind == "f" and len(np.unique(outer)) > 4:
            self.assertNotEqual(outer.tobytes(), inner.tobytes())
        return outer.tobytes(), inner.tobytes()


if __name__ == "__main__":
    unittest.main()
