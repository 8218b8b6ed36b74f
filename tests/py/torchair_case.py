"""What tests of graph dumps share: two folders, and rows of the tables made of them."""

import csv
import os
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Dict, List, Optional, Sequence

import numpy as np


PLUMB = Path(os.environ["PLUMB_BUILD"]) / "plumb"


def values(seed: int, *dims: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(dims).astype(np.float32) + 3


class TorchairCase(unittest.TestCase):
    def setUp(self) -> None:
        self.scratch = tempfile.TemporaryDirectory()
        self.root = Path(self.scratch.name)
        self.ge, self.fx = self.root / "ge", self.root / "fx"

    def tearDown(self) -> None:
        self.scratch.cleanup()

    def compare(self, *options: str, golden: Optional[Path] = None) -> List[Dict[str, str]]:
        """Rows of all tables, each with its file's name."""
        done = subprocess.run(
            [str(PLUMB), "compare", "--mode", "torchair", "-tp", str(self.ge), "-gp",
             str(golden or self.fx), "-o", str(self.root / "out"), *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.said, self.code = done.stdout, done.returncode
        found = []
        for path in sorted((self.root / "out").iterdir()):
            with open(path, newline="", encoding="utf-8") as file:
                found += [{**row, "file": path.name} for row in csv.DictReader(file)]
            path.unlink()
        return found

    @staticmethod
    def by_name(rows: Sequence[Dict[str, str]]) -> Dict[str, List[Dict[str, str]]]:
        found: Dict[str, List[Dict[str, str]]] = {}
        for row in rows:
            found.setdefault(row["API Name"], []).append({**row, "file": ""})
        return found
