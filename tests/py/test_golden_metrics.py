"""Metric values that other tools measured, under the rules that describe those tools.

A small set lives in tests/data/golden; with PLUMB_GOLDEN the whole of it is checked.
"""

import csv
import json
import math
import os
import subprocess
import unittest
from pathlib import Path
from typing import Dict, List, Optional

BUILD = Path(os.environ["PLUMB_BUILD"])
DATA = Path(os.environ["PLUMB_TEST_DATA"]) / "golden"


def roots() -> List[Path]:
    return [DATA] + ([Path(os.environ["PLUMB_GOLDEN"])] if "PLUMB_GOLDEN" in os.environ else [])


def metrics(rule: str, lines: List[str]) -> List[Optional[Dict[str, float]]]:
    """The metrics of each pair, or None where plumb refuses it."""
    done = subprocess.run([str(BUILD / "tests" / "pair_metrics"), rule], input="\n".join(lines) + "\n",
                          stdout=subprocess.PIPE, text=True, check=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(lines), f"{len(found)} answers to {len(lines)} pairs"
    return [{name: float.fromhex(value) for name, value in one.items() if name != "ok"}
            if one["ok"] else None for one in found]


def near(a: float, b: float, rel: float, absolute: float = 0.0) -> bool:
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b or abs(a - b) <= max(rel * abs(b), absolute)


class Vectors(unittest.TestCase):
    def rows(self, root: Path, name: str) -> List[Dict[str, str]]:
        with open(root / "compare" / "vectors" / name, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def pairs(self, root: Path, rows: List[Dict[str, str]]) -> List[str]:
        folder = root / "compare" / "vectors"
        return [f"{folder}/{row['pair']}.my.npy\t{folder}/{row['pair']}.golden.npy" for row in rows]

    def test_torchair(self) -> None:
        names = {"cosine_similarity": "cosine", "max_relative_error": "max_rel",
                 "mean_relative_error": "mean_rel", "max_absolute_error": "max_abs",
                 "mean_absolute_error": "mean_abs", "kl_divergence": "kl",
                 "relative_euclidean_distance": "relative_euclidean",
                 "my_max_value": "target_max", "my_min_value": "target_min",
                 "my_mean_value": "target_mean", "golden_max_value": "golden_max",
                 "golden_min_value": "golden_min", "golden_mean_value": "golden_mean"}
        checked = 0
        for root in roots():
            rows = self.rows(root, "torchair_metrics.csv")
            for row, found in zip(rows, metrics("torchair", self.pairs(root, rows))):
                if found is None:  # the counts differ
                    self.assertEqual(row["cosine_similarity"], "", row["pair"])
                    continue
                for column, name in names.items():
                    with self.subTest(pair=row["pair"], metric=column):
                        empty = row[column] == ""
                        wanted = math.nan if empty else float(row[column])
                        absolute = 2e-6 if name == "kl" else 1e-9 if name == "cosine" else 1e-7 \
                            if name.endswith("mean") else 0.0
                        if found["count"] == 0:
                            self.assertTrue(empty)
                        elif empty and column.startswith(("my_", "golden_")):
                            self.assertFalse(math.isfinite(found[name]))
                        else:
                            self.assertTrue(near(found[name], wanted, 1e-5, absolute),
                                            f"{found[name]} instead of {wanted}")
                        checked += 1
        self.assertGreater(checked, 200)

    def test_general(self) -> None:
        names = {"Cosine": "cosine", "EucDist": "euclidean", "MaxAbsErr": "max_abs",
                 "MaxRelativeErr": "max_rel", "One Thousandth Err Ratio": "rel_below_1e3",
                 "Five Thousandths Err Ratio": "rel_below_5e3"}
        checked = 0
        for root in roots():
            rows = self.rows(root, "general_metrics.csv")
            for row, found in zip(rows, metrics("general", self.pairs(root, rows))):
                for column, name in names.items():
                    cell = row[column]
                    if cell in ("unsupported", "shape unmatched"):
                        continue  # decided by shapes, before any metric
                    with self.subTest(pair=row["pair"], metric=column):
                        assert found is not None
                        wanted = math.nan if cell in ("N/A", "Nan") else float(cell)
                        # The tool prints 12 decimals, and a cosine near 1 with 6. Counts are 0 where
                        # nothing could be computed.
                        value = found[name]
                        if name == "cosine" and value > 0.9999:
                            value = round(value, 6)
                        if cell == "N/A" and name.startswith("rel_below"):
                            continue
                        self.assertTrue(near(value, wanted, 1e-9, 1.1e-12 if name != "euclidean" else 0),
                                        f"{value} instead of {wanted}")
                        checked += 1
        self.assertGreater(checked, 100)


class Precheck(unittest.TestCase):
    """The values of each standard, computed directly; their tool sums in float32."""

    NAMES = {
        ("benchmark", "small_value_err_ratio"): "small_error_rate",
        ("benchmark", "max_rel_error"): "precheck_max_rel",
        ("benchmark", "mean_rel_error"): "precheck_mean_rel",
        ("benchmark", "rmse"): "precheck_rmse",
        ("benchmark", "eb"): "precheck_balance",
        ("absolute_threshold", "inf_nan_error_ratio"): "inf_nan_error_rate",
        ("absolute_threshold", "rel_err_ratio"): "rel_error_rate",
        ("absolute_threshold", "abs_err_ratio"): "abs_error_rate",
        ("accumulative_error", "inf_nan_error_ratio"): "acc_inf_nan_error_rate",
        ("accumulative_error", "rel_err_ratio"): "acc_rel_error_rate",
        ("accumulative_error", "abs_err_ratio"): "acc_abs_error_rate",
        ("accumulative_error", "eb"): "precheck_balance",
        ("ulp", "max_ulp_error"): "max_ulp",
        ("ulp", "mean_ulp_error"): "mean_ulp",
        ("ulp", "ulp_error_proportion"): "ulp_over_share",
        ("thousandth", "rel_err_thousandth"): "rel_below_1e3",
        ("binary", "error_rate"): "unequal",
        ("dual", "0.01"): "rel_below_1e2",
        ("dual", "0.001"): "rel_below_1e3",
        ("dual", "0.0001"): "rel_below_1e4",
        ("cosine", "value"): "cosine",
        ("max_abs", "value"): "max_abs",
    }

    def cases(self, root: Path) -> List[dict]:
        manifest = json.loads((root / "precheck" / "metrics" / "manifest.json").read_text("utf-8"))
        return [case for case in manifest["cases"] if "standards" in case]

    def test_standards(self) -> None:
        checked = 0
        for root in roots():
            folder = root / "precheck" / "metrics"
            cases = self.cases(root)
            lines = [f"{folder}/{case['device']['file']}\t{folder}/{case['bench']['file']}\t"
                     f"{case['device']['dtype']}\t{case['bench']['dtype']}" for case in cases]
            for case, found in zip(cases, metrics("precheck", lines)):
                assert found is not None, case["id"]
                for (standard, key), name in self.NAMES.items():
                    wanted = case["standards"].get(standard, {}).get(key)
                    if isinstance(wanted, dict) and "ratio" in wanted:
                        wanted = wanted["ratio"]
                    if not isinstance(wanted, dict) or not isinstance(wanted.get("v"), (int, float)):
                        continue  # blank: the tool computed none
                    with self.subTest(case=case["id"], kind=case["kind"], metric=f"{standard}.{key}"):
                        value = float.fromhex(wanted["hex"]) if "hex" in wanted else float(wanted["v"])
                        mine = found[name] / found["count"] if name == "unequal" else found[name]
                        self.assertTrue(near(mine, value, 2e-6, 1e-12 if name == "cosine" else 0),
                                        f"{mine} instead of {value}")
                        checked += 1
        self.assertGreater(checked, 300)


if __name__ == "__main__":
    unittest.main()
