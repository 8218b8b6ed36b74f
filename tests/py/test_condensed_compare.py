"""Dumps of which only statistics are left, against each other and against full ones: what differs
must be seen, and what cannot be judged must not pass."""

import csv
import io
import json
import os
import shutil
import subprocess
import unittest
from pathlib import Path
from typing import Dict, Optional

import numpy as np

from rights import make_folder

PLUMB = str(Path(os.environ["PLUMB_BUILD"]) / "plumb")
STATISTICS = "minmax,mean,norm"

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


def wide(values: np.ndarray) -> np.ndarray:
    """Large enough for condensing to pay."""
    return np.concatenate([values, np.full(4096 - values.size, values[-1], values.dtype)])


class NotFinite(Folder):
    def test_nan_hides_nothing(self) -> None:
        big = wide(np.array([np.nan] + [1000.0] * 15, np.float32))
        small = wide(np.array([np.nan] + [1.0] * 15, np.float32))
        for keep, golden_keep in (("all", "same"), (STATISTICS, "same"), ("all", None)):
            result, message = self.verdict(big, small, keep, golden_keep)
            self.assertEqual(result, "FAIL", message)
            self.assertIn("against", message)

    def test_numbers_of_nan(self) -> None:
        many, one = np.ones(4096, np.float32), np.ones(4096, np.float32)
        many[:15] = np.nan
        one[0] = np.nan
        for keep in ("all", STATISTICS, "minmax", "crc32", "norm"):
            if keep == "crc32":
                continue
            result, message = self.verdict(many, one, keep)
            self.assertEqual((result, message[:13]), ("FAIL", "15 NaN values"), (keep, message))

    def test_numbers_of_infinities(self) -> None:
        plus, minus = np.ones(4096, np.float32), np.ones(4096, np.float32)
        plus[7] = np.inf
        minus[7] = -np.inf
        two = plus.copy()
        two[9] = np.inf
        for target, golden in ((plus, minus), (two, plus), (plus, np.ones(4096, np.float32))):
            self.assertEqual(self.verdict(target, golden)[0], "FAIL")

    def test_the_same_nan_is_suspicious(self) -> None:
        values = np.linspace(1, 2, 4096, dtype=np.float32)
        values[3] = np.nan
        rows = self.compare(self.dump({"x": values}, "all"), self.dump({"x": values}, "all"))
        self.assertEqual(rows["x"]["Result"], "PASS")
        self.assertIn("(1 suspicious)", rows["closing"]["text"])

    def test_the_same_infinities_pass(self) -> None:
        mask = np.zeros((64, 64), np.float32)
        mask[np.triu_indices(64, 1)] = -np.inf
        result, message = self.verdict(mask, mask + np.float32(0), STATISTICS)
        self.assertEqual((result, "0%" in message), ("PASS", True), message)

    def test_finite_values_beside_an_infinity(self) -> None:
        target, golden = np.ones(4096, np.float32), np.ones(4096, np.float32)
        for values in (target, golden):
            values[0], values[1] = np.inf, 1000
        target[2:100] = 1000  # the range stays the same
        self.assertEqual(self.verdict(target, golden, STATISTICS)[0], "FAIL")

    def test_nothing_but_nan(self) -> None:
        values = np.full(4096, np.nan, np.float32)
        rows = self.compare(self.dump({"x": values}, STATISTICS), self.dump({"x": values}, STATISTICS))
        self.assertEqual(rows["x"]["Result"], "N/A")
        self.assertIn("0 pass, 0 fail, 1 suspicious and not judged", rows["closing"]["text"])
        self.assertEqual(rows["code"]["code"], "0")


