"""--format junit: what systems that run tests read agrees with closing lines and exit codes."""

import json
import os
import re
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path
from typing import Any, Dict, List

import numpy as np

import blame_case
import plumb
import torch

PLUMB = Path(os.environ["PLUMB_BUILD"]) / "plumb"


class Case(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def run_plumb(self, *words: object) -> None:
        done = subprocess.run([str(PLUMB), *map(str, words)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, cwd=self.root)
        self.code, self.said, self.errors = done.returncode, done.stdout, done.stderr.decode()

    def suite(self, *words: object) -> xml.Element:
        self.run_plumb(*words, "--format", "junit")
        self.assertIn(self.code, (0, 1), self.errors)
        root = xml.fromstring(self.said)
        suite = root.find("testsuite")
        cases = suite.findall("testcase")
        for place in (root, suite):
            self.assertEqual(int(place.get("tests")), len(cases))
            self.assertEqual(int(place.get("failures")), len(suite.findall("testcase/failure")))
            self.assertEqual(int(place.get("skipped")), len(suite.findall("testcase/skipped")))
            self.assertEqual(place.get("errors"), "0")
            self.assertGreaterEqual(float(place.get("time")), 0)
        self.assertTrue(all(case.get("name") and case.get("classname") for case in cases))
        self.assertTrue(all(bad.get("message") for bad in suite.iter("failure")))
        self.assertEqual(self.code == 1, suite.get("failures") != "0")
        return suite

    def failures(self, suite: xml.Element) -> List[str]:
        return [case.get("name") for case in suite.findall("testcase") if case.find("failure") is not None]


class TestCompare(Case):
    def save(self, name: str, **arrays: Any) -> str:
        np.savez(self.root / f"{name}.npz", **arrays)
        return f"{name}.npz"

    def test_counts(self) -> None:
        x = np.arange(8.0)
        bad = self.save("bad", a=x, b=x + 1, c=x, e=x[:4])
        good = self.save("good", a=x, b=x, d=x, e=x)
        suite = self.suite("compare", bad, good)
        counts = re.search(r"(\d+) fail; (\d+) unmatched", self.errors)
        other = re.search(r"unmatched, (\d+) not comparable", self.errors)
        self.assertEqual(int(suite.get("failures")), int(counts.group(1)) + int(counts.group(2)) +
                         int(other.group(1) if other else 0), self.errors)
        self.assertEqual(sorted(self.failures(suite)), ["b", "c", "d", "e"])
        self.assertEqual(self.failures(self.suite("compare", good, good)), [])

    def test_hostile_names(self) -> None:
        name = 'a<b>&"\'\x1b[31m\u202e]]>'
        one, two = {name: np.ones(2)}, {name: np.zeros(2)}
        suite = self.suite("compare", self.save("x", **one), self.save("y", **two))
        self.assertEqual(self.failures(suite), [name.replace("\x1b", "\ufffd")])

    def test_all_rows_or_none(self) -> None:
        path = self.save("x", a=np.ones(2))
        for words in (("--limit", "1"), ("--sort", "1"), ("--only", "fail")):
            self.run_plumb("compare", path, path, "--format", "junit", *words)
            self.assertEqual(self.code, 2)
            self.assertIn("has no effect on --format junit", self.errors)


class TestPreCheck(Case):
    def test_counts(self) -> None:
        def call(name: str, *shapes: List[int]) -> Dict[str, Any]:
            return {f"{name}.0.forward": {"input_args": [
                {"type": "torch.Tensor", "dtype": "torch.float32", "shape": shape, "Max": 1, "Min": -1,
                 "requires_grad": True} for shape in shapes], "input_kwargs": {}, "output": []}}

        data = {**call("Torch.add", [2], [2]), **call("Tensor.exp", [3]), **call("Torch.nothing", [2])}
        (self.root / "dump.json").write_text(
            json.dumps({"framework": "pytorch", "dump_data_dir": None, "data": data}))
        for verdict in ("rules", "expected", "both"):
            suite = self.suite("acc_check", "--no-torch", "dump.json", "--verdict", verdict)
            self.assertIn("3 APIs: 2 pass, 0 warning, 0 error, 1 skipped", self.errors)
            self.assertEqual((suite.get("tests"), suite.get("failures"), suite.get("skipped")), ("3", "0", "1"))
        self.run_plumb("acc_check", "--no-torch", "dump.json", "-o", "again")
        result = next((self.root / "again").glob("*result*.csv"))
        result.write_text(re.sub(r"(Tensor\.exp\.0),pass", r"\1,error", result.read_text()))
        suite = self.suite("acc_check", "--no-torch", "dump.json", "-csv_path", result, "--verdict", "rules")
        self.assertEqual(self.failures(suite), ["Tensor.exp.0"])
        self.run_plumb("acc_check", "--no-torch", "dump.json", "--verdict", "both", "--baseline", "b", "--format",
                       "junit")
        self.assertEqual(self.code, 2)


class TestBlame(Case):
    def test_counts(self) -> None:
        torch.manual_seed(2)
        debugger = plumb.PrecisionDebugger(dump_path=str(self.root / "dump"), task="tensor", level="L1", step=[])
        debugger.start()
        torch.exp(torch.tanh(torch.randn(3, 4)))
        debugger.stop()
        debugger.step()
        file = next((self.root / "dump").rglob("Torch.exp.0.forward.output.0.pt"))
        value = torch.load(file)
        value[0, 0] *= 3
        torch.save(value, file)
        suite = self.suite("blame", "dump")
        self.assertEqual(self.failures(suite), ["Torch.exp.0.forward"])
        found = blame_case.blame(self.root / "dump")
        self.assertEqual(int(suite.get("tests")), found["calls"])
        self.assertEqual(int(suite.get("failures")), found["verdicts"]["fault"])
        self.assertEqual(int(suite.get("skipped")), found["verdicts"]["not judged"])
        self.run_plumb("blame", "dump", "--write-baseline", "known.json")
        suite = self.suite("blame", "dump", "--baseline", "known.json")
        self.assertEqual((self.code, self.failures(suite)), (0, []))
        self.run_plumb("blame", "dump", "--write-baseline", "x.json", "--format", "junit")
        self.assertEqual(self.code, 2)


if __name__ == "__main__":
    unittest.main()
