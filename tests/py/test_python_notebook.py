"""plumb.compare, plumb.summary and plumb.assert_close as a person calls them."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from dataclasses import dataclass
from pathlib import Path
from typing import Any, List

BUILD = Path(os.environ.get("PLUMB_BUILD", Path(__file__).resolve().parents[2] / "build"))
sys.path.insert(0, str(BUILD / "python"))

import numpy as np
import torch

import plumb

NAN, INF = float("nan"), float("inf")


class Case(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        torch.manual_seed(1)
        self.x = torch.randn(64, 32)


class TestAssertClose(Case):
    def message(self, actual: Any, expected: Any, **settings: Any) -> str:
        with self.assertRaises(AssertionError) as caught:
            plumb.assert_close(actual, expected, **settings)
        return str(caught.exception)

    def test_passes(self) -> None:
        x = self.x
        for actual, expected in (
                (x, x.clone()), (x, x.numpy()), (x.double(), x), (x.t(), x.numpy().T), (x * 0, 0),
                (x * 0, 0.0),
                (1, 1), (0.1 + 0.2, 0.3), (True, True), ([1, 2], [1, 2]),
                ([[1.0], [2.0]], torch.tensor([[1], [2]])),
                ({"a": x, "b": [x, None]}, {"a": x, "b": [x, None]}), ((x, 3), [x, 3]),
                (np.float32(1), 1.0),
                (torch.zeros(0), torch.zeros(0)), ({}, {}), ([], []), (2j, 2j), (10**30, 10**30),
                (x + 1e-7, x), (x.half(), x.half() * (1 + 2**-11)), (torch.tensor(INF), INF),
                (torch.tensor([1, -INF]), torch.tensor([1, -INF]))):
            plumb.assert_close(actual, expected)
        plumb.assert_close(x * 1.5, x, rtol=0.6)
        plumb.assert_close(x + 0.5, x, atol=0.6)
        plumb.assert_close(torch.tensor([1, NAN]), torch.tensor([1, NAN]), equal_nan=True)
        plumb.assert_close(x + 0.005, x, standard="xray")
        plumb.assert_close(x + 0.5, x, standard="xray", max_abs=0.7)
        plumb.assert_close(torch.tensor([5, 9]), torch.tensor([5, 8]), atol=1)

    def test_says_which_element(self) -> None:
        y = self.x.clone()
        y[3, 4] += 0.25
        y[40, 31] -= 2
        text = self.message({"layer": {"weight": y}}, {"layer": {"weight": self.x}})
        self.assertIn("layer.weight: 2 of 2048 elements (0.0977%) differ", text)
        self.assertIn("atol 1e-05 + rtol 1.3e-06 * |expected|", text)
        self.assertIn("actual:   float32 [64, 32]", text)
        self.assertIn(f"first at [3, 4]: actual {y[3, 4].item():.9g}, "
                      f"expected {self.x[3, 4].item():.9g}", text)
        self.assertIn("worst at [40, 31]: ", text)
        self.assertIn("difference 2 (", text)
        text = self.message(torch.tensor([1.0, 2.0, 3.0]),
                            torch.tensor([1.0, 2.0, 3.0 + 3 * 2**-16]), rtol=1e-6)
        self.assertIn("(192 ULP of float32)", text)

    def test_ulps_are_of_the_coarser_type(self) -> None:
        exact = torch.tensor([1.0, 3.0], dtype=torch.float64)
        for dtype, ulp in ((torch.float32, 2.0**-22), (torch.float16, 2.0**-9),
                           (torch.bfloat16, 2.0**-6)):
            other = exact.clone()
            other[1] += 4 * ulp
            unit = str(dtype)[len("torch."):]
            for actual, expected in ((other.to(dtype), exact), (exact, other.to(dtype))):
                text = self.message(actual, expected, rtol=0, atol=0)
                self.assertIn(f"(4 ULP of {unit})", text)
        text = self.message(torch.tensor([3.0 + 2.0**-20]), [3.0], rtol=0, atol=0)
        self.assertIn("(4 ULP of float32)", text)

    def test_first_line(self) -> None:
        """All that a summary of pytest shows."""
        x = self.x
        for actual, expected, start in (
                (x + 1, x, "the tensors differ: 2048 of 2048 elements (100%) differ by more than"),
                ({"w": x + 1}, {"w": x}, "w: 2048 of 2048 elements"),
                (x, x[0], "shapes differ: [64, 32] against [32]")):
            self.assertEqual(self.message(actual, expected)[:len(start)], start)
        np.savez(self.folder / "a.npz", x=np.ones(4))
        text = self.message(self.folder / "a.npz", {"x": np.zeros(4)})
        self.assertRegex(text.splitlines()[0], "1 compared: 0 pass, 1 fail; .*first failure: x")

    def test_pytest_shows_the_callers_line(self) -> None:
        (self.folder / "test_it.py").write_text(
            "import plumb\n\ndef test_it():\n    plumb.assert_close(1.0, 2.0)  # here\n")
        done = subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider",
                               str(self.folder / "test_it.py")], text=True, stdout=subprocess.PIPE,
                              env={**os.environ, "PYTHONPATH": str(BUILD / "python"),
                                   "COLUMNS": "200"})
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn(">       plumb.assert_close(1.0, 2.0)  # here", done.stdout)
        self.assertNotIn("notebook.py", done.stdout)
        self.assertRegex(done.stdout, "FAILED .*test_it - AssertionError: the tensors differ: 1 of")

    def test_other_standards(self) -> None:
        text = self.message(self.x + 1, self.x, standard="xray")
        self.assertIn("max_abs 1", text)
        self.assertIn("> 0.01", text)

    def test_hints(self) -> None:
        x = self.x
        y = x.clone()
        y[5, 6] = NAN
        z = x.clone()
        z[0, 0] = INF
        for actual, expected, hint in (
                (x * 1.01, x, "actual is 1.01 times expected"),
                (x + 0.5, x, "the same everywhere: 0.5"),
                (-x, x, "the sign is the other way round"), (x * 0, x, "actual is zero everywhere"),
                (x.half().float(), x, "looks like float16 rounding"),
                (x.bfloat16().float(), x, "looks like bfloat16 rounding"),
                (x * 2.0**-9 * torch.rand(64, 32) + x, x, "no relative error is above 2^-8"),
                (x.bfloat16().softmax(1).float(), x.double().softmax(1),
                 "bfloat16 holds every value of actual exactly"),
                (x.half().double(), x.double(), "was it computed in float16 or TF32?"),
                (y, x, "NaN only in actual, 1 of 2048"),
                (x, y, "NaN only in expected"), (y, y, "equal_nan=True"),
                (z, x, "+inf only in actual"),
                (x.t(), x, "transposed?"), (x[:1], x[0], "except for dimensions of size 1"),
                (x.reshape(32, 64, 1, 1)[..., 0], x.reshape(-1), "reshape one side")):
            with self.subTest(hint=hint):
                self.assertIn(hint, self.message(actual, expected))
        self.assertNotIn("hint", self.message(x + torch.randn(64, 32), x))

    def test_types_are_told(self) -> None:
        text = self.message(self.x.double() * 2, self.x)
        self.assertIn("actual:   float64", text)
        self.assertIn("expected: float32", text)

    def test_integers_are_exact(self) -> None:
        text = self.message(torch.tensor([1, 2, 2**62 + 1]), torch.tensor([1, 2, 2**62]))
        self.assertIn("1 of 3 elements (33.3%) differs; these types must be equal", text)
        self.assertIn("at [2]: actual 4611686018427387905, expected 4611686018427387904, "
                      "difference 1", text)
        self.assertIn("actual True, expected False", self.message(True, False))

    def test_complex(self) -> None:
        text = self.message(torch.tensor([1j, 2j]), torch.tensor([1j, 3 + 2j]))
        self.assertIn("1 of 4 parts", text)
        self.assertIn("first at [1]: actual 2j, expected (3+2j), difference 3", text)

    def test_structure(self) -> None:
        x = self.x
        self.assertIn("there is no 'a' on the expected side",
                      self.message({"a": x, "b": x}, {"b": x}))
        self.assertIn("there is no '1' on the actual side", self.message([x], [x, x]))
        self.assertIn("values differ: 'p' against 'q'", self.message([x, "p"], [x, "q"]))
        self.assertIn("meta device", self.message(torch.zeros(2, device="meta"), torch.zeros(2)))
        self.assertIn("values differ", self.message(x, None))
        many = {str(i): x + i for i in range(1, 7)}
        self.assertIn("and 3 more of 6", self.message(many, {str(i): x for i in range(1, 7)}))
        loop: List[Any] = [x]
        loop.append(loop)
        plumb.assert_close(loop, loop)

    def test_names_that_are_the_same_and_empty_containers(self) -> None:
        one, other = self.x, self.x + 1
        plumb.assert_close({1: one, "1": other}, {"1": other, 1: one})
        plumb.assert_close({"a.b": one, "a": {"b": other}}, {"a.b": one, "a": {"b": other}})
        plumb.assert_close({"a": [], "b": one}, {"b": one, "a": ()})
        for actual, expected in (({1: one, "1": other}, {1: other, "1": one}),
                                 ({"a.b": one, "a": {"b": other}}, {"a.b": one}),
                                 ({"a.b": one}, {"a.b": one, "a": {"b": other}}),
                                 ({"a": [], "b": one}, {"b": one}), ({"b": one}, {"a": {}, "b": one})):
            with self.assertRaises(AssertionError):
                plumb.assert_close(actual, expected)
            self.assertFalse(plumb.compare(actual, expected))

    def test_data_classes_and_paths(self) -> None:
        @dataclass
        class Out:
            logits: Any
            loss: Any

        plumb.assert_close(Out(self.x, 1.0), Out(self.x, 1.0))
        self.assertIn("loss: ", self.message(Out(self.x, 1.0), Out(self.x, 2.0)))
        np.savez(self.folder / "a.npz", x=np.ones(4), y=np.zeros(3))
        plumb.assert_close(self.folder / "a.npz", str(self.folder / "a.npz"))
        plumb.assert_close(self.folder / "a.npz", {"x": np.ones(4), "y": np.zeros(3)})
        text = self.message(self.folder / "a.npz", {"x": np.ones(4), "y": np.ones(3)})
        self.assertIn("first failure: y", text)

    def test_wrong_use(self) -> None:
        with self.assertRaisesRegex(plumb.Error, "nearest name is 'rtol'"):
            plumb.assert_close(self.x, self.x, rtl=1)
        with self.assertRaisesRegex(plumb.Error, "no standard 'none'"):
            plumb.assert_close(self.x, self.x, standard="none")
        with self.assertRaises(plumb.Error):
            plumb.assert_close(self.folder / "missing.npz", self.x)
        with self.assertRaises(ValueError):
            plumb.assert_close(self.x, self.x, rtol="much")


class TestCompare(Case):
    def test_report(self) -> None:
        report = plumb.compare({"a": self.x, "b": self.x * 2, "c": 1},
                               {"a": self.x, "b": self.x, "d": 1})
        self.assertFalse(report)
        self.assertEqual(report.counts,
                         {"compared": 2, "passed": 1, "suspicious": 0, "failed": 1, "unjudged": 0,
                          "unmatched": 2, "unreadable": 0})
        rows = list(report)
        self.assertEqual([row["Name"] for row in rows], ["a", "b", "c", "d"])
        self.assertEqual([row["Result"] for row in rows],
                         ["PASS", "FAIL", "UNMATCHED", "UNMATCHED"])
        self.assertEqual(report[1]["MaxAbsErr"], self.x.abs().max().item())
        self.assertEqual(len(report), 4)
        text = str(report)
        self.assertIn("| b    | FAIL", text)
        self.assertIn("2 compared: 1 pass, 1 fail; 2 unmatched; first failure: b (not_close ", text)
        self.assertEqual(repr(report), text)
        self.assertTrue(plumb.compare(self.x, self.x))
        self.assertTrue(plumb.compare({}, {}))

    def test_html_is_escaped(self) -> None:
        html = plumb.compare({"<b>": self.x + 1}, {"<b>": self.x})._repr_html_()
        self.assertIn("&lt;b&gt;", html)
        self.assertNotIn("<b>", html)
        self.assertIn("background", html)

    def test_standards_and_settings(self) -> None:
        self.assertFalse(plumb.compare(self.x + 0.1, self.x, "xray"))
        self.assertTrue(plumb.compare(self.x + 0.1, self.x, "xray", max_abs=0.2))
        report = plumb.compare(self.x + torch.randn(64, 32) * 2e-3, self.x, "torchair", max_rel=1e9)
        self.assertEqual((report[0]["Result"], bool(report)), ("PASS", True))

    def test_types_and_errors_are_told(self) -> None:
        [row] = plumb.compare(self.x.double(), self.x)
        self.assertEqual((row["Dtype"], row["Result"]), ("float64 / float32", "PASS"))
        self.assertIn("dtypes differ", row["Reason"])
        report = plumb.compare([torch.zeros(2, device="meta"), self.x], [self.x, self.x])
        self.assertEqual((report.counts["unreadable"], report.counts["passed"]), (1, 1))
        self.assertFalse(report)

    def test_files(self) -> None:
        np.savez(self.folder / "a.npz", x=np.ones(4), y=np.zeros(3))
        np.savez(self.folder / "b.npz", x=np.ones(4), y=np.ones(3))
        report = plumb.compare(self.folder / "a.npz", str(self.folder / "b.npz"), wide=True,
                               metrics="rmse")
        self.assertFalse(report)
        self.assertEqual(report.counts["failed"], 1)
        self.assertIn("RMSE", report[0])
        for ending in ("csv", "json", "md", "xlsx", "txt"):
            report.save(self.folder / f"r.{ending}")
        self.assertEqual(len(json.loads((self.folder / "r.json").read_text())["rows"]), 2)
        memory = {"x": torch.ones(4, dtype=torch.float64), "y": np.ones(3)}
        self.assertTrue(plumb.compare(memory, self.folder / "b.npz"))
        self.assertFalse(plumb.compare(self.folder / "a.npz", memory))
        self.assertEqual(plumb.compare(self.x, self.folder / "b.npz").counts["unmatched"], 3)

    def test_nothing_changes(self) -> None:
        x = torch.randn(10, requires_grad=True)
        y = (x * 2)
        before = y.clone()
        plumb.compare(y, x), plumb.summary(y)
        self.assertTrue(torch.equal(y, before) and y.requires_grad and x.grad is None)


class TestSummary(Case):
    def test_memory(self) -> None:
        listing = plumb.summary({"x": self.x, "n": [1, 2, 3], "m": torch.zeros(1, device="meta"),
                                 "e": torch.zeros(0)})
        self.assertEqual([row["Name"] for row in listing], ["x", "n", "m", "e"])
        self.assertEqual(listing[0]["Max"], self.x.max().item())
        self.assertEqual((listing[1]["Min"], listing[1]["Max"], listing[1]["Mean"]), (1, 3, 2.0))
        self.assertIn("meta", listing[2]["Problem"])
        self.assertIsNone(listing[3]["Min"])
        self.assertIn("| x    | float32 | [64, 32] |", str(listing))
        self.assertIn("<table>", listing._repr_html_())

    def test_file(self) -> None:
        np.save(self.folder / "x.npy", self.x.numpy())
        self.assertEqual(len(plumb.summary(self.folder / "x.npy")), 1)
        with self.assertRaises(plumb.Error):
            plumb.summary(str(self.folder / "none"))


if __name__ == "__main__":
    unittest.main()
