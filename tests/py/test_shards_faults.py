"""Parts of ranks with a fault: nothing passes that was not looked at, and right variants are not blamed."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Union

import numpy as np

PLUMB = Path(os.environ["PLUMB_BUILD"]) / "plumb"
Parts = Union[np.ndarray, List[Optional[np.ndarray]]]


class Said(NamedTuple):
    code: int
    rows: List[Dict[str, str]]
    closing: str

    def row(self, name: str = "w") -> Dict[str, str]:
        return next(row for row in self.rows if row["API Name"] == name)


def halves(whole: np.ndarray, axis: int = 0, count: int = 2) -> List[np.ndarray]:
    return [part.copy() for part in np.split(whole, count, axis)]


class FaultsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="plumb-faults-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.random = np.random.default_rng(0)
        self.whole = self.numbers(8, 6)

    def numbers(self, *shape: int) -> np.ndarray:
        return self.random.standard_normal(shape).astype("f4")

    def save(self, side: str, tensors: Dict[str, Parts]) -> None:
        """An array is on no rank; of a list each rank has one, or (None) none."""
        for name, parts in tensors.items():
            ranked = isinstance(parts, list)
            for rank, part in enumerate(parts if ranked else [parts]):
                folder = self.folder / side / (f"rank{rank}" if ranked else "")
                folder.mkdir(parents=True, exist_ok=True)
                if part is not None:
                    np.save(folder / f"{name}.npy", part)

    def compare(self, *options: str) -> Said:
        ran = subprocess.run([str(PLUMB), "compare", str(self.folder / "target"), str(self.folder / "golden"), "--shards",
                              *options, "--format", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertIn(ran.returncode, (0, 1), ran.stderr)
        rows = json.loads(ran.stdout)
        return Said(ran.returncode, rows if isinstance(rows, list) else rows["rows"], ran.stderr)

    def said(self, target: Parts, golden: Parts, *options: str) -> Said:
        for side in ("target", "golden"):
            shutil.rmtree(self.folder / side, ignore_errors=True)
        self.save("target", {"w": target})
        self.save("golden", {"w": golden})
        return self.compare(*options)

    def passes(self, said: Said) -> None:
        self.assertEqual([("PASS", "normal")] * len(said.rows), [(row["Result"], row["severity"]) for row in said.rows],
                         said.rows)

    def fails(self, said: Said) -> None:
        self.assertEqual(1, said.code, said.rows)

    def suspects(self, said: Said, reason: str, name: str = "w") -> None:
        """It passes, and the row and the closing lines say what is odd."""
        row = said.row(name)
        self.assertEqual(("PASS", "suspicious"), (row["Result"], row["severity"]), said)
        self.assertIn(reason, row["Err_message"])
        self.assertIn("suspicious", said.closing)

    def test_without_elements(self) -> None:
        empty = self.numbers(0, 6)
        for target, golden in (([empty] * 2, self.whole), ([self.whole] * 2, empty), ([self.whole] * 2, [empty] * 2),
                               ([empty] * 2, [self.whole] * 2)):
            self.fails(self.said(target, golden))
        for golden in (empty, [empty] * 2, [empty] * 3):
            self.passes(self.said([empty] * 2, golden))

    def test_infinity_in_a_sum(self) -> None:
        other = self.numbers(8, 6)
        for reduce in ("partial", "mean"):
            whole = (self.whole + other) / (1 if reduce == "partial" else 2)
            dims = ("--dims", f"w=a b[tp:{reduce}]")
            self.passes(self.said([self.whole, other], whole, *dims))
            self.fails(self.said([self.whole, other], np.full_like(whole, -np.inf), *dims))
            broken = self.whole.copy()
            broken[0, 0] = np.inf
            self.fails(self.said([broken, other], whole, *dims))

    def test_replica_of_a_slice(self) -> None:
        """Tensor parallel by data parallel: what stands for a slice is not all of it."""
        a, b = halves(self.whole)
        given = ("--dims", "w=o[tp] i", "--parallel", "tp=2,dp=2")
        for options in ((), given):
            self.passes(self.said([a, b, a, b], self.whole, *options))
            for wrong in (b * np.nan, b * 0, self.numbers(4, 6)):
                said = self.said([a, b, a, wrong], self.whole, *options)
                self.fails(said)
                self.assertEqual("FAIL", said.row("w (rank 3)")["Result"])
                self.assertIn("the error is in the part of rank 3", said.row("w (rank 3)")["Layout"])
                self.assertIn("ranks 1 and 3, replicas, differ", said.row()["Layout"])
        near = (b * 1.00001).astype("f4")
        self.suspects(self.said([a, b, a, b, a, near], self.whole), "from its replicas", "w (rank 5)")
        self.fails(self.said([a * 1.3, b, a, b], self.whole))
        self.assertEqual("PASS", self.said([a * 1.3, b, a, b], self.whole).row("w (rank 2)")["Result"])
        same = self.said([a, b, a, b * 0], [a, b, a, b * 0], *given)
        self.suspects(same, "from its replicas", "w (rank 3)")

    def test_replica_of_a_term(self) -> None:
        a, b, wrong = (self.numbers(8, 6) for _ in range(3))
        dims = ("--dims", "w=o i[tp:partial]", "--parallel", "tp=2,dp=2")
        self.passes(self.said([a, b, a, b], a + b, *dims))
        said = self.said([a, b, a, wrong], a + b, *dims)
        self.fails(said)
        self.assertEqual("FAIL", said.row("w (rank 3)")["Result"])

    def test_shapes_alone(self) -> None:
        """Where one part is right and the others are something else, they are no replicas."""
        others = [self.numbers(8, 6) for _ in range(3)]
        said = self.said([self.whole] + others, self.whole)
        self.fails(said)
        self.assertIn("3 parts not compared, the first of rank 1", said.row()["Err_message"])
        self.fails(self.said(halves(self.whole) + [self.numbers(4, 6) for _ in range(6)], self.whole))

    def test_rows_that_golden_lacks(self) -> None:
        rows = self.numbers(20, 6)
        for count in (10, 15):
            self.fails(self.said(halves(rows, 0, 4), rows[:count].copy()))

    def test_parts_that_the_other_side_lacks(self) -> None:
        a, b, c, d = (self.numbers(8, 6) for _ in range(4))
        self.fails(self.said([a, b], [a, b, c, d]))
        self.fails(self.said([a, b, c], [a, b, d, self.whole]))
        self.fails(self.said([a, b, None, d], [a, b, c, d]))
        self.passes(self.said([a, b, c, d], np.concatenate([a, b, c, d])))
        self.passes(self.said([a, b, a, b], [a, b]))

    def test_padding(self) -> None:
        """Only zeros are padding, and Layout counts them."""
        tensor = self.numbers(7, 5)
        for padding, good in ((0, True), (np.nan, False), (7, False)):
            parts = np.split(np.append(tensor.reshape(-1), padding).astype("f4"), 4)
            said = self.said(parts, tensor)
            (self.passes if good else self.fails)(said)
            if good:
                self.assertIn("padding of 1 zero ", said.row()["Layout"])
        rows = self.numbers(20, 6)
        self.fails(self.said(halves(rows, 0, 4), rows[:16].copy()))
        rows[16:] = 0
        said = self.said(halves(rows, 0, 4), rows[:16].copy())
        self.passes(said)
        self.assertIn("padding of 24 zeros", said.row()["Layout"])

    def test_order(self) -> None:
        """Shards that two ranks exchanged; an order that all tensors have is the run's own."""
        a, b, c, d = halves(self.whole, 0, 4)
        self.passes(self.said([a, b, c, d], self.whole))
        self.suspects(self.said([b, a, c, d], self.whole), "not in the order of the ranks")
        self.passes(self.said([a, a, b, b, c, c, d, d], self.whole))
        grid = [column for row in halves(self.whole) for column in halves(row, 1)]
        self.passes(self.said([grid[0], grid[2], grid[1], grid[3]], self.whole))
        for order in ((0, 1, 2, 3), (1, 0, 2, 3)):
            wholes = {f"t{i}": self.numbers(8, 6) for i in range(4)}
            parts: Dict[str, Parts] = {name: [halves(whole, 0, 4)[i] for i in order] for name, whole in wholes.items()}
            self.said([b, a, c, d], self.whole)
            self.save("target", parts)
            self.save("golden", dict(wholes))
            said = self.compare()
            if order[0]:
                self.passes(said)
            else:
                self.suspects(said, "unlike that of 4 other tensors")
                self.assertEqual(1, sum(row["severity"] == "suspicious" for row in said.rows))

    def test_sums_that_explain_too_much(self) -> None:
        whole = self.whole
        terms = [self.numbers(8, 6) for _ in range(4)]
        self.passes(self.said(terms, sum(terms)))
        self.passes(self.said(terms, sum(terms) / 4))
        self.suspects(self.said([whole / 4] * 4, whole), "the same bits")
        self.suspects(self.said([whole] + [whole * 0] * 3, whole), "only that of rank 0 is not zero")
        self.passes(self.said([np.array([512.0], "f4")] * 4, np.array([2048.0], "f4")))

    def test_factor(self) -> None:
        scaled = [4 * part for part in halves(self.whole, 0, 4)]
        self.suspects(self.said(scaled, self.whole), "4 times too large")
        self.save("target", {"w.grad": scaled})
        self.save("golden", {"w.grad": self.whole})
        self.assertEqual("normal", self.compare().row("w.grad")["severity"])

    def test_uneven_replicas(self) -> None:
        """Rank 3 has loaded the slice of rank 0."""
        a, b = halves(self.whole)
        self.suspects(self.said([a, b, a, a], self.whole), "some slices are on 1 rank and others on 3")

    def test_unlike_other_layers(self) -> None:
        """An all-reduce that one layer forgot."""
        target, golden = {}, {}
        for layer in range(4):
            whole = self.numbers(8, 6)
            terms = [self.numbers(8, 6) for _ in range(3)]
            name = f"layers.{layer}.mlp.output"
            target[name] = [whole] * 4 if layer != 2 else terms + [whole - sum(terms)]
            golden[name] = whole
        self.save("target", target)
        self.save("golden", golden)
        said = self.compare()
        self.suspects(said, "unlike 3 of 4 layers: replica of 4", "layers.2.mlp.output")
        self.assertEqual(1, sum(row["severity"] == "suspicious" for row in said.rows))

    def test_layouts_that_match_nothing(self) -> None:
        parts = halves(self.whole, 0, 4)
        said = self.said(parts, self.whole, "--dims", "q*=o[tp] i", "--dims", "w=o[tp] i")
        self.passes(said)
        self.assertIn("layouts that match no tensor: q* (1 of 2)", said.closing)
        self.suspects(self.said([self.whole] * 4, self.whole, "--dims", "w=o[cp] i", "--parallel", "tp=4"), "the axis cp")
        said = self.said([self.whole] * 4, self.whole, "--dims", "w=o[cp] i", "--parallel", "tp=4,cp=1")
        self.passes(said)
        self.assertNotIn("match no tensor", said.closing)

    def test_ranks_that_left_nothing(self) -> None:
        for parts, lost in (([self.whole] * 3 + [None], "3"), ([self.whole, None, self.whole], "1")):
            said = self.said(parts, self.whole)
            self.suspects(said, f"lacks rank {lost}")
            self.assertIn(f"target: nothing of rank {lost}", said.closing)
        shutil.rmtree(self.folder)
        self.save("target", {f"t{i}": [self.whole] * 4 for i in range(3)})
        self.save("golden", {f"t{i}": self.whole for i in range(3)})
        (self.folder / "target/rank2/t1.npy").unlink()
        said = self.compare()
        self.suspects(said, "the first that lacks it is 2", "t1")
        self.assertEqual(1, sum(row["severity"] == "suspicious" for row in said.rows))

    def test_whose_rank(self) -> None:
        broken = self.whole.copy()
        broken[6, 1] += 1
        said = self.said(broken, halves(self.whole, 1))
        self.assertIn("the error is in the part of the golden rank 0", said.row()["Layout"])
        said = self.said(halves(broken), halves(self.whole, 1))
        self.assertIn("the error is in the part of rank 1", said.row()["Layout"])


if __name__ == "__main__":
    unittest.main()
