"""FSDP2, tensor parallel modules and both at once on four processes, against one: put together from the ranks, by
recorded placements where tensors are DTensors, and else by their values."""

import csv
import functools
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Dict, List, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "py"))
from capture_case import BUILD, PLUMB  # noqa: E402

import torch  # noqa: E402

PROGRAM = Path(__file__).with_name("shards_cases.py")
VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
PLACE = tempfile.TemporaryDirectory(prefix="plumb-shards-today-")
LIMIT = 600  # seconds


def tearDownModule() -> None:
    PLACE.cleanup()


@functools.lru_cache(maxsize=None)
def trained(way: str, world: int = 4, fault: str = "") -> Path:
    folder = Path(PLACE.name) / f"{way}{fault}"
    folder.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(BUILD / "python"), "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    children = [subprocess.Popen([sys.executable, str(PROGRAM), way, str(rank), str(world), str(folder / "store"),
                                  str(folder / "dump"), fault], env=environment, stderr=subprocess.PIPE, text=True)
                for rank in range(world)]
    try:
        said = [child.communicate(timeout=LIMIT)[1] for child in children]
    finally:
        for child in children:
            child.kill()
    for child, error in zip(children, said):
        if child.returncode:
            raise AssertionError(error)
    return folder / "dump"


class Compared(NamedTuple):
    rows: List[Dict[str, str]]
    said: str


def compared(way: str, fault: str = "") -> Compared:
    result = Path(tempfile.mkdtemp(dir=PLACE.name)) / "result.csv"
    ran = subprocess.run([str(PLUMB), "compare", str(trained(way, fault=fault) / "step0"),
                          str(trained("one", 1) / "step0"), str(result), "--shards", "--set", "max_rel=1e9"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if ran.returncode > 1:
        raise AssertionError(ran.stderr)
    with open(result, encoding="utf-8") as file:
        return Compared(list(csv.DictReader(file)), ran.stdout)


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
