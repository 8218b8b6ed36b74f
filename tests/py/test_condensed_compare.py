"""Dumps of which only statistics are left, against each other and against full ones: what differs
must be seen, and what cannot be judged must not pass."""

import csv
import io
import json
import shutil
import subprocess
import unittest
import zlib
from pathlib import Path
from typing import Dict

import numpy as np

from condensed_case import PLUMB, Folder, Tensors
from ge_dump import Op, Tensor, fx_folder, ge_folder, write_fx, write_ge, write_graph

STATISTICS = "minmax,mean,norm"


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

    def test_no_sign_of_nan(self) -> None:
        """In no mode does a message say -nan or nan%; compare() looks."""
        values = [np.full(4096, value, np.float32)
                  for value in (np.nan, -np.nan, np.inf, -np.inf, 0, 1)]
        values.append(np.where(np.arange(4096) % 2, np.inf, -np.inf).astype(np.float32))
        for keep in (None, "all", STATISTICS):
            for shift in range(1, len(values)):
                others = values[shift:] + values[:shift]
                self.compare(self.dump({f"x{i}": a for i, a in enumerate(values)}, keep),
                             self.dump({f"x{i}": b for i, b in enumerate(others)}, keep))

    def test_nothing_but_nan(self) -> None:
        for value in (np.nan, np.inf):
            values = np.full(4096, value, np.float32)
            for keep in (STATISTICS, "sketch"):
                rows = self.compare(self.dump({"x": values}, keep), self.dump({"x": values}, keep))
                self.assertEqual(rows["x"]["Result"], "N/A", (value, keep))
                self.assertIn("0 pass, 0 fail, 1 suspicious and not judged",
                              rows["closing"]["text"])
                self.assertEqual(rows["code"]["code"], "0")


class Recorded(Folder):
    """dump.json trees, whose captures write four numbers down and count nothing."""

    def tree(self, name: str, shape: "list[int]", **statistics: object) -> Path:
        folder = self.folder / name
        folder.mkdir()
        leaf = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": shape,
                "requires_grad": False, **statistics}
        data = {"Torch.relu.0.forward": {"input_args": [], "input_kwargs": {}, "output": [leaf]}}
        (folder / "dump.json").write_text(
            json.dumps({"task": "statistics", "level": "L1", "dump_data_dir": "", "data": data}))
        return folder

    def row(self, shape: "list[int]", target: Dict[str, object],
            golden: Dict[str, object]) -> "tuple[str, str, str]":
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

    def test_nan_as_text(self) -> None:
        words = {"Max": "nan", "Min": "NaN", "Mean": "nan", "Norm": "inf"}
        self.assertEqual(self.row([16], words, words)[0], "N/A")
        one = {"Max": 1.0, "Min": 1.0, "Mean": 1.0, "Norm": 4.0}
        self.assertEqual(self.row([16], words, one)[0], "FAIL")

    def test_a_checksum_beside_values(self) -> None:
        """One side recorded a checksum besides, the other has the values: that is compared too."""
        values = np.random.default_rng(3).standard_normal(1000).astype(np.float32)
        numbers = {"Max": float(values.max()), "Min": float(values.min()),
                   "Mean": float(np.float32(values.mean(dtype=np.float64))),
                   "Norm": float(np.float32(np.linalg.norm(values.astype(np.float64))))}
        target = self.tree("target", [1000], md5=f"{zlib.crc32(values.tobytes()):08x}", **numbers)
        file = "Torch.relu.0.forward.output.0.npy"
        for name, stored, wanted in (("same", values, "PASS"), ("turned", values[::-1], "N/A"),
                                     ("wider", values.astype(np.float64), "PASS")):
            golden = self.tree(name, [1000], data_name=file, **numbers)
            (golden / "dump_tensor_data").mkdir()
            np.save(golden / "dump_tensor_data" / file, stored)
            row = self.compare(target, golden)["Torch.relu.0.forward.output.0"]
            self.assertEqual(row["Result"], wanted, row["Err_message"])

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

    def test_a_small_mean_without_its_norm(self) -> None:
        """The deviation, which is kept beside the mean, tells the same."""
        golden = np.random.default_rng(2).standard_normal(4096)
        golden -= golden.mean()
        target = golden + 1e-9
        for keep in ("mean", STATISTICS):
            result, message = self.verdict(target, golden, keep)
            self.assertEqual((result, message[:27]), ("PASS", "largest relative difference"))
            self.assertEqual(self.verdict(golden + 0.02, golden, keep)[0], "FAIL")

    def test_a_large_mean_is_judged_as_ever(self) -> None:
        golden = {"Max": 1.0, "Min": 1.0, "Mean": 1.0, "Norm": 4.0}
        self.assertEqual(self.row([16], {**golden, "Mean": 1.02}, golden)[0], "FAIL")


