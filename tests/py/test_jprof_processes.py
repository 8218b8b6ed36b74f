"""Unit tests of recorded operators: tests of two processes in one run, and what they ran on."""

import csv
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, List

BUILD = os.environ.get("PLUMB_BUILD", str(Path(__file__).resolve().parents[2] / "build"))
PLUMB = os.path.join(BUILD, "plumb")


def tensor(*shape: int) -> Dict[str, Any]:
    return {"type": "torch.Tensor", "dtype": "torch.float32", "shape": list(shape), "Max": 2,
            "Min": -1}


class Processes(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="plumb-jprof-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        for process, size in ((11, 4), (12, 5)):
            path = self.folder / f"proc_{process}"
            path.mkdir()
            (path / "dump.json").write_text(json.dumps({
                "task": "tensor", "level": "aten", "framework": "pytorch", "data": {
                    "00000-aten": {"op": "aten.relu.default", "input_args": [tensor(3, size)]},
                    "00001-aten": {"op": "aten.add.Tensor",
                                   "input_args": [tensor(size), tensor(size)]},
                    "00002-aten": {"op": "aten.linspace.default", "input_args": [
                        {"type": "int", "value": 0}, {"type": "int", "value": 4},
                        {"type": "int", "value": 5}]}}}))
            self.run_in(PLUMB, "jprof", "--cpu_init", f"proc_{process}/dump.json")

    def run_in(self, *words: str, wanted: int = 0) -> str:
        done = subprocess.run(words, cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, wanted, done.stdout)
        return done.stdout

    def pytest(self, out: str, seed: int, *folders: str) -> List[Dict[str, str]]:
        self.said = self.run_in(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                                f"--detail_compare_path={out}", *folders, "--seed", str(seed),
                                "--device", "cpu")
        with open(self.folder / out, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def test_two_processes_and_other_inputs(self) -> None:
        both = self.pytest("both.csv", 42, "proc_11/pytests", "proc_12/pytests")
        self.assertEqual(sorted(row["name"] for row in both),
                         [f"proc_{p}/0000{i}-aten" for p in (11, 12) for i in (0, 1, 2)])
        self.assertEqual({row["is_pass"] for row in both}, {"pass"})
        shapes = {row["name"]: row["shape"] for row in both}
        self.assertEqual((shapes["proc_11/00000-aten"], shapes["proc_12/00000-aten"]),
                         ("[3, 4]", "[3, 5]"))
        self.assertEqual(self.said.count("6 rows written"), 1)
        said = self.run_in(PLUMB, "summary_diff_check", "both.csv", "both.csv")
        self.assertIn("6 tests of both files: 6 pass, 0 fail", said)
        # Alone, a process has the names that were recorded, and the same inputs.
        alone = self.pytest("alone.csv", 42, "proc_12/pytests")
        self.assertEqual(sorted(row["name"] for row in alone),
                         ["00000-aten", "00001-aten", "00002-aten"])
        inputs = {row["name"]: row["inputs"] for row in both}
        for row in alone:
            self.assertEqual(row["inputs"], inputs[f"proc_12/{row['name']}"])
        self.check_other_inputs(alone)

    def check_other_inputs(self, alone: List[Dict[str, str]]) -> None:
        """Tests that ran on other inputs are not joined."""
        self.assertEqual(list(alone[0])[-2:], ["seed", "inputs"])
        self.assertEqual({row["seed"] for row in alone}, {"42"})
        self.pytest("other.csv", 7, "proc_12/pytests")
        said = self.run_in(PLUMB, "summary_diff_check", "alone.csv", "alone.csv")
        self.assertIn("3 tests of both files: 3 pass, 0 fail\n", said)
        self.assertNotIn("by name alone", said)
        said = self.run_in(PLUMB, "summary_diff_check", "alone.csv", "other.csv", "result.csv",
                           wanted=1)
        self.assertIn("1 pass, 0 fail, 2 not judged: they ran on different inputs", said)
        with open(self.folder / "result.csv", newline="", encoding="utf-8") as file:
            self.assertEqual([row["is_pass"] for row in csv.DictReader(file)],
                             ["other inputs", "other inputs", "pass"])


if __name__ == "__main__":
    unittest.main()
