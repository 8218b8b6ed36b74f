"""blame over ranks of which some have parts of a model and some have replicas of these (tensor and data parallel training on
2 x 2 gloo processes): a wrong shard at one rank must be seen, and ranks that are right must not be blamed for having other parts,
other data or experts of their own. With two replicas nobody can say which is wrong: both are named. Counts are printed.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, List, Tuple

BUILD = Path(os.environ["PLUMB_BUILD"])
sys.path[:0] = [str(Path(__file__).parent), str(BUILD / "python")]
from grid_training import PLANTS, SHARDED  # noqa: E402
from ranks_case import run_ranks  # noqa: E402

PLUMB = BUILD / "plumb"
WORLD = 4
WAYS = (("each", "mix"), ("flat", "mix"), ("ddp", "mix"), ("each", "L1"))  # to reduce gradients, and what is recorded


def right(seed: int, reduce: str, level: str, **more: Any) -> Dict[str, Any]:
    return {"kind": "healthy", "bad": -1, "place": 0, "seed": seed, "reduce": reduce, "level": level, **more}


def planted() -> Dict[str, Dict[str, Any]]:
    cases = {}
    for k, kind in enumerate(PLANTS):
        for w, (reduce, level) in enumerate(WAYS):
            where: List[Any] = [SHARDED[(k + w) % 3]] + (["all"] if k % 4 == w else [])
            for place in where:
                cases[f"{kind}-{place}-{reduce}-{level}"] = {"kind": kind, "bad": (k + w) % WORLD, "place": place, "seed": k % 3,
                                                             "reduce": reduce, "level": level}
    return cases


def healthy() -> Dict[str, Dict[str, Any]]:
    cases = {}
    for w, (reduce, level) in enumerate(WAYS):
        cases[f"right-2-{reduce}-{level}"] = right(w, reduce, level)
        cases[f"right-4-{reduce}-{level}"] = right(w, reduce, level, parts=4)
        cases[f"right-plain-{reduce}-{level}"] = right(10 + w, reduce, level, plain=True)
    for level in ("mix", "L1"):
        cases[f"right-1-{level}"] = right(19, "each", level, parts=1)
        cases[f"right-experts-{level}"] = right(20, "each", level, experts=True)
    cases["right-statistics"] = right(30, "each", "mix", task="statistics")
    cases["right-rows"] = right(31, "each", "mix", rows=16)  # what is reduced forwards has the size of a weight then
    return cases


class GridTest(unittest.TestCase):
    root: Path
    planted = planted()
    healthy = healthy()

    @classmethod
    def setUpClass(cls) -> None:
        cls.root = Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.root)
        listed = cls.root / "cases.json"
        listed.write_text(json.dumps([{**case, "path": str(cls.root / name)} for name, case in {**cls.planted, **cls.healthy}.items()]))
        program = str(Path(__file__).parent / "grid_training.py")
        run_ranks(WORLD, lambda rank: [program, str(rank), str(WORLD), str(cls.root / "store"), str(listed)])

    def blame(self, *names: str) -> Tuple[int, Dict[str, Any]]:
        done = subprocess.run([str(PLUMB), "blame", *(str(self.root / name) for name in names), "--format", "json"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertIn(done.returncode, (0, 1, 2), done.stderr)
        return done.returncode, json.loads(done.stdout)

    def test_wrong_shards_are_seen(self) -> None:
        missed = []
        for name, case in self.planted.items():
            code, answer = self.blame(name)
            pair = sorted({case["bad"], (case["bad"] + 2) % WORLD})
            named = [one["rank"] == case["bad"] or (one["rank"] < 0 and one["group"] == pair) for one in answer["odd"]]
            if not named or not all(named) or code != 1 or answer["odd"][0]["step"] != 0 or answer["first"]:
                missed.append((name, case["bad"], answer["odd"]))
        print(f"wrong shards: {len(self.planted)} planted, {len(self.planted) - len(missed)} found")
        self.assertEqual(missed, [])

    def test_right_ranks_are_not_blamed(self) -> None:
        blamed = []
        for name in self.healthy:
            _, answer = self.blame(name)
            if answer["odd"] or answer["first"] or answer["faults"]:
                blamed.append((name, answer["odd"], answer["first"]))
        print(f"right runs: {len(self.healthy)}, {len(blamed)} blamed")
        self.assertEqual(blamed, [])

    def test_the_wrong_tensor_is_named(self) -> None:
        name = f"slice-{SHARDED[2]}-each-mix"
        odd = self.blame(name)[1]["odd"]
        self.assertEqual([(one["tensor"], one["tensors"]) for one in odd], [("Module.0.down.Linear.forward.0.parameters.weight", 1)])
        self.assertIn("which is right cannot be said", odd[0]["why"])

    def test_beside_a_right_run(self) -> None:
        """It says which of the two is wrong."""
        for name in ("few-2-each-mix", "permuted-2-each-mix"):
            self.assertEqual(self.planted[name]["seed"], self.healthy["right-2-each-mix"]["seed"])
            odd = self.blame(name, "right-2-each-mix")[1]["odd"]
            self.assertEqual([(one["rank"], one["tensor"]) for one in odd],
                             [(self.planted[name]["bad"], "Module.0.up.Linear.forward.0.parameters.weight")])
            self.assertIn("as the other run has", odd[0]["why"])


if __name__ == "__main__":
    unittest.main()