class Integers(Folder):
    """64-bit integers beyond 2^53, where float64 has holes."""

    def row(self, target: Path, golden: Path) -> Dict[str, str]:
        return self.compare(target, golden, "--format", "csv")["x"]

    def test_condensed(self) -> None:
        for dtype, large in ((np.int64, 2 ** 53), (np.int64, 2 ** 63 - 2), (np.int64, -2 ** 62),
                             (np.uint64, 2 ** 64 - 2)):
            golden = np.full(4096, large, dtype)
            target = golden.copy()
            target[5] = large + 1
            small = [self.dump({"x": values}, "all") for values in (target, golden)]
            full = [self.dump({"x": values}) for values in (target, golden)]
            tensor = json.loads(next(small[0].iterdir()).read_text())["tensors"][0]
            self.assertEqual((tensor["max"], tensor["min"]), (large + 1, large))
            for a, b in ((small[0], small[1]), (small[0], full[1]), (full[0], small[1])):
                row = self.row(a, b)
                self.assertEqual((float(row["Max diff"]), float(row["Min diff"])), (1, 0), row)
                self.assertIn("integers that are not the same", row["Err_message"])
            self.assertEqual(self.row(small[1], full[1])["Err_message"], "the hashes of all bytes are equal")
            for folder in (small[0], full[0]):
                text = subprocess.run([PLUMB, "summary", str(folder), "--format", "csv"],
                                      check=True, stdout=subprocess.PIPE, text=True).stdout
                line = next(csv.DictReader(io.StringIO(text)))
                self.assertEqual((line["Max"], line["Min"]), (str(large + 1), str(large)))

    def test_recorded(self) -> None:
        folders = []
        for name, largest in (("a", 2 ** 53 + 1), ("b", 2 ** 53)):
            leaf = {"type": "torch.Tensor", "dtype": "torch.int64", "shape": [5], "Max": largest,
                    "Min": 0, "Mean": None, "Norm": None, "requires_grad": False}
            data = {"Torch.x.0.forward": {"input_args": [], "input_kwargs": {}, "output": [leaf]}}
            (self.folder / name).mkdir()
            (self.folder / name / "dump.json").write_text(json.dumps(
                {"task": "statistics", "level": "L1", "dump_data_dir": None, "data": data}))
            folders.append(self.folder / name)
        rows = self.compare(*folders)
        row = rows["Torch.x.0.forward.output.0"]
        self.assertEqual(float(row["Max diff"]), 1)
        self.assertIn("integers that are not the same", row["Err_message"])
        self.assertIn("1 pass (1 suspicious)", rows["closing"]["text"])


class Shapes(Folder):
    def test_one_behaviour_everywhere(self) -> None:
        """What no tensor can be is an error of its row to every command."""
        for number, shape in enumerate(([1] * 70, [2 ** 40, 2 ** 40], [-1, 3])):
            leaf = {"type": "torch.Tensor", "dtype": "torch.float32", "Max": 1.0, "Min": 1.0,
                    "Mean": 1.0, "Norm": 1.0, "requires_grad": False}
            data = {f"Torch.relu.{i}.forward": {"input_args": [], "input_kwargs": {},
                                                "output": [{**leaf, "shape": dims}]}
                    for i, dims in enumerate((shape, [1] * 64))}
            folder = self.folder / f"shape{number}"
            folder.mkdir()
            (folder / "dump.json").write_text(json.dumps(
                {"task": "statistics", "level": "L1", "dump_data_dir": None, "data": data}))
            rows = self.compare(folder, folder)
            self.assertEqual(rows["code"]["code"], "1")
            self.assertEqual([rows[f"Torch.relu.{i}.forward.output.0"]["Result"] for i in (0, 1)],
                             ["FAIL", "PASS"])
            for command in ("info", "summary"):
                done = subprocess.run([PLUMB, command, str(folder)], stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, timeout=600)
                self.assertEqual(done.returncode, 1, command)

    def test_beside_values(self) -> None:
        """The values of one side have a shape, too."""
        values = np.random.default_rng(1).standard_normal(4096).astype(np.float32)
        for keep in ("all", "crc32", "minmax", "sketch"):
            for shape, result in (((64, 64), "PASS"), ((64, 1, 64), "PASS"), ((32, 128), "FAIL")):
                folders = [self.dump({"x": values.reshape(64, 64)}, keep),
                           self.dump({"x": values.reshape(shape)})]
                for target, golden in (folders, folders[::-1]):
                    row = self.compare(target, golden)["x"]
                    self.assertEqual(row["Result"], result, (keep, shape))
                    if result == "FAIL":
                        self.assertIn("the shapes differ: target [", row["Err_message"])


