"""Pages of tensors in reports of blame: which results have one, and all of it against numpy."""

import json
import sys
import unittest
from pathlib import Path
from typing import Any, Dict, List

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "tests" / "web")]

import numpy as np  # noqa: E402
from real_reports import Dump, numbers  # noqa: E402
from report_page import BAD, DOUBT, Page, plumb  # noqa: E402
import test_report  # noqa: E402
import test_report_tensors  # noqa: E402


class OfBlame(test_report.Case):
    def blamed(self, dump: Dump, *more: str, code: int = 1) -> Page:
        dump.write()
        done = plumb("blame", dump.folder.name, *more, "--report", "r.html", cwd=self.folder)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        page = Page(self.folder / "r.html")
        self.sound(page)
        return page

    def dump(self, name: str = "run") -> Dump:
        return Dump(self.folder / name)

    def test_against_numpy(self) -> None:
        # A product of two float32 is exact in float64: what is expected is its rounding.
        for shape in ((4, 6), (3, 70, 5), (5,), (2, 1, 3, 7)):
            a, b = numbers(*shape, seed=1), numbers(*shape, seed=2)
            expected = (a.astype(np.float64) * b).astype(np.float32)
            got = expected.copy()
            got.ravel()[2:5] *= np.float32(1.5)
            dump = self.dump(f"run{len(shape)}{shape[-1]}")
            dump.call("Torch.mul", [a, b], got, None, 77)
            page = self.blamed(dump)
            tensor, = page.data["tensors"]
            self.assertEqual((tensor["name"], tensor["mood"], tensor["row"]), ("Torch.mul.0.forward, output 0", BAD, 0))
            self.assertEqual((tensor["sides"], tensor["dtypes"]), (["got", "expected"], ["float32", "float32"]))
            self.assertEqual(tensor["shape"], list(shape))
            check = test_report_tensors.Tensors()
            error = test_report_tensors.difference(got, expected)
            check.values(page, tensor, got, expected)
            check.errors(page, tensor, got, expected, error)
            check.maps(page, tensor, error)
            check.profiles(page, tensor, error)
            check.worst(tensor, got, expected, error)
            check.window(page, tensor, got, expected)

    def test_what_is_said(self) -> None:
        x = numbers(8, 16, seed=3)
        dump = self.dump()
        dump.parents["Module.top.Top.forward.0"] = None
        dump.call("Torch.mul", [x, 3.0], x * np.float32(3), "Module.top.Top.forward.0")
        wrong = x * np.float32(3)
        wrong[-1] = 0
        dump.call("Torch.mul", [x, 3.0], wrong, "Module.top.Top.forward.0", 99)
        page = self.blamed(dump)
        found = json.loads(plumb("blame", "run", "--format", "json", cwd=self.folder).stdout)["faults"][0]
        tensor, = page.data["tensors"]
        facts = dict(tensor["facts"])
        self.assertEqual(facts["verdict"], "fault")
        self.assertEqual((facts["why"], facts["pattern"]), (found["why"], found["pattern"]))
        self.assertIn("row 7", facts["pattern"])
        self.assertEqual(facts["arguments"], "(8, 16):torch.float32, 3.0")
        self.assertEqual(facts["module"], "Module.top.Top.forward.0")
        self.assertIn("line 99", tensor["stack"][0])
        self.assertEqual(tensor["commands"], [found["replay"]])
        self.assertEqual(tensor["worst"][0]["target"], 0)
        # The command does what it says.
        words = tensor["commands"][0].split(" && ")
        self.assertEqual([plumb(*line.split()[1:], cwd=self.folder).returncode for line in words], [0, 1])

    def test_cheaper_arithmetic(self) -> None:
        x, w = numbers(32, 64, seed=5), numbers(48, 64, seed=6)
        tf32 = lambda t: ((t.view(np.uint32) + 0x1000) & 0xFFFFE000).view(np.float32).astype(np.float64)  # noqa: E731
        dump = self.dump()
        dump.call("Functional.linear", [x, w], (tf32(x) @ tf32(w).T).astype(np.float32), None)
        page = self.blamed(dump, code=0)
        tensor, = page.data["tensors"]
        self.assertEqual(tensor["mood"], DOUBT)
        facts = dict(tensor["facts"])
        self.assertEqual((facts["verdict"], facts["arithmetic"]), ("cheaper arithmetic", "inputs of 11 bits (TF32 or float16)"))

    def test_gradients(self) -> None:
        # Both gradients are wrong: two pages, and the row leads to the worse one.
        a, b, up = (numbers(4, 8, seed=seed) for seed in (1, 2, 3))
        dump = self.dump()
        dump.call("Torch.mul", [a, b], (a.astype(np.float64) * b).astype(np.float32), None)
        ga, gb = (up * b * np.float32(1.5)).astype(np.float32), (up * a * np.float32(4)).astype(np.float32)
        call = "Torch.mul.0.backward"
        for entry in dump.data["Torch.mul.0.forward"]["input_args"]:
            entry["requires_grad"] = True
        dump.data[call] = {"input": [dump.entry(up, f"{call}.input.0")],
                           "output": [dump.entry(ga, f"{call}.output.0"), dump.entry(gb, f"{call}.output.1")]}
        dump.parents[call], dump.lines[call] = None, 5
        page = self.blamed(dump)
        pages = page.data["tensors"]
        self.assertEqual([tensor["name"] for tensor in pages],
                         ["Torch.mul.0.backward, gradient 1", "Torch.mul.0.backward, gradient 0"])
        row = page.column("Call").index(call)
        self.assertEqual(page.array(page.data["tables"][0]["tensor"])[row], 0)
        self.assertEqual(page.column("Result")[row], "gradient 1")

    def test_right_ones_have_none(self) -> None:
        x = numbers(8, 8, seed=1)
        dump = self.dump()
        dump.call("Torch.mul", [x, 2.0], x * np.float32(2), None)
        page = self.blamed(dump, code=0)
        self.assertEqual(page.data["tensors"], [])

    def test_not_finite_and_other_shapes(self) -> None:
        x = numbers(4, 8, seed=1)
        dump = self.dump()
        y = x * np.float32(2)
        y[1, 3], y[2, 2] = np.nan, np.inf
        dump.call("Torch.mul", [x, 2.0], y, None)
        dump.call("Torch.mul", [x, 2.0], (x * np.float32(2))[:3], None)  # a page of what?
        dump.call("Torch.mul", [x, 2.0], np.full_like(x, np.nan), None)
        page = self.blamed(dump)
        self.assertEqual([tensor["name"] for tensor in page.data["tensors"]],
                         ["Torch.mul.0.forward, output 0", "Torch.mul.2.forward, output 0"])
        self.assertEqual(page.data["tensors"][0]["worst"][0]["target"], "NaN")
        self.assertEqual(len(page.data["tensors"][1]["worst"]), 20)
        self.assertEqual(page.column("Verdict"), ["fault"] * 3)
        self.assertIn("1 of 3 wrong or suspicious calls have no page of a tensor", page.data["notes"][0])

    def test_jump(self) -> None:
        # plumb has no such operator: what jumps is held against the other run.
        x = numbers(4, 8, seed=1)
        outputs: List[np.ndarray] = []
        for name, factor in (("run", 3), ("other", 2)):
            dump = self.dump(name)
            outputs.append(dump.call("NPU.npu_secret", [x], x * np.float32(factor), None, 31))
            dump.call("Torch.neg", [outputs[-1]], -outputs[-1], None)
            dump.write()
        done = plumb("blame", "run", "other", "--report", "r.html", cwd=self.folder)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        page = Page(self.folder / "r.html")
        self.sound(page)
        tensor, = page.data["tensors"]
        self.assertEqual((tensor["name"], tensor["sides"]), ("NPU.npu_secret.0.forward, output.0", ["target", "golden"]))
        self.assertEqual((tensor["mood"], tensor["commands"]), (BAD, []))
        error = test_report_tensors.difference(*outputs)
        self.assertEqual(tensor["worst"][0]["error"], error.max())
        self.assertIn("the other run", dict(tensor["facts"])["held against"])

    def test_at_most_200_and_the_worst(self) -> None:
        x = numbers(4, 4, seed=1)
        dump = self.dump()
        for k in range(230):
            y = x * np.float32(2)
            y[0, 0] *= np.float32(1 + (k + 1) / 100)
            dump.call("Torch.mul", [x, 2.0], y, None)
        page = self.blamed(dump)
        rows = [tensor["row"] for tensor in page.data["tensors"]]
        self.assertEqual(rows, list(range(30, 230)))
        self.assertTrue(page.data["notes"][0].startswith("30 of 230 wrong or suspicious calls have no page of a tensor"))

    def test_modules(self) -> None:
        # A capture of modules: computed too, and no capsule is made of one.
        page = self.page("blame", "examples/demo/target")
        faults = [row for row, verdict in enumerate(page.column("Verdict")) if verdict == "fault"]
        rows: Dict[int, Any] = {tensor["row"]: tensor for tensor in page.data["tensors"]}
        self.assertTrue(faults)
        self.assertLessEqual(set(faults), set(rows))
        for row in faults:
            self.assertEqual(rows[row]["commands"], [])
            self.assertEqual(rows[row]["sides"], ["got", "expected"])


if __name__ == "__main__":
    unittest.main()
