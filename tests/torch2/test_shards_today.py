"""FSDP2, tensor parallel modules and both at once on four processes, against one: put together from the ranks, by
recorded placements where tensors are DTensors, and else by their values."""

import sys
import unittest
from pathlib import Path
from typing import Dict

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "py"))
from shards_case import Compared, Trainings  # noqa: E402

import torch  # noqa: E402

VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
TRAININGS = Trainings(Path(__file__).with_name("shards_cases.py"))


def tearDownModule() -> None:
    TRAININGS.cleanup()


def compared(way: str, fault: str = "") -> Compared:
    return TRAININGS.compared(TRAININGS.trained(way, fault=fault), TRAININGS.trained("one", 1))


@unittest.skipIf(VERSION < (2, 8), "what fully_shard() does is recorded from PyTorch 2.8 on")
class Today(unittest.TestCase):
    def check(self, way: str) -> Compared:
        found = compared(way)
        self.assertEqual([], [row["API Name"] for row in found.rows if row["Result"] != "PASS"])
        for bad in ("without a layout", "by shapes alone", "as in other layers"):
            self.assertNotIn(bad, found.said)
        # What the data do not determine is the same number everywhere: the gradient of a mean.
        for row in found.rows:
            if "ambiguous" in row["Layout"]:
                self.assertIn("backward", row["API Name"])
        return found

    def layouts(self, found: Compared) -> Dict[str, str]:
        return {row["API Name"]: row["Layout"].split(" (")[0] for row in found.rows}

    def test_fsdp(self) -> None:
        found = self.check("fsdp")
        for row in found.rows:
            if row["API Name"].startswith("Module.reduced."):
                self.assertEqual("concat axis 0 over ranks 0,1,2,3 (recorded)", row["Layout"])
        # 3 rows on 4 ranks: the last one has none
        self.assertIn("Module.reduced.head.Linear.parameters_grad.0.weight", self.layouts(found))

    def test_tensor_parallel(self) -> None:
        found = self.check("tp")
        of = self.layouts(found)
        self.assertRegex(found.said, r"\(\d+ recorded, \d+ inferred\)")
        self.assertIn("concat axis 1 over ranks 0,1,2,3", of.values())
        self.assertIn("sum of 4: ranks 0+1+2+3", of.values())

    def test_both(self) -> None:
        """Two axes of ranks, of which single tensors know one."""
        of = self.layouts(self.check("both"))
        self.assertIn("concat axis 0, then concat axis 1 over ranks 0,1,2,3", of.values())
        self.assertIn("concat axis 0, then concat axis 0 over ranks 0,2,1,3", of.values())
        self.assertIn("concat axis 0 over ranks 0|1,2|3", of.values())

    def test_fault(self) -> None:
        found = compared("tp", "2")
        failed = [row for row in found.rows if row["Result"] != "PASS"]
        self.assertIn("the error is in the part of rank 2", failed[0]["Layout"])


if __name__ == "__main__":
    unittest.main()
