"""api_precision_compare against what msProbe wrote: its current rules cell for cell, and the
routing by API of its older release, which is the documented one, verdict for verdict."""

import csv
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Dict, List, Tuple

BUILD = Path(os.environ["PLUMB_BUILD"])
DATA = Path(os.environ["PLUMB_TEST_DATA"]) / "golden"
KINDS = ["details", "result"]
STANDARDS = {"标杆比对法": "benchmark comparison", "二进制一致法": "binary consistency",
             "绝对阈值法": "absolute threshold", "ULP误差比对法": "ULP error comparison",
             "双千指标法": "dual-1000"}
STOPPED = ["p5_duplicate_gpu_row", "p6_malicious_name"]


def roots() -> List[Path]:
    found = [DATA] + ([Path(os.environ["PLUMB_GOLDEN"])] if "PLUMB_GOLDEN" in os.environ else [])
    return [root / "precheck" for root in found]


def rows(path: Path) -> List[List[str]]:
    with open(path, encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def compare(npu: Path, gpu: Path, folder: str, *options: str) -> Tuple[int, str, Dict[str, Path]]:
    """Exit code, what was said, and the two files."""
    done = subprocess.run([BUILD / "plumb", "api_precision_compare", "-npu", npu, "-gpu", gpu,
                           "-o", folder, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    files = {}
    for path in Path(folder).iterdir():
        kind = re.fullmatch(r"api_precision_compare_(\w+)_\d{14}\.csv", path.name).group(1)
        assert kind not in files
        files[kind] = path
    return done.returncode, (done.stdout + done.stderr).decode(), files


class Msprobe(unittest.TestCase):
    def same(self, npu: Path, gpu: Path, expected: Path) -> Tuple[int, int, str]:
        with tempfile.TemporaryDirectory() as folder:
            code, said, files = compare(npu, gpu, folder, "--rules", "msprobe")
            self.assertEqual(sorted(files), KINDS, said)
            for kind in KINDS:
                wanted = rows(expected / f"api_precision_compare_{kind}.csv")
                got = rows(files[kind])
                # The last column is free text.
                self.assertEqual([row[:-1] for row in got], [row[:-1] for row in wanted])
                self.assertEqual({len(row) for row in got}, {28 if kind == "details" else 4})
                text = files[kind].read_bytes()
                self.assertTrue(text.startswith(b"\xef\xbb\xbf"))
                self.assertEqual(text.count(b"\n"), text.count(b"\r\n"))
            errors = sum("error" in row[1:3] for row in rows(files["result"]))
        return errors, code, said

    def test_cases(self):
        for root in roots():
            for case in sorted((root / "api_precision_compare").iterdir()):
                with self.subTest(case=str(case)):
                    errors, code, said = self.same(case / "npu_details.csv",
                                                   case / "gpu_details.csv", case)
                    self.assertEqual(code, 2 if case.name in STOPPED else min(errors, 1), said)

    def test_devices(self):
        for root in roots():
            case = root / "e2e" / "npu_gpu"
            [npu], [gpu] = ((case / side).glob("accuracy_checking_details_*.csv")
                            for side in ("npu", "gpu"))
            _, code, said = self.same(npu, gpu, case)
            self.assertEqual(code, 1)
            self.assertIn("102 outputs compared; 42 APIs: 30 pass, 0 warning, 11 error, 1 SKIP", said)


class Pandas(unittest.TestCase):
    """What the reader of the origin makes of columns; the expected cells follow from its rules."""

    HEAD = ("API Name,DEVICE Dtype,Shape,小值域错误占比,均方根误差,相对误差最大值,相对误差平均值,误差均衡性,"
            "二进制一致错误率,inf/nan错误率,相对误差错误率,绝对误差错误率,ULP误差平均值,ULP误差大于阈值占比,双千指标")

    def cells(self, lines: List[Tuple[str, Dict[str, str]]]) -> List[Dict[str, str]]:
        """Details rows of these (dtype, cells) against themselves; other cells are a space."""
        titles = self.HEAD.split(",")
        text = [self.HEAD]
        for i, (dtype, cells) in enumerate(lines):
            text.append(",".join([f"Torch.f.{i}.forward.output.0", dtype, "x"] +
                                 [cells.get(title, " ") for title in titles[3:]]))
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as out:
            path = Path(folder) / "a.csv"
            path.write_text("\r\n".join(text) + "\r\n", encoding="utf-8-sig")
            _, said, files = compare(path, path, out, "--rules", "msprobe")
            head, *found = rows(files["details"])
        return [dict(zip(head, row)) for row in found]

    def binary(self, *cells: str) -> List[str]:
        found = self.cells([("torch.int64", {"二进制一致错误率": cell}) for cell in cells])
        return [row["二进制一致错误率"] + row["比对结果"] for row in found]

    def test_binary_is_copied_or_a_number(self):
        self.assertEqual(self.binary("0", "0.5", " "), ["0pass", "0.5error", " SKIP"])
        self.assertEqual(self.binary("0", "0.5"), ["0.00000000000000pass", "0.50000000000000error"])
        self.assertEqual(self.binary("0", "1"), ["0pass", "1error"])
        self.assertEqual(self.binary("0", "nan"), ["0.00000000000000pass", "nanerror"])
        self.assertEqual(self.binary("0", "NULL", " "), ["0pass", "nanerror", " SKIP"])
        self.assertEqual(self.binary("0", "zero"), ["0pass", " SKIP"])

    def test_missing_and_blank(self):
        bench = {"小值域错误占比": "0", "均方根误差": "1", "相对误差最大值": "1", "相对误差平均值": " ",
                 "误差均衡性": "N/A"}
        [row] = self.cells([("torch.float32", bench)])
        self.assertEqual((row["均方根误差比值"], row["相对误差平均值比值"], row["误差均衡性比值"],
                          row["误差均衡性判定结果"]),
                         ("1.00000000000000", "0.00000000000000", "nan", "pass"))
        # No type, or no way to ask whether the cell is a space: the row fails.
        found = self.cells([("", bench), ("torch.float32", {**bench, "相对误差错误率": "nan"}),
                            ("torch.float32", bench), (" ", bench)])
        self.assertEqual([row["比对结果"] for row in found], ["SKIP", "SKIP", "pass", "SKIP"])

    def test_types_are_found_stretch_by_stretch(self):
        """15 columns: types are settled after every 65536 rows, the power of two below 2^20 / 15."""
        full = {"inf/nan错误率": "0", "相对误差错误率": "0", "绝对误差错误率": "0"}
        found = self.cells([("torch.float32", full)] * 65537 + [("torch.float32", {})])
        results = [row["比对结果"] + row["比对算法"] for row in found]
        self.assertEqual(set(results[:65536]), {"SKIP "})
        self.assertEqual(results[65536:], ["pass绝对阈值法", "pass标杆比对法"])


def no_worse(npu, gpu):
    """Whether no error metric is larger than the other device's; the share of dual-1000 is not smaller."""
    def number(text):
        return float(text) if text.strip() else 0.0
    return all(number(b) <= number(a) if k == 7 else number(a) <= number(b)
               for k, (a, b) in enumerate(zip(npu, gpu)) if k in (7, 9, 15, 16, 17, 19, 20))


class Documented(unittest.TestCase):
    def test_routing_by_api(self):
        for root in roots():
            case = root / "api_precision_compare_legacy" / "p7_legacy_routing_by_api"
            with tempfile.TemporaryDirectory() as folder:
                code, said, files = compare(case / "npu_details.csv", case / "gpu_details.csv",
                                            folder)
                self.assertEqual(code, 1, said)
                got = rows(files["details"])[1:]
                self.assertNotIn(b"\r", files["details"].read_bytes())
                self.assertFalse(files["result"].read_bytes().startswith(b"\xef\xbb\xbf"))
            wanted = rows(case / "api_precision_compare_details.csv")[1:]
            other = {row[0]: row for row in rows(case / "gpu_details.csv")}
            alike = [row[0] for row in rows(case / "npu_details.csv")[1:]
                     if row[0] in other and no_worse(row, other[row[0]])]
            self.assertEqual([row[0] for row in got], [row[0] for row in wanted])
            for row, their in zip(got, wanted):
                standard = STANDARDS.get(their[26], "")
                if (row[0] in alike and their[25] == "error" and "test_api" not in row[0]
                        and standard not in ("", "benchmark comparison")):
                    self.assertEqual(row[25:27], ["pass", standard], row)  # as the other device
                    self.assertIn("the other device is no better", row[27])
                    continue
                if "test_api" in row[0]:  # no real API: its rows lack the cells that would decide
                    self.assertEqual(row[25:27], ["SKIP", "benchmark comparison"], row)
                elif "conv2d.113." in row[0]:  # 0.999, which the document wants to be exceeded; on both
                    self.assertEqual(row[24:27], ["error", "pass", "dual-1000"], row)
                else:
                    self.assertEqual(row[25:27], [their[25], STANDARDS[their[26]]], row)
                    numbers = [i for i in range(1, 25) if re.match(r"-?[\d.]+$|nan|inf", their[i])]
                    self.assertEqual([row[i] for i in numbers], [their[i] for i in numbers])

    def test_unusable(self):
        for root in roots():
            for name in STOPPED:
                case = root / "api_precision_compare" / name
                with tempfile.TemporaryDirectory() as folder:
                    code, said, files = compare(case / "npu_details.csv", case / "gpu_details.csv",
                                                folder)
                    self.assertEqual((code, files), (2, {}), said)

    def test_never_pass_without_metrics(self):
        for root in roots():
            case = root / "api_precision_compare" / "p2_nan_skip_names"
            with tempfile.TemporaryDirectory() as folder:
                _, _, files = compare(case / "npu_details.csv", case / "gpu_details.csv", folder)
                status = {row[0]: row[1:3] for row in rows(files["result"])[1:]}
            self.assertEqual(status["Torch.shp.0"], ["error", ""])
            self.assertEqual(status["Torch.i16.0"], ["error", ""])
            self.assertEqual(status["Torch.empty2.0"], ["SKIP", ""])
            self.assertEqual(status["Torch.exp.0"], ["SKIP", ""])
            self.assertEqual(status["Torch.chunk.0"], ["pass", "SKIP"])
            self.assertEqual(status["Torch.side.0.sideways.output.0"], ["SKIP", "SKIP"])
            self.assertNotIn("Torch.onlynpu.0", status)


if __name__ == "__main__":
    unittest.main()
