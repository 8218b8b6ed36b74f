"""acc_check -d recorded and --verdict, blame and capsule, on dumps that are written here: numpy stands
for the device."""

import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, List, Optional

import numpy as np

BUILD = Path(os.environ.get("PLUMB_BUILD", Path(__file__).resolve().parents[2] / "build"))
PLUMB = str(BUILD / "plumb")


def plumb(*words: Any, status: Optional[int] = None) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run([PLUMB, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, text=True)
    if status is not None and done.returncode != status:
        raise AssertionError(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done


class Dump:
    """A dump.json tree in the making."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "dump_tensor_data"
        self.data.mkdir(parents=True)
        self.entries: Dict[str, Any] = {}
        self.stacks: Dict[str, Any] = {}
        self.parents: Dict[str, Any] = {}

    def tensor(self, name: str, value: Any, values: bool = True) -> Any:
        if not isinstance(value, np.ndarray):
            return value if value is None else {"type": type(value).__name__, "value": value}
        entry = {"type": "torch.Tensor", "dtype": f"torch.{value.dtype}", "shape": list(value.shape),
                 "Max": float(value.max()), "Min": float(value.min()), "Mean": float(value.mean()),
                 "Norm": float(np.linalg.norm(value)), "requires_grad": value.dtype == np.float32}
        if values:
            np.save(self.data / f"{name}.npy", value)
            entry["data_name"] = f"{name}.npy"
        return entry

    def forward(self, call: str, inputs: List[Any], outputs: List[Any], parent: str = "",
                values: bool = True) -> None:
        name = f"{call}.forward"
        self.entries[name] = {
            "input_args": [self.tensor(f"{name}.input.{k}", x, values) for k, x in enumerate(inputs)],
            "input_kwargs": {},
            "output": [self.tensor(f"{name}.output.{k}", x, values) for k, x in enumerate(outputs)]}
        self.stacks[str(len(self.stacks))] = [[name], [f"File model.py, line {len(self.stacks) + 1}"]]
        if parent:
            self.parents[name] = parent

    def backward(self, call: str, inputs: List[Any], outputs: List[Any]) -> None:
        name = f"{call}.backward"
        self.entries[name] = {
            "input": [self.tensor(f"{name}.input.{k}", x) for k, x in enumerate(inputs)],
            "output": [self.tensor(f"{name}.output.{k}", x) for k, x in enumerate(outputs)]}

    def save(self) -> Path:
        path = self.folder / "dump.json"
        path.write_text(json.dumps({"task": "tensor", "level": "L1", "framework": "pytorch",
                                    "dump_data_dir": str(self.data), "data": self.entries}))
        (self.folder / "stack.json").write_text(json.dumps(self.stacks))
        (self.folder / "construct.json").write_text(json.dumps(self.parents))
        return path


def layer_norm(x: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    return ((x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)).astype(np.float32)


class Case(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.rng = np.random.default_rng(7)

    def numbers(self, *shape: int) -> np.ndarray:
        return self.rng.standard_normal(shape).astype(np.float32)

    def make(self, name: str, fault: float = 1.0, off: float = 0.0) -> Path:
        """linear, layer_norm, relu; the norm may be scaled, and the input may be off."""
        self.rng = np.random.default_rng(7)
        dump = Dump(self.folder / name)
        x, w, b = self.numbers(24, 32), self.numbers(48, 32), self.numbers(48)
        x += np.float32(off) * self.numbers(24, 32)
        y = x @ w.T + b
        z = layer_norm(y) * np.float32(fault)
        g = self.numbers(24, 48)
        dump.forward("Functional.linear.0", [x, w, b], [y], "Module.body.Block.forward.0")
        dump.forward("Functional.layer_norm.0", [y, [48], None, None, 1e-5], [z],
                     "Module.body.Block.forward.0")
        dump.forward("Functional.relu.0", [z], [np.maximum(z, 0)])
        dump.forward("Functional.gumbel_softmax.0", [z, 0.5], [z])
        dump.forward("Torch.frobnicate.0", [z], [z])
        dump.backward("Functional.relu.0", [g], [np.where(z > 0, g, 0)])
        dump.backward("Functional.linear.0", [g], [g @ w, g.T @ x, g.sum(0)])
        path = dump.save()
        entries = json.loads(path.read_text())
        for entry in entries["data"].values():  # a list of ints is written as captures do
            for k, value in enumerate(entry.get("input_args", [])):
                if isinstance(value, dict) and value.get("type") == "list":
                    entry["input_args"][k] = [{"type": "int", "value": n} for n in value["value"]]
        path.write_text(json.dumps(entries))
        return path

    def table(self, folder: Path, kind: str) -> List[Dict[str, str]]:
        path, = folder.glob(f"accuracy_checking_{kind}_*.csv")
        with open(path, newline="") as file:
            return list(csv.DictReader(file))


class Recorded(Case):
    def check(self, dump: Path, *words: Any, status: int) -> List[Dict[str, str]]:
        out = self.folder / f"out{len(list(self.folder.iterdir()))}"
        self.said = plumb("acc_check", dump, "--no-torch", "-o", out, *words, status=status).stdout
        self.details = self.table(out, "details")
        return self.table(out, "result")

    def test_right(self) -> None:
        rows = self.check(self.make("right"), "-d", "recorded", status=0)
        verdicts = {row["API name"]: row["Verdict"] for row in rows}
        self.assertEqual(verdicts, {"Functional.linear.0": "rounding", "Functional.layer_norm.0": "same",
                                    "Functional.relu.0": "same", "Functional.gumbel_softmax.0": "not judged",
                                    "Torch.frobnicate.0": "not judged"})
        self.assertIn("second opinion: 2 same, 1 rounding, 0 fault, 2 not judged", self.said)
        self.assertEqual({row["Judged by"] for row in self.details}, {"expected 2; seed 1234"})

    def test_fault(self) -> None:
        rows = self.check(self.make("bad", fault=1.001), "-d", "recorded", status=1)
        row, = (row for row in rows if row["Verdict"] == "fault")
        self.assertEqual(row["API name"], "Functional.layer_norm.0")
        self.assertIn("scaled by 1.001", row["Why"])
        self.assertIn("Functional.layer_norm.0", self.said)
        self.assertIn("fault: ", self.said)

    def test_dropout(self) -> None:
        """Values, gradient and mask of a recorded dropout are judged."""
        x, g = self.numbers(64, 48), self.numbers(64, 48)
        keep = (np.random.RandomState(3).rand(64, 48) >= 0.5).astype(np.float32)
        holes = keep.copy()
        holes[:8] = 0
        for name, out, grad, word in (("right", keep, keep, "same"), ("holes", holes, holes, "fault"),
                                      ("other", keep, 1 - keep, "fault")):
            dump = Dump(self.folder / name)
            dump.forward("Functional.dropout.0", [x, 0.5], [x * out * 2])
            dump.backward("Functional.dropout.0", [g], [g * grad * 2])
            row, = self.check(dump.save(), "-d", "recorded", status=word == "fault")
            self.assertEqual(row["Verdict"], word, f"{name}: {row['Why']}")

    def test_wrong_gradient(self) -> None:
        path = self.make("grad")
        name = path.parent / "dump_tensor_data" / "Functional.linear.0.backward.output.1.npy"
        np.save(name, np.load(name) * np.float32(1.01))
        rows = self.check(path, "-d", "recorded", status=1)
        self.assertEqual([row["API name"] for row in rows if row["Verdict"] == "fault"],
                         ["Functional.linear.0"])
        row, = (row for row in self.details if row["Verdict"] == "fault")
        self.assertEqual(row["API name"], "Functional.linear.0.backward.output.1")

    def test_what_decides(self) -> None:
        path = self.make("bad", fault=1.001)
        self.assertNotIn("Verdict", self.check(path, "-d", "recorded", "--verdict", "rules", status=1)[0])
        right = self.make("right")
        self.check(right, "-d", "recorded", "--verdict", "rules", status=0)
        self.check(right, "-d", "recorded", "--verdict", "expected", status=0)
        self.check(path, "-d", "recorded", "--verdict", "both", status=1)
        self.assertIn("Verdict", self.check(path, "--verdict", "expected", status=0)[0])

    def test_not_recorded(self) -> None:
        """A file that is gone costs its call, and no result is invented."""
        path = self.make("gone")
        data = path.parent / "dump_tensor_data"
        (data / "Functional.linear.0.forward.input.1.npy").unlink()
        (data / "Functional.layer_norm.0.forward.output.0.npy").unlink()
        rows = {row["API name"]: row for row in self.check(path, "-d", "recorded", status=0)}
        self.assertEqual(rows["Functional.linear.0"]["Verdict"], "not judged")
        self.assertEqual(rows["Functional.linear.0"]["Forward Test Success"], "SKIP")
        self.assertEqual(rows["Functional.layer_norm.0"]["Verdict"], "not judged")
        self.assertEqual(rows["Functional.layer_norm.0"]["Forward Test Success"], "SKIP")  # no pass unseen
        self.assertIn("layer_norm.0.forward.output.0.npy", rows["Functional.layer_norm.0"]["Why"])

    def test_statistics_only(self) -> None:
        dump = Dump(self.folder / "statistics")
        dump.forward("Functional.relu.0", [self.numbers(4)], [self.numbers(4)], values=False)
        row, = self.check(dump.save(), "-d", "recorded", status=0)
        self.assertEqual((row["Verdict"], row["Forward Test Success"]), ("not judged", "SKIP"))
        self.assertIn("not recorded", row["Why"])

    def test_resume(self) -> None:
        path, out = self.make("right"), self.folder / "out"
        plumb("acc_check", path, "--no-torch", "-d", "recorded", "-o", out, status=0)
        result, = out.glob("*result*")
        whole = result.read_text()
        result.write_text("".join(whole.splitlines(keepends=True)[:3]))
        for words in (["--seed", "7"], ["--arithmetic", "tf32"]):
            done = plumb("acc_check", path, "--no-torch", "-d", "recorded", "-csv_path", result, *words)
            self.assertEqual(done.returncode, 2)
            self.assertIn("judged by", done.stderr)
        done = plumb("acc_check", path, "--no-torch", "-csv_path", result)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--verdict", done.stderr)
        done = plumb("acc_check", path, "--no-torch", "-d", "recorded", "-csv_path", result, status=0)
        self.assertIn("second opinion: 2 same, 1 rounding, 0 fault, 2 not judged", done.stdout)
        self.assertEqual(result.read_text(), whole)

    def test_threads(self) -> None:
        path = self.make("bad", fault=1.001)
        texts = set()
        for threads in (1, 2, 5):
            out = self.folder / f"t{threads}"
            plumb("acc_check", path, "--no-torch", "-d", "recorded", "-o", out, "--threads", threads, status=1)
            texts.add(next(out.glob("*details*")).read_text())
        self.assertEqual(len(texts), 1)

    def test_wrong_options(self) -> None:
        path = self.make("right")
        for words in (["-d", "recorded", "cpu"], ["--arithmetic", "tf32"],
                      ["--verdict", "expected", "--arithmetic", "nonsense"],
                      ["--verdict", "both", "--rules", "msprobe"]):
            self.assertEqual(plumb("acc_check", path, "-o", self.folder / "o", *words).returncode, 2, words)


class Blame(Case):
    def blame(self, *words: Any, status: int) -> Dict[str, Any]:
        found: Dict[str, Any] = json.loads(plumb("blame", *words, "--format", "json", status=status).stdout)
        return found

    def test_alone(self) -> None:
        found = self.blame(self.make("right").parent, status=0)
        self.assertEqual(found["faults"], [])
        self.assertEqual(found["calls"], 7)
        self.assertEqual(found["verdicts"]["not judged"], 2)
        self.assertEqual({row["what"] for row in found["not_judged"]},
                         {"the results are random", "plumb has no operator frobnicate"})
        found = self.blame(self.make("bad", fault=1.001).parent, status=1)
        fault, = found["faults"]
        self.assertEqual((fault["call"], fault["result"], fault["parent"]),
                         ("Functional.layer_norm.0.forward", "output 0", "Module.body.Block.forward.0"))
        self.assertEqual(fault["stack"], ["File model.py, line 2"])

    def test_inherited(self) -> None:
        """What came in was off: nobody here is to blame, however large the difference."""
        right, off = self.make("right").parent, self.make("off", off=0.1).parent
        found = self.blame(off, right, status=0)
        self.assertEqual(found["faults"], [])
        self.assertGreaterEqual(found["verdicts"]["inherited"], 3)
        self.assertGreater(found["largest"]["outputs_apart"], 0.01)
        fault, = self.blame(self.make("both", off=0.1, fault=1.01).parent, right, status=1)["faults"]
        self.assertEqual(fault["call"], "Functional.layer_norm.0.forward")

    def modules(self, name: str, values: bool = True, fault: float = 1.0) -> Path:
        """Modules that plumb cannot compute."""
        self.rng = np.random.default_rng(3)
        dump = Dump(self.folder / name)
        x = self.numbers(16, 32)
        for k in range(6):
            y = np.tanh(x) * np.float32(1 + 1e-7 * (name != "golden"))
            if k == 3:
                y = y * np.float32(fault)
            # what is written is "Module.a.Block.forward.0", and its fields are those of calls
            entry = f"Module.layer{k}.Block"
            dump.forward(entry, [x], [y], values=values)
            dump.entries[f"{entry}.forward.0"] = dump.entries.pop(f"{entry}.forward")
            x = y
        return dump.save().parent

    def test_modules_by_their_jump(self) -> None:
        for values in (True, False):
            golden = self.modules("golden", values)
            self.assertEqual(self.blame(self.modules("right", values), golden, status=0)["by_jump"], 6)
            found = self.blame(self.modules("bad", values, fault=1.02), golden, status=1)
            fault, = found["faults"]
            self.assertEqual((fault["call"], fault["by_jump"]), ("Module.layer3.Block.forward.0", True))
            alone = self.blame(self.modules("alone", values), status=2)  # nothing could be judged
            self.assertEqual(alone["verdicts"]["not judged"], 6)
            shutil.rmtree(self.folder)
            self.folder.mkdir()

    def test_text(self) -> None:
        text = plumb("blame", self.make("bad", fault=1.001).parent, status=1).stdout
        self.assertEqual(text.splitlines()[0].split(":")[0], "7 calls (forward and backward apart)")
        self.assertIn("not judged: 1: plumb has no operator frobnicate; 1: the results are random", text)
        self.assertIn("1. Functional.layer_norm.0.forward, output 0", text)
        self.assertIn("plumb capsule ", text)
        text = plumb("blame", self.make("right").parent, status=0).stdout
        self.assertIn("No call that was judged does worse than rounding.", text)

    def test_steps_and_ranks(self) -> None:
        for step in (0, 1):
            for rank in (0, 1):
                path = self.make("one", fault=1.01 if (step, rank) == (1, 0) else 1.0)
                where = self.folder / "run" / f"step{step}" / f"rank{rank}"
                where.parent.mkdir(parents=True, exist_ok=True)
                shutil.move(str(path.parent), where)
        found = self.blame(self.folder / "run", status=1)
        fault, = found["faults"]
        self.assertEqual((fault["step"], fault["rank"], found["calls"]), (1, 0, 28))

    def test_memory(self) -> None:
        """What does not fit is not judged, and says why; the rest is."""
        dump = Dump(self.folder / "large")
        x = self.numbers(300, 300)
        dump.forward("Functional.relu.0", [x], [np.maximum(x, 0)])
        dump.forward("Functional.relu.1", [x[0]], [np.maximum(x[0], 0)])
        dump.save()
        self.assertEqual(self.blame(dump.folder, status=0)["verdicts"]["same"], 2)
        found = self.blame(dump.folder, "--memory", "4M", status=0)
        self.assertEqual((found["verdicts"]["same"], found["verdicts"]["not judged"]), (1, 1))
        self.assertIn("more memory than calls may take", found["not_judged"][0]["what"])

    def test_unusable(self) -> None:
        for words in (["nothing/there"], [self.make("right"), "nothing/there"],
                      [self.folder / "right", "--memory", "much"], [self.folder / "right", "--arithmetic", "x"]):
            self.assertEqual(plumb("blame", *words).returncode, 2, words)
        np.save(self.folder / "plain.npy", np.zeros(3))
        done = plumb("blame", self.folder / "plain.npy")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no calls", done.stderr)

    def test_damaged_dump(self) -> None:
        """A payload of another shape, and one that is cut, cost their calls."""
        path = self.make("damaged")
        data = path.parent / "dump_tensor_data"
        np.save(data / "Functional.relu.0.forward.input.0.npy", np.zeros((2, 2), np.float32))
        (data / "Functional.linear.0.forward.input.0.npy").write_bytes(b"\x93NUMPY\x01\x00")
        found = self.blame(path, status=0)
        self.assertEqual(found["verdicts"]["not judged"], 6)

    def test_a_dump_that_is_cut_off(self) -> None:
        """What could be read of it is counted, with the reason, and never called right."""
        path = self.make("cut")
        text = path.read_text()
        path.write_text(text[:len(text) // 2])
        done = plumb("blame", path, "--format", "json")
        self.assertEqual(done.returncode, 2)
        if done.stdout:
            found = json.loads(done.stdout)
            self.assertEqual(found["calls"], found["verdicts"]["not judged"])
            self.assertTrue(all("dump.json" in row["what"] for row in found["not_judged"]))

    def test_nothing_but_nan(self) -> None:
        dump = Dump(self.folder / "nan")
        x = np.full((4, 8), np.nan, np.float32)
        dump.forward("Functional.relu.0", [x], [x])
        found = self.blame(dump.save(), status=2)
        self.assertIn("no finite number", found["not_judged"][0]["what"])

    def test_hostile_names(self) -> None:
        dump = Dump(self.folder / "hostile")
        x = self.numbers(4, 4)
        for k in range(3):
            dump.forward(f"Functional.relu.{k}", [x], [x], parent="Module.\x1b[31mred'; rm -rf x.forward.0")
        target = dump.save().parent
        shutil.move(str(target), self.folder / "it's here")
        text = plumb("blame", self.folder / "it's here", status=1).stdout
        self.assertNotIn("\x1b", text)
        self.assertIn("it'\\''s here'", text)


class Python(Case):
    """plumb.blame and assert_close(standard="expected")."""

    def setUp(self) -> None:
        super().setUp()
        sys.path.insert(0, str(BUILD / "python"))
        self.addCleanup(sys.path.remove, str(BUILD / "python"))
        import plumb as package
        self.package = package

    def test_blame(self) -> None:
        right = self.make("right").parent
        found = self.package.blame(right)
        self.assertTrue(found)
        self.assertEqual((found["calls"], found.faults), (7, []))
        found = self.package.blame(self.make("bad", fault=1.001).parent, right, threads=1)
        self.assertFalse(found)
        self.assertEqual(found.faults[0]["call"], "Functional.layer_norm.0.forward")
        self.assertIn("1 fault:", str(found))
        with self.assertRaises(self.package.Error):
            self.package.blame(self.folder / "none")
        with self.assertRaises(self.package.Error):
            self.package.blame(right, arithmetic="nonsense")

    def test_assert_close(self) -> None:
        close = self.package.assert_close
        x, w = self.numbers(32, 64), self.numbers(64, 48)
        y = x @ w
        close(y, None, standard="expected", op="mm", inputs=(x, w))
        close(y, (x.astype(np.float64) @ w).astype(np.float32), standard="expected", op="mm", inputs=[x, w])
        with self.assertRaisesRegex(AssertionError, "scaled by 1.01"):
            close(y * np.float32(1.01), None, standard="expected", op="mm", inputs=(x, w))
        with self.assertRaisesRegex(AssertionError, "the expected result: .*fault"):
            close(y, y * np.float32(1.01), standard="expected", op="mm", inputs=(x, w))
        with self.assertRaisesRegex(AssertionError, "random"):
            close(y, None, standard="expected", op="rand_like", inputs=(x,))
        for wrong in (dict(inputs=(x, w)), dict(op="mm", inputs=(x, w), rtol=1e-3)):
            with self.assertRaises(TypeError):
                close(y, None, standard="expected", **wrong)


class Capsule(Case):
    def test_taken_out(self) -> None:
        path = self.make("bad", fault=1.001)
        out = self.folder / "capsule"
        done = plumb("capsule", path.parent, "Functional.layer_norm.0", "-o", out, status=0)
        self.assertEqual(done.stdout, f"{out}/dump.json\n")
        shutil.rmtree(path.parent)
        said = json.loads((out / "capsule.json").read_text())
        self.assertEqual((said["call"], said["forward"]["verdict"]), ("Functional.layer_norm.0", "fault"))
        done = plumb("acc_check", out / "dump.json", "-d", "recorded", "-o", self.folder / "o", status=1)
        self.assertIn("scaled by 1.001", done.stdout)
        plumb("acc_check", out / "dump.json", "--verdict", "both", "-o", self.folder / "o", status=0)
        found = json.loads(plumb("blame", out, "--format", "json", status=1).stdout)
        self.assertEqual(found["faults"][0]["stack"], ["File model.py, line 2"])

    def test_with_its_backward(self) -> None:
        out = self.folder / "capsule"
        plumb("capsule", self.make("right"), "Functional.linear.0.backward", "-o", out, status=0)
        found = json.loads(plumb("blame", out, "--format", "json", status=0).stdout)
        self.assertEqual((found["calls"], found["verdicts"]["rounding"]), (2, 2))

    def test_refused(self) -> None:
        path = self.make("right")
        (self.folder / "there").mkdir()
        for call, folder in (("Functional.linear.1", "a"), ("Functional.linear.0", "there"), ("", "b")):
            self.assertEqual(plumb("capsule", path, call, "-o", self.folder / folder).returncode, 2)
        entries = json.loads(path.read_text())
        entries["data"]["Functional.relu.0.forward"]["input_args"][0]["data_name"] = "../../secret.npy"
        path.write_text(json.dumps(entries))
        done = plumb("capsule", path, "Functional.relu.0", "-o", self.folder / "c")
        self.assertEqual(done.returncode, 2)
        self.assertIn("leads out", done.stderr)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["right", "there"])  # nothing half-made

    def test_full_or_closed_folder(self) -> None:
        path = self.make("right")
        for folder in (self.folder / "none" / "deep", "/proc/capsule"):
            done = plumb("capsule", path, "Functional.linear.0", "-o", folder)
            self.assertEqual(done.returncode, 2)
            self.assertIn("cannot make the folder", done.stderr)


if __name__ == "__main__":
    unittest.main()
