"""Dumps of .npy files, some of them condensed, and what compare says of them."""

import csv
import io
import os
import shutil
import subprocess
import unittest
from pathlib import Path
from typing import Dict, Optional

import numpy as np

from rights import make_folder

PLUMB = str(Path(os.environ["PLUMB_BUILD"]) / "plumb")

Tensors = Dict[str, np.ndarray]


class Folder(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = make_folder("plumb-condensed-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.made = 0

    def dump(self, tensors: Tensors, keep: Optional[str] = None) -> Path:
        """A folder of .npy files; condensed when keep says what to keep ("all")."""
        self.made += 1
        folder = self.folder / f"dump{self.made}"
        folder.mkdir()
        for name, values in tensors.items():
            np.save(folder / f"{name}.npy", values)
        if keep:
            more = [] if keep == "all" else ["--keep", keep]
            subprocess.run([PLUMB, "condense", str(folder), "--settle", "0.01", *more], check=True,
                           stdout=subprocess.PIPE, timeout=600)
        return folder

    def compare(self, target: Path, golden: Path, *more: str) -> Dict[str, Dict[str, str]]:
        """Rows of the table by name; "closing" and "code" besides."""
        done = subprocess.run([PLUMB, "compare", str(target), str(golden), "--format", "csv", *more],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=600)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertNotIn("nan%", done.stdout + done.stderr)
        self.assertNotIn("-nan", done.stdout + done.stderr)
        rows = {row["API Name"]: row for row in csv.DictReader(io.StringIO(done.stdout))}
        rows["closing"] = {"text": done.stderr}
        rows["code"] = {"code": str(done.returncode)}
        return rows

    def verdict(self, target: np.ndarray, golden: np.ndarray, keep: str = "all",
                golden_keep: Optional[str] = "same") -> "tuple[str, str]":
        """Result and message of one tensor."""
        rows = self.compare(self.dump({"x": target}, keep),
                            self.dump({"x": golden}, keep if golden_keep == "same" else golden_keep))
        row = rows["x"]
        self.assertEqual(rows["code"]["code"], "1" if row["Result"] == "FAIL" else "0")
        return row["Result"], row["Err_message"]
