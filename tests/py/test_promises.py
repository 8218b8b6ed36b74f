"""Small files that stand for very much: views that repeat what is stored."""

import os
import shutil
import subprocess
import unittest
from pathlib import Path
from typing import List

import torch

from rights import make_folder

PLUMB = str(Path(os.environ["PLUMB_BUILD"]) / "plumb")


class Promises(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = make_folder("plumb-promise-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def plumb(self, *words: str) -> List[str]:
        done = subprocess.run([PLUMB, *words], cwd=self.folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return done.stdout.splitlines()

    def save(self, name: str, **tensors: torch.Tensor) -> None:
        torch.save(tensors, self.folder / name)

    def refused(self, name: str) -> List[str]:
        return [line.split(",")[0] for line in self.plumb("info", name, "--format", "csv")
                if "promise more work" in line]

    def test_views_beyond_all_measure(self) -> None:
        """What fits is read, whatever stands before it; the rest is named, row by row."""
        one = torch.ones(1)
        views = {f"v{k:03}": one.expand(2 ** 31) for k in range(200)}
        self.save("many.pt", small=torch.arange(6.), **views, last=torch.arange(5.))
        found = self.refused("many.pt")
        self.assertEqual(found, [f"v{k:03}" for k in range(8, 200)])  # 8 GiB each, 64 in all
        self.save("other.pt", **{name: one.expand(2 ** 40) for name in views}, last=torch.arange(5.))
        rows = self.plumb("compare", "other.pt", "other.pt", "--format", "csv")
        self.assertEqual(sum("FAIL" in row and "a view that repeats" in row for row in rows), 200)
        self.assertEqual(sum(row.startswith("last,") and "PASS" in row for row in rows), 1)

    def test_many_views_of_one_storage(self) -> None:
        base = torch.arange(2 ** 22, dtype=torch.float32)
        self.save("weights.pt", **{f"w{k}": base for k in range(6000)})  # 94 GiB, of 16 MiB
        self.assertTrue(1800 < len(self.refused("weights.pt")) < 1900)

    def test_what_people_save(self) -> None:
        mask = torch.ones(1, 1, 256, 256, dtype=torch.bool).expand(32, 32, 256, 256)
        base = torch.arange(2 ** 16, dtype=torch.float32)
        self.save("a.pt", mask=mask, **{f"w{k}": base[k * 64:] for k in range(50)})
        self.assertEqual(self.refused("a.pt"), [])
        self.assertEqual(len(self.plumb("compare", "a.pt", "a.pt", "--format", "csv")), 1 + 51)


if __name__ == "__main__":
    unittest.main()
