"""Process groups that a capture wrote down, as evidence of how ranks share tensors; and experts, and zigzag.

Dumps are written by hand, as captures write them, so that what is recorded and what is true may differ."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

PLUMB = Path(os.environ["PLUMB_BUILD"]) / "plumb"
Tensors = Dict[str, np.ndarray]


def write(folder: Path, rank: int, tensors: Tensors, groups: Sequence[List[int]] = ()) -> None:
    """One rank: results of modules, and a collective for each group."""
    place = folder / f"rank{rank}"
    (place / "dump_tensor_data").mkdir(parents=True)
    data: Dict[str, Any] = {}
    for name, array in tensors.items():
        file = f"Module.{name}.Linear.forward.0.output.0.npy"
        np.save(place / "dump_tensor_data" / file, np.ascontiguousarray(array, np.float32))
        leaf = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": list(array.shape), "data_name": file,
                "requires_grad": False}
        data[f"Module.{name}.Linear.forward.0"] = {"input_args": [], "input_kwargs": {}, "output": [leaf]}
    for order, ranks in enumerate(groups):
        data[f"Distributed.all_reduce.{order}.forward"] = {
            "input_args": [], "input_kwargs": {}, "output": [],
            "exchange": {"order": order, "group_ranks": ranks, "group_id": "-".join(map(str, ranks))}}
    head = {"task": "tensor", "level": "L0", "framework": "pytorch", "dump_data_dir": str(place / "dump_tensor_data")}
    (place / "dump.json").write_text(json.dumps({**head, "data": data}))


class Case(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory(prefix="plumb-groups-")
        self.addCleanup(place.cleanup)
        self.root = Path(place.name)
        self.made = 0

    def run_of(self, ranks: Sequence[Tensors], groups: Optional[Sequence[Sequence[List[int]]]] = None) -> Path:
        self.made += 1
        folder = self.root / f"run{self.made}" / "step0"
        for rank, tensors in enumerate(ranks):
            write(folder, rank, tensors, groups[rank] if groups else ())
        return folder

    def compare(self, target: Path, golden: Path, *words: str) -> Tuple[Dict[str, Dict[str, Any]], str]:
        ran = subprocess.run([str(PLUMB), "compare", str(target), str(golden), "--shards", "--format", "json", *words],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
        self.assertIn(ran.returncode, (0, 1), ran.stderr)
        rows = json.loads(ran.stdout)["rows"]
        return {row["API Name"].split(".Linear")[0].replace("Module.", ""): row for row in rows}, ran.stderr

    def mesh(self, inner: int, outer: int) -> List[List[List[int]]]:
        """The groups of each rank of inner x outer, ranks of inner beside each other."""
        groups = [[outside * inner + i for i in range(inner)] for outside in range(outer)]
        groups += [[outside * inner + i for outside in range(outer)] for i in range(inner)]
        return [[group for group in groups if rank in group] for rank in range(inner * outer)]


class GroupsTest(Case):
    def test_two_families_fit(self) -> None:
        """Values that all differ, and two families that the shapes allow: nothing is claimed by groups."""
        random = np.random.default_rng(1)
        golden = self.run_of([{"up": random.normal(size=(8, 6))}])
        parts = [{"up": random.normal(size=(4, 6))} for _ in range(4)]
        rows, said = self.compare(self.run_of(parts, self.mesh(2, 2)), golden)
        self.assertIn("process groups recorded: 0,1 2,3; 0,2 1,3", said)
        self.assertNotIn("by recorded groups", said + rows["up"]["Layout"])

    def test_one_family_fits(self) -> None:
        """Slices of three on six ranks: only one family has groups of three."""
        random = np.random.default_rng(1)
        whole, other = random.normal(size=(9, 4)), random.normal(size=(9, 4))
        golden = self.run_of([{"up": other}])
        for inner, outer, place, told in ((3, 2, lambda r: r % 3, "0|3,1|4,2|5"), (2, 3, lambda r: r // 2, "0|1,2|3,4|5")):
            parts = [{"up": np.split(whole, 3)[place(rank)]} for rank in range(6)]
            rows, said = self.compare(self.run_of(parts, self.mesh(inner, outer)), golden)
            self.assertIn(f"concat axis 0 over ranks {told} (by recorded groups and shapes; no value decides)",
                          rows["up"]["Layout"])
            self.assertIn("1 by recorded groups and shapes", said)
            self.assertEqual("FAIL", rows["up"]["Result"])

    def test_values_decide(self) -> None:
        """What the data say counts; that the groups agree is told."""
        random = np.random.default_rng(1)
        whole = {"up": random.normal(size=(9, 4)), "other": random.normal(size=(9, 4))}
        golden = self.run_of([whole])
        parts = [{"up": np.split(whole["up"], 3)[rank % 3], "other": np.split(whole["other"], 3)[rank // 2]}
                 for rank in range(6)]
        rows, _ = self.compare(self.run_of(parts, self.mesh(3, 2)), golden)
        self.assertEqual("concat axis 0 over ranks 0|3,1|4,2|5 (inferred, residual 0; in the order of recorded groups)",
                         rows["up"]["Layout"])
        self.assertEqual("concat axis 0 over ranks 0|1,2|3,4|5 (inferred, residual 0)", rows["other"]["Layout"])
        self.assertEqual({"PASS"}, {row["Result"] for row in rows.values()})

    def test_constant(self) -> None:
        """Zeros fit everywhere; the groups say where they are."""
        random = np.random.default_rng(1)
        golden = self.run_of([{"bias": np.zeros(9), "up": random.normal(size=9)}])
        parts = [{"bias": np.zeros(3), "up": np.zeros(3)} for _ in range(6)]
        rows, said = self.compare(self.run_of(parts, self.mesh(3, 2)), golden)
        self.assertEqual("concat axis 0 over ranks 0|3,1|4,2|5 (inferred, residual 0; in the order of recorded groups)",
                         rows["bias"]["Layout"])
        self.assertEqual("PASS", rows["bias"]["Result"])
        self.assertEqual("FAIL", rows["up"]["Result"])
        rows, said = self.compare(self.run_of(parts), golden)
        self.assertIn("ambiguous", rows["bias"]["Layout"])

    def test_groups_that_lie(self) -> None:
        """Text that is no group, groups of unknown ranks, one missing: not used, and said."""
        random = np.random.default_rng(1)
        whole = random.normal(size=(9, 4))
        golden = self.run_of([{"up": whole}])
        parts = [{"up": np.split(whole, 3)[rank % 3]} for rank in range(6)]
        for groups in ([[0, 1, 2]], [[0, 0, 0]], [[7, 8, 9]], [[-1, 0, 1]], [[]], [[0]], [list(range(5))],
                       [[0, 1, 2], [2, 3, 4]], ["x"], [[0, [1], 2]], [[0.5, 1]], [[2 ** 70, 1]], [list(range(100000))]):
            rows, said = self.compare(self.run_of(parts, [groups] * 6), golden)
            self.assertEqual("PASS", rows["up"]["Result"], groups)
            self.assertNotIn("in the order of recorded groups", rows["up"]["Layout"], groups)
            if groups == [[0, 1, 2]]:
                self.assertIn("1 not used, since others of their kind are missing", said)


class ExpertsTest(Case):
    """Experts that every rank counts from 0."""

    def experts(self, count: int) -> Tensors:
        random = np.random.default_rng(2)
        made = {f"layers.{layer}.mlp.experts.{i}.up": random.normal(size=(8, 4)) for layer in range(2) for i in range(count)}
        made["norm"] = random.normal(size=4)
        return made

    def local(self, whole: Tensors, own: int, place: int, cut: Optional[Tuple[int, int]] = None) -> Tensors:
        """What a rank has: its experts, numbered from 0, whole or its slice of them."""
        made = {}
        for name, array in whole.items():
            words = name.split(".")
            if "experts" not in words:
                made[name] = array
                continue
            number = int(words[4]) - place * own
            if 0 <= number < own:
                words[4] = str(number)
                made[".".join(words)] = np.split(array, cut[1])[cut[0]] if cut else array
        return made

    def check(self, whole: Tensors, ranks: Sequence[Tensors], *words: str, groups: Any = None) -> str:
        """Right, and with a fault in one expert of the last rank."""
        golden = self.run_of([whole])
        rows, said = self.compare(self.run_of(ranks, groups), golden, *words)
        self.assertEqual({name for name in whole}, set(rows), said)
        self.assertNotIn("suspicious layout", said)
        self.assertEqual({"PASS"}, {row["Result"] for row in rows.values()})
        wrong = "layers.1.mlp.experts.0.up"
        broken = [dict(rank) for rank in ranks]
        broken[-1][wrong] = broken[-1][wrong] * 1.5
        rows, _ = self.compare(self.run_of(broken, groups), golden, *words)
        bad = [name for name, row in rows.items() if row["Result"] != "PASS"]
        self.assertEqual(1, len({name.split(" (")[0] for name in bad}), bad)
        number = int(bad[0].split(".")[4])
        self.assertEqual(0, number % (len([name for name in ranks[0] if ".1.mlp" in name])))
        self.assertGreater(number, 0)
        return said

    def test_all_ranks(self) -> None:
        for ranks, own in ((4, 2), (2, 4), (3, 1)):
            whole = self.experts(ranks * own)
            said = self.check(whole, [self.local(whole, own, rank) for rank in range(ranks)])
            self.assertIn(f"experts on {ranks} groups of ranks", said)
            self.check(whole, [self.local(whole, own, rank) for rank in range(ranks)], "--parallel", f"ep={ranks}")

    def test_with_tensor_parallel(self) -> None:
        """Two axes: each expert is cut on two ranks beside each other."""
        whole = self.experts(4)
        ranks = [self.local(whole, 2, rank // 2, (rank % 2, 2)) for rank in range(4)]
        self.check(whole, ranks, "--parallel", "tp=2,ep=2")
        self.check(whole, ranks)

    def test_with_data_parallel(self) -> None:
        """Replicas, either way round."""
        whole = self.experts(4)
        self.check(whole, [self.local(whole, 2, rank % 2) for rank in range(4)], "--parallel", "ep=2,dp=2")
        self.check(whole, [self.local(whole, 2, rank % 2) for rank in range(4)])
        self.check(whole, [self.local(whole, 2, rank // 2) for rank in range(4)])

    def test_numbered_through(self) -> None:
        """Experts that have their own numbers already."""
        whole = self.experts(4)
        ranks = [{name: array for name, array in whole.items() if "experts" not in name or int(name.split(".")[4]) // 2 == rank}
                 for rank in range(2)]
        golden = self.run_of([whole])
        rows, _ = self.compare(self.run_of(ranks), golden)
        self.assertEqual({name for name in whole}, set(rows))
        self.assertEqual({"PASS"}, {row["Result"] for row in rows.values()})


class ZigzagTest(Case):
    """Sequences of context parallel ranks: in zigzag order, and one behind the other."""

    def cut(self, whole: np.ndarray, ranks: int, zigzag: bool, axis: int) -> List[np.ndarray]:
        if not zigzag:
            return np.split(whole, ranks, axis)
        chunks = np.split(whole, 2 * ranks, axis)
        return [np.concatenate([chunks[rank], chunks[-1 - rank]], axis) for rank in range(ranks)]

    def test_both_orders(self) -> None:
        random = np.random.default_rng(3)
        found = blamed = 0
        for ranks in (2, 4):
            for axis in (0, 1):
                whole = random.normal(size=(16, 16, 3))
                golden = self.run_of([{"hidden": whole}])
                for zigzag in (False, True):
                    word = "zigzag" if zigzag else "concat"
                    parts = self.cut(whole, ranks, zigzag, axis)
                    rows, _ = self.compare(self.run_of([{"hidden": part} for part in parts]), golden)
                    blamed += rows["hidden"]["Result"] != "PASS" or f"{word} axis {axis}" not in rows["hidden"]["Layout"]
                    for rank in range(ranks):
                        broken = [part.copy() for part in parts]
                        broken[rank][broken[rank].shape[0] // 2:] *= 1.5
                        rows, _ = self.compare(self.run_of([{"hidden": part} for part in broken]), golden)
                        found += (rows["hidden"]["Result"] == "FAIL" and f"{word} axis {axis}" in rows["hidden"]["Layout"]
                                  and f"the error is in the part of rank {rank}" in rows["hidden"]["Layout"])
        self.assertEqual((24, 0), (found, blamed))

    def test_wrong_order(self) -> None:
        """One run is in the other order than its --dims says: that is a fault, and not hidden."""
        whole = np.random.default_rng(3).normal(size=(4, 16))
        golden = self.run_of([{"hidden": whole}])
        for zigzag in (False, True):
            target = self.run_of([{"hidden": part} for part in self.cut(whole, 4, zigzag, 1)])
            for said in ("s[cp]", "s[cp:zigzag]"):
                rows, _ = self.compare(target, golden, "--dims", f"*hidden*=b {said}")
                self.assertEqual("PASS" if ("zigzag" in said) == zigzag else "FAIL", rows["hidden"]["Result"])


if __name__ == "__main__":
    unittest.main()