class Order(Folder):
    def test_a_reversed_tensor_without_its_sketch(self) -> None:
        values = np.random.default_rng(1).standard_normal(4096).astype(np.float32)
        rows = self.compare(self.dump({"x": values[::-1]}, STATISTICS + ",crc32"),
                            self.dump({"x": values}, STATISTICS + ",crc32"))
        self.assertEqual(rows["x"]["Result"], "N/A")
        self.assertIn("the checksums differ", rows["x"]["Err_message"])
        self.assertIn("1 suspicious and not judged", rows["closing"]["text"])

    def test_rounding_of_sums_is_no_difference(self) -> None:
        """The norm of the same values in another order may differ in its last digit."""
        seen = set()
        for seed in range(20):
            values = np.random.default_rng(seed).standard_normal(1024).astype(np.float32)
            keep = STATISTICS + ",crc32"
            rows = self.compare(self.dump({"x": values[::-1]}, keep),
                                self.dump({"x": values}, keep))
            seen.add(rows["x"]["NormRelativeErr"])
            self.assertEqual(rows["x"]["Result"], "N/A", seed)
        self.assertGreater(len(seen), 1, "no norm was rounded differently")

    def test_the_same_bits(self) -> None:
        values = np.random.default_rng(1).standard_normal(4096).astype(np.float32)
        for golden_keep in ("all", None):
            self.assertEqual(self.verdict(values, values, "all", golden_keep),
                             ("PASS", "the hashes of all bytes are equal"))


class Small(Folder):
    """Files too small to be condensed keep their values, which say more than statistics."""

    def rows(self, target: Tensors, golden: Tensors, keep: str) -> Dict[str, Dict[str, str]]:
        large = {f"large{i}": np.random.default_rng(i).standard_normal(4096) for i in range(9)}
        rows = self.compare(self.dump({**large, **target}, keep),
                            self.dump({**large, **golden}, keep))
        for name in large:
            self.assertEqual(rows[name]["Result"], "PASS")
        return rows

    def test_same(self) -> None:
        same = {"empty": np.zeros((0, 3), np.float32), "scalar": np.float32(3),
                "values": np.arange(1, 7, dtype=np.float32), "whole": np.arange(6)}
        for keep in ("all", "crc32", "minmax"):
            rows = self.rows(same, {**same, "values": same["values"] * np.float32(1 + 1e-6)}, keep)
            self.assertEqual({name: rows[name]["Result"] for name in same},
                             dict.fromkeys(same, "PASS"))

    def test_others(self) -> None:
        values = np.arange(1, 7, dtype=np.float32)
        target = {"order": values[::-1], "shape": values.reshape(2, 3), "kind": values,
                  "empty": np.zeros((0, 3), np.float32)}
        golden = {"order": values, "shape": values.reshape(3, 2), "kind": values.astype(np.int32),
                  "empty": np.zeros((0, 4), np.float32)}
        for keep in ("all", "crc32", "minmax"):
            rows = self.rows(target, golden, keep)
            self.assertEqual({name: rows[name]["Result"] for name in target},
                             dict.fromkeys(target, "FAIL"))
            self.assertIn("by data: ", rows["order"]["Err_message"])

    def test_dump_json(self) -> None:
        """The tree has statistics of everything, and of a small tensor both sides have values."""
        values = np.arange(1, 7, dtype=np.float32)
        for target, result in ((values, "PASS"), (values[::-1], "FAIL")):
            folders = []
            for side, small in (("t", target), ("g", values)):
                folder = self.folder / (side + result)
                (folder / "dump_tensor_data").mkdir(parents=True)
                data = {}
                arrays = [np.random.default_rng(i).standard_normal(4096).astype(np.float32)
                          for i in range(3)] + [small]
                for i, array in enumerate(arrays):
                    name = f"Torch.x.{i}.forward.output.0.npy"
                    np.save(folder / "dump_tensor_data" / name, array)
                    leaf = {"type": "torch.Tensor", "dtype": "torch.float32",
                            "shape": list(array.shape), "Max": float(array.max()),
                            "Min": float(array.min()), "Mean": float(array.mean()),
                            "Norm": float(np.linalg.norm(array)), "requires_grad": False,
                            "data_name": name}
                    data[f"Torch.x.{i}.forward"] = {"input_args": [], "input_kwargs": {},
                                                    "output": [leaf]}
                (folder / "dump.json").write_text(json.dumps(
                    {"task": "tensor", "level": "L1", "dump_data_dir": None, "data": data}))
                subprocess.run([PLUMB, "condense", str(folder), "--settle", "0.01"], check=True,
                               stdout=subprocess.PIPE, timeout=600)
                folders.append(folder)
            rows = self.compare(*folders)
            self.assertEqual([rows[f"Torch.x.{i}.forward.output.0"]["Result"] for i in range(4)],
                             ["PASS"] * 3 + [result])


