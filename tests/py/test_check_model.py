"""Dumps of real models, made here with PyTorch and checked on the cpu device.

Every API is run natively, or the result says why not; and no right result is called an error.
"""

import csv
import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, List, NamedTuple

import torch

sys.path.insert(0, str(Path(__file__).parent))
import module_zoo  # noqa: E402
from dump_model import Recorder  # noqa: E402
from ops.native import OWN, Call, CTensor, Native  # noqa: E402
from small_models import MODELS  # noqa: E402

BUILD = Path(os.environ["PLUMB_BUILD"])


class Row(NamedTuple):
    name: str
    forward: str
    backward: str
    message: str


def read(path: str) -> List[List[str]]:
    with open(path, newline="", encoding="utf-8-sig") as file:
        return list(csv.reader(file))[1:]


class Checked(NamedTuple):
    rows: List[Row]
    details: List[List[str]]

    def not_run(self) -> List[Row]:
        return [row for row in self.rows if row.forward == "SKIP"]

    def errors(self) -> List[str]:
        return [f"{row[0]}, {row[2]} {row[3]}: {row[-1]}" for row in self.details if row[-2] == "error"]


def dump_model(folder: Path, model: str, dtype: torch.dtype, task: str) -> Path:
    torch.manual_seed(1)
    step = MODELS[model](dtype)
    recorder = Recorder(folder / f"{model}_{dtype}_{task}".replace("torch.", ""), task)
    with recorder:
        step()
    return recorder.write()


def dump_zoo(folder: Path, task: str) -> Path:
    torch.manual_seed(1)
    recorder = Recorder(folder / f"zoo_{task}", task)
    calls = list(module_zoo.calls())
    with recorder:
        for _, function, inputs in calls:
            module_zoo.record(recorder, function, inputs)
    return recorder.write()


def in_another_type(dump: Path, dtype: str) -> Path:
    """The same calls with other floats; PyTorch cannot run all of them in small types on a CPU."""
    path = dump.parent / dtype / "dump.json"
    path.parent.mkdir()
    path.write_text(dump.read_text().replace('"torch.float32"', f'"torch.{dtype}"'))
    return path