class Recorded(Folder):
    """dump.json trees, whose captures write four numbers down and count nothing."""

    def tree(self, name: str, shape: "list[int]", **statistics: float) -> Path:
        folder = self.folder / name
        folder.mkdir()
        leaf = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": shape,
                "requires_grad": False, **statistics}
        data = {"Torch.relu.0.forward": {"input_args": [], "input_kwargs": {}, "output": [leaf]}}
        (folder / "dump.json").write_text(
            json.dumps({"task": "statistics", "level": "L1", "dump_data_dir": None, "data": data}))
        return folder

    def row(self, shape: "list[int]", target: Dict[str, float],
            golden: Dict[str, float]) -> "tuple[str, str, str]":
        self.made += 1
        rows = self.compare(self.tree(f"t{self.made}", shape, **target),
                            self.tree(f"g{self.made}", shape, **golden))
        row = rows["Torch.relu.0.forward.output.0"]
        return row["Result"], row["Err_message"], rows["closing"]["text"]

    def test_nan_on_both_sides_is_not_judged(self) -> None:
        nan = dict.fromkeys(("Max", "Min", "Mean", "Norm"), float("nan"))
        result, message, closing = self.row([16], nan, nan)
        self.assertEqual(result, "N/A")
        self.assertIn("not judged", message)
        self.assertIn("1 compared: 0 pass, 0 fail, 1 suspicious and not judged", closing)

    def test_an_infinity_on_both_sides_is_no_proof(self) -> None:
        inf = float("inf")
        values = {"Max": inf, "Min": 1.0, "Mean": inf, "Norm": inf}
        result, _, closing = self.row([16], values, values)
        self.assertEqual(result, "PASS")
        self.assertIn("(1 suspicious)", closing)

    def test_nan_on_one_side(self) -> None:
        nan = dict.fromkeys(("Max", "Min", "Mean", "Norm"), float("nan"))
        one = {"Max": 1.0, "Min": 1.0, "Mean": 1.0, "Norm": 4.0}
        for pair in ((nan, one), (one, nan)):
            result, message, _ = self.row([16], *pair)
            self.assertEqual(result, "FAIL")
            self.assertIn("NaN on one side only", message)

    def test_a_small_mean_is_judged_by_the_norm(self) -> None:
        norm = 64.0  # 4,096 values of about 1
        golden = {"Max": 3.5, "Min": -3.5, "Mean": 1e-9, "Norm": norm}
        result, message, _ = self.row([64, 64], {**golden, "Mean": 4.09e-9}, golden)
        self.assertEqual((result, message[:29]), ("PASS", "largest relative difference 3"), message)
        result, message, _ = self.row([64, 64], {**golden, "Mean": 0.02}, golden)
        self.assertEqual(result, "FAIL")
        self.assertIn("2% of norm/sqrt(n) >= 1%", message)
        # The column says what it always said.
        rows = self.compare(self.tree("a", [64, 64], **{**golden, "Mean": 4e-9}),
                            self.tree("b", [64, 64], **golden))
        self.assertEqual(rows["Torch.relu.0.forward.output.0"]["MeanRelativeErr"], "300%")

    def test_a_large_mean_is_judged_as_ever(self) -> None:
        golden = {"Max": 1.0, "Min": 1.0, "Mean": 1.0, "Norm": 4.0}
        self.assertEqual(self.row([16], {**golden, "Mean": 1.02}, golden)[0], "FAIL")


class Order(Folder):
    def test_a_reversed_tensor_without_its_sketch(self) -> None:
        values = np.random.default_rng(1).standard_normal(4096).astype(np.float32)
        rows = self.compare(self.dump({"x": values[::-1]}, STATISTICS + ",crc32"),
                            self.dump({"x": values}, STATISTICS + ",crc32"))
        self.assertEqual(rows["x"]["Result"], "N/A")
        self.assertIn("the checksums differ", rows["x"]["Err_message"])
        self.assertIn("1 suspicious and not judged", rows["closing"]["text"])

    def test_the_same_bits(self) -> None:
        values = np.random.default_rng(1).standard_normal(4096).astype(np.float32)
        for golden_keep in ("all", None):
            self.assertEqual(self.verdict(values, values, "all", golden_keep),
                             ("PASS", "the checksums are equal"))


if __name__ == "__main__":
    unittest.main()
