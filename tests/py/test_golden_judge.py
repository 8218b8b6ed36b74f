"""Details rows of the pre-check: what msProbe wrote, cell for cell, and what plumb's own rules say.

A small set lives in tests/data/golden; with PLUMB_GOLDEN the whole of it is checked.
"""

import csv
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

import numpy as np

BUILD = Path(os.environ["PLUMB_BUILD"])
DATA = Path(os.environ["PLUMB_TEST_DATA"]) / "golden"

COLUMNS = ["bench", "device", "shape", "cosine", "max_abs", "dual_100", "dual_1000", "dual_10000", "binary",
           "balance", "rmse", "small", "max_rel", "mean_rel", "inf_nan", "rel_rate", "abs_rate", "ulp_max",
           "ulp_mean", "ulp_rate"]
COSINE = COLUMNS.index("cosine")


def roots() -> List[Path]:
    return [DATA] + ([Path(os.environ["PLUMB_GOLDEN"])] if "PLUMB_GOLDEN" in os.environ else [])


def judge(lines: List[str]) -> List[dict]:
    done = subprocess.run([str(BUILD / "tests" / "judge_pair")], input="".join(line + "\n" for line in lines),
                          stdout=subprocess.PIPE, text=True, check=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(lines), f"{len(found)} answers to {len(lines)} pairs"
    return found


def side(folder: Path, value) -> str:
    """An output of a manifest as judge_pair wants it."""
    if isinstance(value, dict) and "file" in value:
        return f"{folder / value['file']}@{value['dtype']}"
    if isinstance(value, dict) and "python" in value:
        value = value["value"]
    if value is None:
        return "none"
    if isinstance(value, bool):
        return f"bool:{int(value)}"
    if isinstance(value, (int, float, str)):
        return f"{type(value).__name__}:{value}"
    raise AssertionError(f"what is {value}?")


def as_list(value) -> list:
    return value if isinstance(value, list) else [value]


class Rows(unittest.TestCase):
    def assertRow(self, found: dict, cells: List[str], status: str) -> None:
        for column, (mine, wanted) in enumerate(zip(found["cells"], cells)):
            if column == COSINE and mine != wanted and " " not in (mine, wanted):
                self.assertLessEqual(abs(float(mine) - float(wanted)), 1e-12, COLUMNS[column])
            else:
                self.assertEqual(mine, wanted, COLUMNS[column])
        self.assertEqual(found["status"], status)


class Metrics(Rows):
    def cases(self, root: Path) -> Tuple[Path, List[dict]]:
        """The small set keeps the rows beside the manifest."""
        folder = root / "precheck" / "metrics"
        cases = json.loads((folder / "manifest.json").read_text("utf-8"))["cases"]
        rows = json.loads((folder / "rows.json").read_text("utf-8")) if (folder / "rows.json").exists() else {}
        for case in cases:
            if "rows" not in case and case["id"] in rows:
                case["rows"] = [{"cells": cells, "status": cells[20]} for cells in rows[case["id"]]]
        return folder, cases

    def test_rows(self) -> None:
        lines, wanted = [], []
        for root in roots():
            folder, cases = self.cases(root)
            for case in cases:
                if case["api"] == "dropout" or "raised" in case:
                    continue
                pairs = list(zip(as_list(case["bench"]), as_list(case["device"])))
                self.assertEqual(len(pairs), len(case["rows"]), case["id"])
                for (bench, device), row in zip(pairs, case["rows"]):
                    lines.append(f"msprobe\t{case['api']}\t0\t{side(folder, bench)}\t{side(folder, device)}")
                    wanted.append((f"{case['id']} {case['kind']}", row["cells"], row["status"]))
        for (name, cells, status), found in zip(wanted, judge(lines)):
            with self.subTest(case=name):
                self.assertRow(found, cells[:20], cells[20])
                self.assertEqual(status, cells[20])
        self.assertGreater(len(lines), 50)

    def test_absolute_threshold(self) -> None:
        """With an 8-bit input the absolute standard fills its own three columns."""
        lines, wanted = [], []
        for root in roots():
            folder, cases = self.cases(root)
            for case in cases:
                rates = case.get("standards", {}).get("absolute_threshold")
                blank = case["rows"][0]["cells"][COLUMNS.index("rmse")] == " " if case.get("rows") else True
                if rates and not blank:
                    lines.append(f"msprobe\t{case['api']}\t1\t{side(folder, case['bench'])}\t"
                                 f"{side(folder, case['device'])}")
                    wanted.append((case["id"], rates))
        for (name, rates), found in zip(wanted, judge(lines)):
            with self.subTest(case=name):
                for column, key in (("inf_nan", "inf_nan_error_ratio"), ("rel_rate", "rel_err_ratio"),
                                    ("abs_rate", "abs_err_ratio")):
                    value = rates[key]
                    text = "%.14f" % value["v"] if value["t"] == "float64" else str(value["v"])
                    self.assertEqual(found["cells"][COLUMNS.index(column)], text, column)
                self.assertEqual(found["cells"][COLUMNS.index("rmse")], " ")
        self.assertGreater(len(lines), 30)

    def test_dropout(self) -> None:
        lines, wanted = [], []
        for root in roots():
            folder, cases = self.cases(root)
            for case in cases:
                if "dropout_result" in case:
                    lines.append(f"dropout\tdropout\t0\t{side(folder, case['bench'])}\t{side(folder, case['device'])}")
                    wanted.append(case["dropout_result"][0])
        self.assertEqual([found["status"] for found in judge(lines)], wanted)


class EndToEnd(Rows):
    CASES = ["random", "real", "skips", "black_errdata", "npu_gpu/npu", "npu_gpu/gpu", "resume"]

    def outputs(self, folder: Path, calls: dict) -> Iterator[Tuple[str, str, object, object]]:
        """Name, API and both sides of every output for which there are tensors."""
        for name, call in calls.items():
            api = ".".join(name.split(".")[1:-1])
            if "dropout" in name:
                continue
            if call["bench_output"] is not None:
                pairs = zip(as_list(call["bench_output"]), as_list(call["device_output"]))
                for i, (bench, device) in enumerate(pairs):
                    yield f"{name}.forward.output.{i}", api, bench, device
            if call["bench_grad"] is not None and not call["backward_message"]:
                for i, (bench, device) in enumerate(zip(call["bench_grad"], call["device_grad"])):
                    yield f"{name}.backward.output.{i}", api, bench, device

    def test_details(self) -> None:
        checked = 0
        for root in roots():
            for case in self.CASES:
                folder = root / "precheck" / "e2e" / case
                if not (folder / "tensors" / "tensors.json").exists():
                    continue
                calls = json.loads((folder / "tensors" / "tensors.json").read_text("utf-8"))
                details = sorted(folder.glob("accuracy_checking_details_*.csv"))
                with open(details[0], newline="", encoding="utf-8-sig") as file:
                    rows = {row[0]: row for row in csv.reader(file)}
                lines, names = [], []
                for name, api, bench, device in self.outputs(folder, calls):
                    lines.append(f"msprobe\t{api}\t0\t{side(folder / 'tensors', bench)}\t"
                                 f"{side(folder / 'tensors', device)}")
                    names.append(name)
                for name, found in zip(names, judge(lines)):
                    with self.subTest(case=case, row=name):
                        self.assertIn(name, rows)
                        self.assertRow(found, rows[name][1:21], rows[name][21])
                        checked += 1
                # Every row with numbers must have been among them.
                for name, row in rows.items():
                    if row[1] not in (" ", "Bench Dtype") and name.rsplit(".", 3)[0] in calls:
                        self.assertIn(name, names, case)
        if "PLUMB_GOLDEN" in os.environ:
            self.assertGreater(checked, 400)


class Fp8(Rows):
    def test_ulp(self) -> None:
        for root in roots():
            data = json.loads((root / "precheck" / "fp8" / "ulp_fp8.json").read_text("utf-8"))
            for case in data["cases"]:
                found = judge([f"fp8_ulp\t-\t0\tfloat:{bench}\tfloat:{device}"
                               for bench, device in zip(case["bench"], case["device"])])
                ulp = np.array([float.fromhex(one["ulp"]) for one in found])
                with self.subTest(case=case["name"]):
                    for mine, wanted in zip(ulp, case["ulp_signed"]):
                        self.assertAlmostEqual(mine, float.fromhex(wanted), delta=1e-12 * max(1, abs(mine)))
                    self.assertAlmostEqual(ulp.max(), float.fromhex(case["max"]), places=12)
                    self.assertAlmostEqual(ulp.mean(), float.fromhex(case["mean"]), places=11)
                    self.assertEqual((ulp > 1).mean(), float.fromhex(case["proportion_gt_1"]))

    def test_rows(self) -> None:
        """1.0, 1.25, -2.0 in float8_e5m2, the last one a step (0.5) off, against a float32 reference."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            np.save(folder / "b.npy", np.array([1.0, 1.25, -2.5], np.float32))
            np.save(folder / "d.npy", np.array([0x3C, 0x3D, 0xC0], np.uint8))
            pair = f"{folder}/b.npy@float32\t{folder}/d.npy@float8_e5m2"
            signed, absolute = judge([f"msprobe\tmul\t0\t{pair}", f"documented\tmul\t0\t{pair}"])
        # 0.5 at exponent 1 with three bits: 0.5 * 2^(3-1) = 2.
        self.assertEqual(signed["cells"][17:], ["2.00000000000000", "0.66666666666667", "0.33333333333333"])
        self.assertEqual(absolute["cells"][17:], ["2.00000000000000", "0.66666666666667", "0.33333333333333"])
        self.assertEqual(signed["cells"][1], "torch.float8_e5m2")
        self.assertEqual(signed["status"], "error")
        self.assertEqual(absolute["status"], "error")


LIMITS = {  # eps, small, tolerance of small values, rtol, ULP threshold, stored digits, smallest exponent
    "float16": (2.0 ** -23, 2.0 ** -11, 2.0 ** -16, 2.0 ** -10, 1, 10, -14),
    "bfloat16": (2.0 ** -8, 2.0 ** -8, 2.0 ** -16, 2.0 ** -8, 1, 7, -126),
    "float32": (2.0 ** -52, 2.0 ** -14, 2.0 ** -30, 2.0 ** -20, 32, 23, -126),
    "float64": (2.0 ** -52, 2.0 ** -14, 2.0 ** -30, 2.0 ** -20, 32, 52, -1022),
}


def load(path: str, dtype: str) -> np.ndarray:
    """Any type as float64."""
    values = np.load(path)
    if dtype.endswith("bfloat16"):
        values = (np.atleast_1d(values).astype(np.uint32) << 16).view(np.float32).reshape(values.shape)
    return values.astype(np.float64)


def rounded(values: np.ndarray, dtype: str) -> np.ndarray:
    """To the device's type and back."""
    if dtype == "bfloat16":
        import torch
        return torch.from_numpy(np.ascontiguousarray(values)).to(torch.bfloat16).to(torch.float64).numpy()
    return values.astype(dtype).astype(np.float64)


def documented(bench: np.ndarray, device: np.ndarray, dtype: str) -> Tuple[Dict[str, float], int]:
    """The columns in the plainest numpy, and the number of pairs that are not finite and not alike."""
    eps, small_limit, tolerance, rtol, ulp_threshold, digits, emin = LIMITS[dtype]
    held = rounded(bench, dtype)
    finite = np.isfinite(device) & np.isfinite(bench)
    same = ~finite & ((np.isnan(device) & np.isnan(held)) | (device == held))
    unlike = ~finite & ~same
    b, d = np.where(finite, bench, 0), np.where(finite, device, 0)
    error = np.abs(d - b)
    rel = error / (np.abs(b) + eps)
    small, normal = finite & (np.abs(b) <= small_limit), finite & (np.abs(b) > small_limit)
    n, kept = bench.size, int(normal.sum())
    rate = lambda part, whole: part.sum() / whole.sum() if whole.any() else 0.0
    spoilt = (np.nan if np.isnan(bench[unlike]).any() or np.isnan(device[unlike]).any() else np.inf) \
        if unlike.any() else 0.0
    exponent = np.maximum(np.floor(np.log2(np.where(b == 0, 1, np.abs(b)))), emin)
    ulp = error * 2.0 ** (digits - exponent)
    differ = finite & ((d != held) | (np.signbit(d) != np.signbit(held)))
    return {
        "max_abs": error.max() + spoilt,
        "dual_100": ((rel < 1e-2) & ~unlike).mean(),
        "dual_1000": ((rel < 1e-3) & ~unlike).mean(),
        "dual_10000": ((rel < 1e-4) & ~unlike).mean(),
        "binary": (differ | unlike).mean(),
        "balance": abs((~same & (device > held)).sum() - (~same & (device < held)).sum()) / n,
        "rmse": np.sqrt((np.where(normal, error, 0) ** 2).mean() * (n / (kept + 1e-4) + 1e-4)),
        "small": rate(small & (error > tolerance), small),
        "max_rel": rel[normal].max() if kept else 0.0,
        "mean_rel": rel[normal].mean() if kept else 0.0,
        "inf_nan": unlike.mean(),
        "rel_rate": rate(normal & (rel > rtol), normal),
        "abs_rate": rate(small & (error > tolerance), small),
        "ulp_max": ulp.max() + spoilt,
        "ulp_mean": ulp.mean() + spoilt,
        "ulp_rate": ((ulp > ulp_threshold) | unlike).mean(),
    }, int(unlike.sum())


class Documented(Rows):
    def assertNumbers(self, found: dict, wanted: Dict[str, float]) -> None:
        for name, value in wanted.items():
            mine = float(found["cells"][COLUMNS.index(name)])
            if np.isnan(value):
                self.assertTrue(np.isnan(mine), f"{name}: {mine} instead of NaN")
            elif np.isinf(value):
                self.assertEqual(mine, value, name)
            else:
                self.assertLessEqual(abs(mine - value), 1e-14 + 1e-12 * abs(value), name)

    def test_columns(self) -> None:
        """All golden pairs of floats, with the reference that documented rules have: float64."""
        checked = 0
        with tempfile.TemporaryDirectory() as name:
            lines, wanted = [], []
            for root in roots():
                folder = root / "precheck" / "metrics"
                for case in json.loads((folder / "manifest.json").read_text("utf-8"))["cases"]:
                    b, d = case["bench"], case["device"]
                    if "standards" not in case or "float" not in d["dtype"] or b["shape"] != d["shape"]:
                        continue
                    dtype = d["dtype"].split(".")[1]
                    bench = load(f"{folder}/{b['file']}", b["dtype"])
                    device = load(f"{folder}/{d['file']}", d["dtype"])
                    path = Path(name) / f"{len(lines)}.npy"
                    np.save(path, bench)
                    lines.append(f"documented\tsoftmax\t0\t{path}@float64\t{folder}/{d['file']}@{dtype}")
                    with np.errstate(all="ignore"):
                        wanted.append((case["id"], *documented(bench.ravel(), device.ravel(), dtype)))
            for (case_id, numbers, unlike), found in zip(wanted, judge(lines)):
                with self.subTest(case=case_id):
                    self.assertNumbers(found, numbers)
                    if unlike:
                        self.assertEqual(found["status"], "error")
                        self.assertIn(f"{unlike} of", found["message"])
                    checked += 1
        self.assertGreater(checked, 100)


if __name__ == "__main__":
    unittest.main()
