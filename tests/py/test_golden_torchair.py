"""Dumps of compiled graphs, and the tables that msProbe made of them.

A small case lives in tests/data/golden; with PLUMB_GOLDEN all of them are checked.
"""

import csv
import math
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Dict, List

PLUMB = Path(os.environ["PLUMB_BUILD"]) / "plumb"
DATA = Path(os.environ["PLUMB_TEST_DATA"]) / "golden"
FREE_TEXT = "cmp_fail_reason"


def cases() -> List[Path]:
    roots = [DATA] + ([Path(os.environ["PLUMB_GOLDEN"])] if "PLUMB_GOLDEN" in os.environ else [])
    return [case for root in roots for case in sorted((root / "compare").glob("ge_*"))]


def rows(path: Path) -> List[Dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def same(column: str, got: str, wanted: str) -> bool:
    if got == wanted:
        return True
    try:
        a, b = float(got), float(wanted)
    except ValueError:
        return False
    absolute = {"kl_divergence": 2e-6, "cosine_similarity": 1e-9}.get(column, 0.0)
    relative = 0.0 if column == "cosine_similarity" else 1e-5
    return math.isfinite(a) and math.isfinite(b) and abs(a - b) <= max(absolute, relative * abs(b))


def right_golden_path(wrong: str) -> str:
    """The origin's path of a golden GE tensor, without what it adds by mistake: its own part is the
    last one."""
    parts = re.split(r",(?=(?:inputs|outputs),)", wrong)
    return parts[0] if len(parts) == 1 else f"{parts[0]},{parts[-1]}"


class Golden(unittest.TestCase):
    def compare(self, case: Path, folder: Path) -> None:
        command = (case / "CMD").read_text("utf-8").split()
        command[0] = str(PLUMB)
        command[command.index("-o") + 1] = str(folder)
        done = subprocess.run(command + ["--columns", "msprobe", "--rules", "msprobe"], cwd=case,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertIn(done.returncode, (0, 1), done.stderr)

    def check_row(self, case: Path, got: Dict[str, str], wanted: Dict[str, str]) -> None:
        between_ge = "fused" in case.name
        for column, value in wanted.items():
            mine = got[column].replace(str(case.resolve()), "<ROOT>")
            if column == FREE_TEXT:
                continue
            if column == "golden_data_path" and between_ge:
                # Inputs of plain operators have no part at all there; ours say which one it is.
                value = right_golden_path(value)
                part = got["my_data_path"].rsplit(",", 2)[1]
                if "," not in value:
                    value += "," + ",".join(got["my_data_path"].rsplit(",", 2)[1:])
                self.assertEqual(mine.rsplit(",", 2)[1], part)
            self.assertTrue(same(column, mine, value), f"{column}: {mine} instead of {value}")

    def test_tables(self) -> None:
        checked = 0
        for case in cases():
            with tempfile.TemporaryDirectory() as folder:
                self.compare(case, Path(folder))
                for expected in sorted(case.glob("expected*.csv")):
                    rank = expected.stem.removeprefix("expected")
                    found = list(Path(folder).glob(f"msprobe_cmp_report{rank}_*.csv"))
                    self.assertEqual(len(found), 1, f"{case.name}{rank}: {found}")
                    wanted, got = rows(expected), rows(found[0])
                    self.assertEqual(list(got[0]), list(wanted[0]))
                    self.assertEqual(len(got), len(wanted), case.name)
                    for i, (mine, theirs) in enumerate(zip(got, wanted)):
                        with self.subTest(case=case.name, rank=rank, row=i):
                            self.check_row(case, mine, theirs)
                        checked += 1
        self.assertGreaterEqual(checked, 24)


if __name__ == "__main__":
    unittest.main()