class Folder(unittest.TestCase):
    maxDiff = None

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def check(self, dump: Path, *options: str) -> Checked:
        done = subprocess.run([str(BUILD / "plumb"), "acc_check", "--no-torch", "-api_info", str(dump), "-o",
                               tempfile.mkdtemp(dir=self.folder), "--quiet", *options],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        result, details = done.stdout.split()[:2]
        checked = Checked([Row(*(row + [""])[:4]) for row in read(result)], read(details))
        calls = [name.rpartition(".")[0] for name in json.loads(dump.read_text())["data"] if name.endswith("forward")]
        self.assertEqual([row.name for row in checked.rows], calls)
        bad = any("error" in (row.forward, row.backward) for row in checked.rows)
        self.assertEqual(done.returncode, 1 if bad else 0)
        for row in checked.rows:
            if "SKIP" in (row.forward, row.backward):
                self.assertTrue(row.message.strip(), row)
        return checked

    def assert_native(self, checked: Checked) -> None:
        skipped = checked.not_run()
        self.assertLessEqual(len(skipped), 0.05 * len(checked.rows), skipped)

    def assert_right(self, checked: Checked, rules: str) -> None:
        errors = checked.errors()
        if rules == "msprobe":  # to which equal infinities are no equals; PyTorch 2 fills masks of attention in place
            errors = [text for text in errors if not text.startswith(("Tensor.masked_fill.", "Tensor.masked_fill_."))]
        self.assertEqual(errors, [])


class Dumps(Folder):
    """The recorder writes what a real dump holds."""

    def test_entries(self) -> None:
        data = self.dumped("gpt")
        self.assertGreater(len(data), 100)
        for name in ("Functional.embedding.0", "Functional.layer_norm.4", "Functional.linear.8", "Tensor.split.1",
                     "Tensor.masked_fill.0", "Torch.matmul.3", "Functional.softmax.0", "Functional.dropout.5",
                     "Functional.gelu.1", "Tensor.__add__.4", "Functional.cross_entropy.0"):
            self.assertIn(f"{name}.forward", data)
            self.assertIn(f"{name}.backward", data)
        split = data["Tensor.split.0.forward"]
        self.assertEqual(split["input_args"][1:], [{"type": "int", "value": 32}])
        self.assertEqual(split["input_kwargs"], {"dim": {"type": "int", "value": 2}})
        self.assertEqual([out["shape"] for out in split["output"]], [[2, 12, 32]] * 3)
        self.assertEqual([grad["shape"] for grad in data["Tensor.split.0.backward"]["input"]], [[2, 12, 32]] * 3)
        mask = data["Torch.triu.0.forward"]["output"][0]
        self.assertEqual((mask["dtype"], mask["Max"], mask["Min"], mask["Mean"]), ("torch.bool", True, False, None))
        linear = data["Functional.linear.8.forward"]  # the head has no bias
        self.assertEqual((linear["input_args"][2], linear["input_args"][1]["requires_grad"]), (None, True))
        self.assertEqual(data["Functional.cross_entropy.0.forward"]["input_args"][1]["Min"], -100)

    def test_types_and_lists(self) -> None:
        data = self.dumped("rotary")
        self.assertEqual(data["Torch.softmax.0.forward"]["input_kwargs"]["dtype"],
                         {"type": "torch.dtype", "value": "torch.float32"})
        joined = data["Torch.cat.0.forward"]["input_args"][0]
        self.assertEqual([item["type"] for item in joined], ["torch.Tensor"] * 2)
        self.assertEqual(data["Torch.einsum.0.forward"]["input_args"][0], {"type": "str", "value": "bhqd,bhkd->bhqk"})

    def test_in_place_calls_show_what_they_got(self) -> None:
        data = self.dumped("resnet")
        relu = data["Functional.relu.0.forward"]
        self.assertEqual(relu["input_kwargs"], {"inplace": {"type": "bool", "value": True}})
        self.assertLess(relu["input_args"][0]["Min"], 0)
        self.assertEqual(relu["output"][0]["Min"], 0)
        added = data["Tensor.__iadd__.0.forward"]
        self.assertNotEqual(added["input_args"][0]["Norm"], added["output"][0]["Norm"])

    def test_gradients_are_autograds(self) -> None:
        data = self.dumped("resnet", "tensor")
        files = self.folder / "resnet_float32_tensor" / "dump_tensor_data"
        inputs, grads = [data[f"Functional.linear.0.{kind}"][key] for kind, key in
                         (("forward", "input_args"), ("backward", "output"))]
        x, weight = (torch.load(files / info["data_name"]) for info in inputs[:2])
        (gradient,) = (torch.load(files / info["data_name"]) for info in data["Functional.linear.0.backward"]["input"])
        dx, dw, db = (torch.load(files / info["data_name"]) for info in grads)
        torch.testing.assert_close(dx, gradient @ weight)
        torch.testing.assert_close(dw, gradient.t() @ x)
        torch.testing.assert_close(db, gradient.sum(0))

    def dumped(self, model: str, task: str = "statistics") -> Dict[str, Any]:
        return json.loads(dump_model(self.folder, model, torch.float32, task).read_text())["data"]


class Models(Folder):
    def each(self, dtype: torch.dtype, task: str) -> None:
        for model in MODELS:
            dump = dump_model(self.folder, model, dtype, task)
            for rules in ("documented", "msprobe"):
                with self.subTest(model=model, rules=rules):
                    checked = self.check(dump, "--rules", rules)
                    self.assert_native(checked)
                    self.assert_right(checked, rules)

    def test_float32_statistics(self) -> None:
        self.each(torch.float32, "statistics")

    def test_float32_tensor(self) -> None:
        self.each(torch.float32, "tensor")

    def test_bfloat16_statistics(self) -> None:
        self.each(torch.bfloat16, "statistics")

    def test_bfloat16_tensor(self) -> None:
        self.each(torch.bfloat16, "tensor")

    def test_other_inputs(self) -> None:
        for dtype in (torch.float32, torch.bfloat16):
            dump = dump_model(self.folder, "gpt", dtype, "statistics")
            for options in (["--seed", "7"], ["--inputs", "normal"], ["--inputs", "normal", "--seed", "8"],
                            ["--inputs", "adversarial"], ["--inputs", "adversarial", "--seed", "9"]):
                with self.subTest(dtype=dtype, options=options):
                    self.assertEqual(self.check(dump, *options).errors(), [])


class Zoo(Folder):
    """Modules of torch.nn and common functions, each once."""

    def check_zoo(self, dump: Path) -> None:
        for rules in ("documented", "msprobe"):
            with self.subTest(dump=str(dump), rules=rules):
                checked = self.check(dump, "--rules", rules)
                self.assert_native(checked)
                self.assert_right(checked, rules)
                if rules == "documented":  # whose random offsets ascend
                    self.assertNotIn("embedding_bag", [row.name.split(".")[1] for row in checked.not_run()])

    def test_statistics(self) -> None:
        dump = dump_zoo(self.folder, "statistics")
        self.check_zoo(dump)
        self.check_zoo(in_another_type(dump, "bfloat16"))

    def test_tensor(self) -> None:
        self.check_zoo(dump_zoo(self.folder, "tensor"))


class Truth(Folder):
    """What was recorded is what plumb computes from the recorded inputs: PyTorch is a second opinion."""

    native = Native()

    def value(self, info: Any) -> Any:
        if isinstance(info, list):
            return [self.value(item) for item in info]
        if info is None or "value" not in info and info.get("type") != "torch.Tensor":
            return None
        if info["type"] == "torch.Tensor":
            return torch.load(self.files / info["data_name"]).requires_grad_(info["requires_grad"])
        if info["type"] == "torch.dtype":
            return getattr(torch, info["value"].split(".")[1])
        if info["type"] == "ellipsis":
            return Ellipsis
        return slice(*info["value"]) if info["type"] == "slice" else info["value"]

    def compare(self, what: str, got: List[Any], want: List[Any]) -> None:
        for k, (mine, theirs) in enumerate(zip(got, want)):
            if theirs is None:
                continue
            if not isinstance(theirs, torch.Tensor):
                self.assertEqual(mine, theirs, f"{what}.{k}")
                continue
            self.assertEqual((mine.shape, mine.dtype), (theirs.shape, theirs.dtype), f"{what}.{k}")
            scale = theirs[theirs.isfinite()].abs().max().item() if theirs.is_floating_point() else 0
            self.assertTrue(torch.allclose(mine, theirs, rtol=1e-4, atol=1e-5 * scale, equal_nan=True),
                            f"{what}.{k}: {(mine.double() - theirs.double()).abs().max()} of {scale}")

    def run_call(self, name: str, forward: Dict[str, Any], backward: Any) -> None:
        prefix, api = name.split(".")[0], ".".join(name.split(".")[1:-1])
        call = Call(prefix, api, self.value(forward["input_args"]),
                    {key: self.value(item) for key, item in forward["input_kwargs"].items()})
        if backward:
            given = [self.value(info) for info in backward["input"]]
            grads = (ctypes.POINTER(CTensor) * len(given))()
            for k, grad in enumerate(given):
                if grad is not None:
                    grads[k] = ctypes.pointer(call.tensor(grad))
            call.c.grads, call.c.n_grads = grads, len(given)
        outputs, _, grads_out = self.native.run(call, OWN)
        self.compare(f"{name}.forward", outputs, self.value(forward["output"]))
        if backward:
            self.compare(f"{name}.backward", grads_out, self.value(backward["output"]))

    def check_truth(self, dump: Path, skipped: List[str]) -> None:
        self.files = dump.parent / "dump_tensor_data"
        data = json.loads(dump.read_text())["data"]
        for key, entry in data.items():
            name, _, direction = key.rpartition(".")
            if direction == "forward" and "dropout" not in name and name not in skipped:
                with self.subTest(name=name):
                    self.run_call(name, entry, data.get(f"{name}.backward"))

    def test_models(self) -> None:
        for model in MODELS:
            self.check_truth(dump_model(self.folder, model, torch.float32, "tensor"), [])

    def test_zoo(self) -> None:
        dump = dump_zoo(self.folder, "tensor")
        self.check_truth(dump, [row.name for row in self.check(dump).not_run()])


if __name__ == "__main__":
    unittest.main()
