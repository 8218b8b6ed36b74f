"""Whole runs of acc_check whose results msProbe measured, under its rules and with its random numbers.

Which cells may differ: those that depend on the kernels of the CPU that both sides ran on there. Names, order, types,
shapes, statuses of everything that is no close call, and which cells are filled, may not. A share lives in
tests/data/golden; with PLUMB_GOLDEN the whole of it is checked.
"""

import csv
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import List, Tuple

from rights import copy_tree

BUILD = Path(os.environ["PLUMB_BUILD"])
DATA = Path(os.environ["PLUMB_TEST_DATA"]) / "golden"

# Operators whose last bits depend on the order in which a kernel adds up, or on its exp.
KERNELS = {"cross_entropy", "gelu", "layer_norm", "linear", "matmul", "mean", "softmax", "sum"}

# What rounding noise may change of them, and by how much.
NOISE = {"余弦相似度": 1e-5, "双百指标": 1.1, "双千指标": 1.1, "双万指标": 1.1, "误差均衡性": 1.1, "小值域错误占比": 1.1,
         "相对误差最大值": 10.0, "相对误差平均值": 0.2}
NOISY = ["余弦相似度", "最大绝对误差", "双百指标", "双千指标", "双万指标", "误差均衡性", "均方根误差", "小值域错误占比",
         "相对误差最大值", "相对误差平均值"]


def roots() -> List[Path]:
    return [DATA] + ([Path(os.environ["PLUMB_GOLDEN"])] if "PLUMB_GOLDEN" in os.environ else [])


def read(path: Path) -> List[List[str]]:
    with open(path, newline="", encoding="utf-8-sig") as file:
        return list(csv.reader(file))


class WholeRuns(unittest.TestCase):
    maxDiff = None

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def check(self, case: Path, *options: str) -> Tuple[List[List[str]], List[List[str]]]:
        done = subprocess.run([str(BUILD / "plumb"), "acc_check", "-api_info", str(case / "dump.json"), "-o",
                               str(self.folder), "--rules", "msprobe", "--rng", "msprobe", "--quiet", *options],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        result, details = done.stdout.split()[:2]
        for path in (result, details):
            raw = Path(path).read_bytes()
            self.assertTrue(raw.startswith(b"\xef\xbb\xbf"))
            self.assertTrue(raw.endswith(b"\r\n"))
        return read(Path(result)), read(Path(details))

    def compare(self, case: Path, *options: str) -> None:
        result, details = self.check(case, *options)
        want_result = read(next(case.glob("accuracy_checking_result_*.csv")))
        want_details = read(next(case.glob("accuracy_checking_details_*.csv")))
        self.compare_details(details, want_details)
        self.compare_result(result, want_result, details, want_details)

    def compare_details(self, got: List[List[str]], want: List[List[str]]) -> None:
        header = want[0]
        self.assertEqual(got[0], header)
        self.assertEqual([row[0] for row in got], [row[0] for row in want])
        for mine, theirs in zip(got[1:], want[1:]):
            a, b = dict(zip(header, mine)), dict(zip(header, theirs))
            api = mine[0].split(".")[1]
            for column in header:
                if column == "Message":
                    continue
                if column in NOISY and api in KERNELS and a[column].strip() and b[column].strip():
                    self.assertLess(abs(float(a[column]) - float(b[column])), NOISE.get(column, 5e-2), mine[0])
                    continue
                if column in ("双百指标", "双千指标", "双万指标", "Status") and api in KERNELS and \
                        "float16" in b["DEVICE Dtype"]:
                    continue  # bfloat16 noise is near the steps of the ladder
                self.assertEqual(a[column], b[column], f"{mine[0]}: {column}\nplumb {mine}\nwant  {theirs}")

    def compare_result(self, got: List[List[str]], want: List[List[str]], details: List[List[str]],
                       want_details: List[List[str]]) -> None:
        self.assertEqual(got[0], want[0])
        self.assertEqual([row[0] for row in got], [row[0] for row in want])
        low = {".".join(row[0].split(".")[:-3]) for row in want_details if "float16" in row[2]}
        for mine, theirs in zip(got[1:], want[1:]):
            if mine[0] not in low:
                self.assertEqual(mine[1:3], theirs[1:3], mine[0])
            self.assertEqual(len(mine), len(theirs), mine[0])

    def each(self, name: str) -> List[Path]:
        return [root / "precheck" / "e2e" / name for root in roots()
                if (root / "precheck" / "e2e" / name / "dump.json").exists()]

    def test_random(self) -> None:
        for case in self.each("random"):
            self.compare(case)

    def test_real(self) -> None:
        for case in self.each("real"):
            self.compare(case)

    def test_skips(self) -> None:
        for case in self.each("skips"):
            self.compare(case)

    def test_filter(self) -> None:
        for case in self.each("filter"):
            self.compare(case, "-f")

    def test_white_and_black_list(self) -> None:
        for case in self.each("white_black"):
            config = self.folder / "config.json"
            config.write_text((case / "config_white.json").read_text().replace('"white_black"', '"./"'))
            self.compare(case, "-config", str(config))

    def test_resume(self) -> None:
        for case in self.each("resume"):
            before = self.folder / "before"
            copy_tree(case / "before", before)
            old = next(before.glob("accuracy_checking_result_*.csv"))
            finished = old.read_bytes()
            result, details = self.check(case, "-csv_path", str(old))
            self.assertTrue(old.read_bytes().startswith(finished))
            self.compare_details(details, read(next(case.glob("accuracy_checking_details_*.csv"))))
            self.compare_result(result, read(next(case.glob("accuracy_checking_result_*.csv"))), details,
                                read(next(case.glob("accuracy_checking_details_*.csv"))))


if __name__ == "__main__":
    unittest.main()