class Graphs(Folder):
    """GE and FX dumps, condensed: the same pairs, by what was kept."""

    def graph(self, name: str, scale: float = 1, reverse: bool = False) -> Path:
        root = self.folder / name
        write_graph(root / "ge", [Op(f"Add{i}", ["x", "y"], [f"add_{i}-aten.add.OUTPUT.0"])
                                  for i in range(3)])
        rng = np.random.default_rng(4)
        for i in range(3):
            a, b = (rng.standard_normal((30, 40)).astype(np.float32) for _ in range(2))
            out = a + b
            write_fx(fx_folder(root / "fx"), f"add_{i}-aten.add", [a, b], [out])
            if i == 1:
                out = out[::-1] if reverse else out * np.float32(scale)
            write_ge(ge_folder(root / "ge"), "Add", f"Add{i}", i, [Tensor(a), Tensor(b)],
                     [Tensor(np.ascontiguousarray(out))])
        return root

    def results(self, root: Path, full: Path, keep: str) -> "list[list[str]]":
        """Results of the nine rows, for condensed and full sides."""
        small = self.folder / f"small{self.made}"
        self.made += 1
        shutil.copytree(root, small)
        done = subprocess.run([PLUMB, "condense", str(small), "--settle", "0.01", "--keep", keep],
                              check=True, stdout=subprocess.PIPE, text=True, timeout=600)
        self.assertIn("12 files with 18 tensors condensed", done.stdout)
        found = []
        for target, golden in ((small, small), (small, full), (full, small)):
            done = subprocess.run([PLUMB, "compare", str(target / "ge"), str(golden / "fx"),
                                   "--format", "csv"], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, timeout=600)
            self.rows = list(csv.DictReader(io.StringIO(done.stdout)))
            self.closing = done.stderr
            self.assertEqual(len(self.rows), 9, done.stderr)
            found.append([row["Result"] for row in self.rows])
        return found

    def test_checksums_alone(self) -> None:
        right, wrong = self.graph("right"), self.graph("wrong", scale=1.0001)
        for results in self.results(right, right, "crc32"):
            self.assertEqual(results, ["PASS"] * 9)
        self.assertEqual([row["NPU MD5"] for row in self.rows],
                         [row["BENCH MD5"] for row in self.rows])
        self.assertEqual({len(row["NPU MD5"]) for row in self.rows}, {8})
        self.assertIn("rule: checksums are equal", self.closing)
        for results in self.results(wrong, wrong, "crc32"):
            self.assertEqual(results.count("FAIL"), 1)
        self.assertEqual({row["Err_message"][:20] for row in self.rows if row["Result"] == "FAIL"},
                         {"the checksums differ"})

    def test_everything(self) -> None:
        keep = "minmax,mean,norm,crc32,sketch"
        right = self.graph("right")
        for results in self.results(right, right, keep):
            self.assertEqual(results, ["PASS"] * 9)
        self.assertEqual({float(row["Max diff"]) for row in self.rows}, {0.0})
        self.assertIn("rule: statistics differ by less than 1%", self.closing)
        for wrong in (self.graph("scaled", scale=1.03), self.graph("reversed", reverse=True)):
            for results in self.results(wrong, wrong, keep):
                self.assertEqual(results.count("FAIL"), 1)

    def test_the_mean_alone(self) -> None:
        right, wrong = self.graph("right"), self.graph("wrong", scale=1 + 1e-4)
        for root in (right, wrong):  # means near zero, which the scale moves by next to nothing
            for results in self.results(root, root, "mean"):
                self.assertEqual(results, ["PASS"] * 9)

    def test_the_sketch_alone(self) -> None:
        right, wrong = self.graph("right"), self.graph("wrong", reverse=True)
        for results in self.results(right, right, "sketch"):
            self.assertEqual(results, ["PASS"] * 9)
        for results in self.results(wrong, wrong, "sketch"):
            self.assertEqual(results.count("FAIL"), 1)


