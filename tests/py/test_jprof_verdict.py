#!/usr/bin/python3
"""Generated unit tests that ask plumb.judge, and summary_diff_check on what they say."""

import csv
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, List

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["PLUMB_BUILD"]).resolve()
KERNEL = """import torch
library = torch.library.Library("aten", "IMPL")
library.impl("silu", lambda x: x * torch.sigmoid(1.00001 * x), "CPU")
"""


def run(*words: Any, **more: Any) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([str(word) for word in words], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, **more)


class Suite(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        (cls.folder / "mine.py").write_text(KERNEL)
        done = run(BUILD / "plumb", "jprof", "--blacklist", "-o", cls.folder / "suite",
                   ROOT / "examples/unittest/dump.json")
        assert done.returncode == 0, done.stdout

    def pytest(self, *words: str, package: bool = True, suite: str = "suite",
               ) -> "subprocess.CompletedProcess[str]":
        path = str(self.folder) + (os.pathsep + str(BUILD / "python") if package else "")
        return run(sys.executable, "-W", "ignore", "-m", "pytest", "-q", "-p", "no:cacheprovider",
                   *words, suite, cwd=self.folder, env=dict(os.environ, PYTHONPATH=path))

    def rows(self, name: str) -> List[Dict[str, str]]:
        with open(self.folder / name, newline="", encoding="utf-8") as stream:
            return list(csv.DictReader(stream))

    def test_a_fault_that_the_tolerance_passes(self):
        rules = self.pytest("-p", "mine", "--detail_compare_path=rules.csv", package=False)
        self.assertIn("31 passed", rules.stdout)
        self.assertNotIn("Verdict", self.rows("rules.csv")[0])
        judged = self.pytest("-p", "mine", "--verdict=expected", "--detail_compare_path=xpu.csv")
        self.assertIn("1 failed, 30 passed", judged.stdout)
        rows = self.rows("xpu.csv")
        self.assertEqual(list(rows[0])[-3:], ["inputs", "Verdict", "Why"])
        bad = [row for row in rows if row["Verdict"] == "fault"]
        self.assertEqual([row["op_name"] for row in bad], ["aten.silu.default"])
        self.assertEqual(bad[0]["is_pass"], "pass")
        self.assertIn("sigma", bad[0]["Why"])
        right = self.pytest("--verdict=both", "--detail_compare_path=gpu.csv")
        self.assertIn("31 passed", right.stdout)
        self.assertEqual({row["Verdict"] for row in self.rows("gpu.csv")}, {"same", "rounding"})
        self.join()

    def join(self) -> None:
        def check(*words: str) -> "subprocess.CompletedProcess[str]":
            return run(BUILD / "plumb", "summary_diff_check", *words, cwd=self.folder)

        done = check("xpu.csv", "gpu.csv", "result.csv", "--verdict", "expected")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("xpu has 1 fault, and 0 not judged", done.stdout)
        row = next(row for row in self.rows("result.csv") if row["op_name"] == "aten.silu.default")
        self.assertEqual((row["xpu_Verdict"], row["gpu_Verdict"]), ("fault", "rounding"))
        self.assertEqual(list(row)[-4:], ["xpu_Verdict", "xpu_Why", "gpu_Verdict", "gpu_Why"])
        self.assertEqual(check("gpu.csv", "xpu.csv", "--verdict", "expected").returncode, 0)
        done = check("xpu.csv", "rules.csv", "one.csv")
        self.assertEqual(list(self.rows("one.csv")[0])[-2:], ["xpu_Verdict", "xpu_Why"])
        done = check("rules.csv", "xpu.csv", "other.csv")
        self.assertEqual(list(self.rows("other.csv")[0])[-2:], ["xpu_Verdict", "xpu_Why"])
        done = check("rules.csv", "xpu.csv", "--verdict", "both")
        self.assertEqual(done.returncode, 2)
        self.assertIn("rules.csv has no column Verdict", done.stdout)

    def test_without_the_package(self):
        done = self.pytest("--verdict=expected", package=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("need plumb's Python package", done.stdout)

    def test_jprof_sets_the_default(self):
        done = run(BUILD / "plumb", "jprof", "--verdict", "expected", "-o", self.folder / "judged",
                   ROOT / "examples/unittest/dump.json")
        self.assertEqual(done.returncode, 0, done.stdout)
        done = self.pytest("--detail_compare_path=default.csv", suite="judged")
        rows = self.rows("default.csv")
        self.assertIn("Verdict", rows[0])
        unjudged = [row for row in rows if row["Verdict"] == "not judged"]
        self.assertIn(f"{len(rows) - len(unjudged)} passed, {len(unjudged)} skipped", done.stdout)
        self.assertTrue(unjudged and all(row["Why"] for row in unjudged), rows)
        done = self.pytest("--verdict=rules", "--detail_compare_path=plain.csv", suite="judged",
                           package=False)
        self.assertNotIn("Verdict", self.rows("plain.csv")[0])


if __name__ == "__main__":
    unittest.main()