class Sketches(Folder):
    SIZE = 20000

    def setUp(self) -> None:
        super().setUp()
        self.rng = np.random.default_rng(9)
        self.golden = self.rng.standard_normal(self.SIZE).astype(np.float32)

    def both(self, target: np.ndarray, keep: str = "all") -> "tuple[str, str]":
        """Condensed against condensed, and against the values: the same verdict and number."""
        first = self.verdict(target, self.golden, keep)
        second = self.verdict(target, self.golden, keep, None)
        self.assertEqual(first[0], second[0])
        if keep == "all":  # without the norm, that is an estimate too
            self.assertEqual(first[1], second[1])
        return first

    def test_order(self) -> None:
        for keep in ("all", "sketch", "sketch,crc32"):
            for wrong in (self.golden[::-1], np.roll(self.golden, 1),
                          self.rng.permutation(self.golden)):
                result, message = self.both(wrong, keep)
                self.assertEqual(result, "FAIL")
                self.assertIn("by the sketches", message)

    def test_a_stripe(self) -> None:
        wrong = self.golden.copy()
        wrong[5000:5010] = -wrong[5000:5010]  # a distance of about 4 %, and the same norm
        self.assertEqual(self.both(wrong)[0], "FAIL")

    def test_rounding_passes(self) -> None:
        right = self.golden.astype(np.float16).astype(np.float32)
        result, message = self.both(right)
        self.assertEqual((result, message[:27]), ("PASS", "largest relative difference"))

    def test_the_limit_is_what_it_says(self) -> None:
        """A distance of 0.9 % never fails, one of 1.3 % always does."""
        noise = self.rng.standard_normal(self.SIZE)
        noise -= self.golden * (noise @ self.golden) / (self.golden @ self.golden)
        noise *= np.linalg.norm(self.golden) / np.linalg.norm(noise)
        for seed in range(4):
            noise = np.random.default_rng(seed).permutation(noise)
            for share, wanted in ((0.009, "PASS"), (0.013, "FAIL")):
                wrong = (self.golden + share * noise).astype(np.float32)
                self.assertEqual(self.both(wrong, "sketch,norm")[0], wanted)

    def test_other_types(self) -> None:
        """The sketch is of numbers, not of bits: types may differ, complex numbers are two each."""
        pairs = ((self.golden.astype(np.float64), self.golden),
                 (self.golden.astype(np.float16), self.golden),
                 (self.golden.view(np.complex64), self.golden.view(np.complex64) + 0))
        for target, golden in pairs:
            self.assertEqual(self.verdict(target, golden)[0], "PASS")
        turned = self.golden.view(np.complex64) * np.complex64(1j)  # all sizes stay
        self.assertEqual(self.verdict(turned, self.golden.view(np.complex64))[0], "FAIL")

    def test_dump_json(self) -> None:
        """A tree whose tensors were condensed has the capture's statistics, and the sketch besides."""
        folders = []
        for name, values in (("a", self.golden[::-1]), ("b", self.golden), ("full", self.golden)):
            folder = self.folder / name
            (folder / "dump_tensor_data").mkdir(parents=True)
            file = "Torch.relu.0.forward.output.0.npy"
            np.save(folder / "dump_tensor_data" / file, values)
            leaf = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [self.SIZE],
                    "Max": float(values.max()), "Min": float(values.min()), "Mean": 0.001,
                    "Norm": float(np.linalg.norm(values)), "requires_grad": False, "data_name": file}
            data = {"Torch.relu.0.forward": {"input_args": [], "input_kwargs": {}, "output": [leaf]}}
            (folder / "dump.json").write_text(json.dumps(
                {"task": "tensor", "level": "L1", "framework": "pytorch",
                 "dump_data_dir": str(folder / "dump_tensor_data"), "data": data}))
            folders.append(folder)
        for folder in folders[:2]:
            subprocess.run([PLUMB, "condense", str(folder), "--settle", "0.01"], check=True,
                           stdout=subprocess.PIPE, timeout=600)
        a, b, full = folders
        for target, golden, wanted in ((a, b, "FAIL"), (a, full, "FAIL"), (full, a, "FAIL"),
                                       (b, full, "PASS"), (full, b, "PASS")):
            row = self.compare(target, golden)["Torch.relu.0.forward.output.0"]
            self.assertEqual(row["Result"], wanted, row["Err_message"])


if __name__ == "__main__":
    unittest.main()
