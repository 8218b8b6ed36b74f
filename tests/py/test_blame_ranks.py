"""blame over the ranks of real trainings: who was first, collectives that are wrong, odd ranks, and where NaN came from.

Every case is four gloo processes that train with plain all_reduce. What is planted must be named, with its rank, though
after the first all_reduce all ranks differ from a right run; and nothing else may be. tests/verdicts/ranks.py counts over
more of them.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, List

BUILD = Path(os.environ["PLUMB_BUILD"])
sys.path[:0] = [str(Path(__file__).parent), str(BUILD / "python")]
from page_read import Page  # noqa: E402
from rank_training import BLOCKS, OPERATORS  # noqa: E402
from ranks_case import run_ranks  # noqa: E402

PLUMB = BUILD / "plumb"
WORLD = 4
PARAMETERS = 6 * BLOCKS + 2


def case(kind: str, bad: int = -1, place: int = 0, seed: int = 0, task: str = "tensor", level: str = "mix") -> Dict[str, Any]:
    return {"kind": kind, "bad": bad, "place": place, "seed": seed, "task": task, "level": level}


CASES: Dict[str, Dict[str, Any]] = {
    "healthy-0": case("healthy"),
    **{f"operator-{seed}-{bad}": case("operator", bad, (seed + bad) % BLOCKS, seed) for seed, bad in ((0, 2), (0, 1), (1, 3), (2, 0))},
    "operator-late-2": case("operator", 2, 2 * BLOCKS + 3, 2),  # in the second step
    **{f"collective-{bad}-{place}": case("collective", bad, place, 1) for bad, place in ((0, 0), (1, 7), (2, 30))},
    "missing-3-11": case("missing", 3, 11, 2),
    **{f"parameter-{bad}-{place}": case("parameter", bad, place, 3) for bad, place in ((0, 0), (2, 8), (3, PARAMETERS - 1))},
    **{f"nan-{bad}-{place}": case("nan", bad, place, 4) for bad, place in ((1, 1), (2, 4))},
    "parameter-functions": case("parameter", 2, 4, 5, level="L1"),
    "parameter-statistics": case("parameter", 1, 4, 5, task="statistics"),
    "collective-statistics": case("collective", 3, 4, 5, task="statistics"),
    "healthy-statistics": case("healthy", seed=5, task="statistics"),
    "healthy-functions": case("healthy", seed=6, level="L1"),
}


def train(root: Path, cases: Dict[str, Dict[str, Any]], world: int = WORLD) -> None:
    """Records all cases under root, by their names."""
    listed = root / "cases.json"
    listed.write_text(json.dumps([{**one, "path": str(root / name)} for name, one in cases.items()]))
    program = str(Path(__file__).parent / "rank_training.py")
    run_ranks(world, lambda rank: [program, str(rank), str(world), str(root / "store"), str(listed)])


class RanksTest(unittest.TestCase):
    root: Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.root = Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.root)
        train(cls.root, CASES)

    def blame(self, *paths: Any, code: int) -> Dict[str, Any]:
        done = subprocess.run([str(PLUMB), "blame", *map(str, paths), "--format", "json"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout[:2000])
        return json.loads(done.stdout)

    def names(self, kind: str) -> List[str]:
        return [name for name, one in CASES.items() if one["kind"] == kind and one["task"] == "tensor" and one["level"] == "mix"]

    def first(self, name: str, code: int = 1) -> Dict[str, Any]:
        """The one fault that came first."""
        answer = self.blame(self.root / name, code=code)
        self.assertEqual(len(answer["first"]), 1, answer["first"])
        return {**answer["first"][0], "answer": answer}

    def test_healthy(self) -> None:
        for name in self.names("healthy"):
            with self.subTest(name):
                answer = self.blame(self.root / name, code=0)
                self.assertEqual([answer[key] for key in ("faults", "first", "not_finite", "odd")], [[], [], [], []])
                self.assertEqual((answer["ranks"], answer["exchanges"]), (WORLD, 2 * WORLD * PARAMETERS))
                self.assertEqual(answer["replicas"], 2 * PARAMETERS)
                self.assertEqual([one["what"] for one in answer["not_judged"]],
                                 ["it has modules inside", "no gradient was recorded"])

    def test_wrong_operator(self) -> None:
        for name in self.names("operator"):
            one = CASES[name]
            with self.subTest(name):
                found = self.first(name)
                function = OPERATORS[one["seed"] % 3]
                late = "late" in name
                place = one["place"] - (BLOCKS if function != "linear" else 2 * BLOCKS + 1) * late
                self.assertEqual((found["call"], found["rank"], found["step"]),
                                 (f"Functional.{function}.{place}.forward", one["bad"], int(late)))
                self.assertEqual({fault["rank"] for fault in found["answer"]["faults"]}, {one["bad"]})
                self.assertEqual(found["answer"]["odd"], [])
                self.assertEqual(sorted(found["hops"][0]["to"]), [r for r in range(WORLD) if r != one["bad"]])

    def test_beside_a_right_run(self) -> None:
        """All ranks differ from it, and what came through an exchange is inherited."""
        answer = self.blame(self.root / "operator-0-2", self.root / "healthy-0", code=1)
        self.assertEqual([(one["rank"], one["call"]) for one in answer["first"]], [(2, "Functional.gelu.2.forward")])
        self.assertEqual({fault["rank"] for fault in answer["faults"]}, {2})
        self.assertTrue(answer["followed"])
        hop = answer["first"][0]["hops"][0]
        self.assertEqual((hop["from"], hop["to"]), (2, [0, 1, 3]))
        self.assertTrue(hop["call"].startswith("Distributed.all_reduce."), hop)
        self.assertGreater(answer["verdicts"]["inherited"], WORLD * PARAMETERS)

    def test_wrong_collective(self) -> None:
        for name in self.names("collective") + self.names("missing"):
            one = CASES[name]
            with self.subTest(name):
                found = self.first(name)
                step, number = divmod(one["place"], PARAMETERS)
                self.assertEqual((found["call"], found["rank"], found["step"]),
                                 (f"Distributed.all_reduce.{number}.forward", one["bad"], step))
                faults = found["answer"]["faults"]
                self.assertEqual([(fault["rank"], fault["call"]) for fault in faults], [(one["bad"], found["call"])])
                others = ("1-3", "0, 2, 3", "0, 1, 3", "0-2")[one["bad"]]
                self.assertIn(f"ranks {others} got what is right", faults[0]["why"])
                self.assertEqual("nothing was exchanged" in faults[0]["pattern"], one["kind"] == "missing")
                # What an optimiser made of it is another replica in the next step.
                odd = [(one["bad"], 1)] if step == 0 else []
                self.assertEqual([(is_["rank"], is_["step"]) for is_ in found["answer"]["odd"]], odd)

    def test_odd_rank_out(self) -> None:
        for name in [*self.names("parameter"), "parameter-functions", "parameter-statistics"]:
            one = CASES[name]
            with self.subTest(name):
                answer = self.blame(self.root / name, code=1)
                self.assertEqual([(odd["rank"], odd["step"]) for odd in answer["odd"]], [(one["bad"], 0)])
                self.assertEqual(answer["odd"][0]["group"], list(range(WORLD)))
                self.assertEqual((answer["faults"], answer["first"]), ([], []))

    def test_odd_parameter_is_named(self) -> None:
        answer = self.blame(self.root / "parameter-2-8", code=1)
        self.assertEqual(answer["odd"][0]["tensor"], "Module.1.up.Linear.forward.0.parameters.weight")
        self.assertEqual(answer["odd"][0]["tensors"], 1)

    def test_statistics_alone(self) -> None:
        """No call can be computed; what all ranks must have alike is seen all the same."""
        self.assertEqual(self.blame(self.root / "healthy-statistics", code=2)["odd"], [])
        odd = self.blame(self.root / "collective-statistics", code=1)["odd"]
        self.assertEqual([(one["rank"], one["step"], one["tensor"]) for one in odd],
                         [(3, 0, "Distributed.all_reduce.4.forward.output.0")])

    def test_two_ranks_differ(self) -> None:
        for bad in (0, 1):
            two = self.root / f"two-{bad}"
            for step in (0, 1):
                for rank in (0, 1):
                    (two / f"step{step}").mkdir(parents=True, exist_ok=True)
                    from_rank = 3 if rank == bad else rank
                    (two / f"step{step}" / f"rank{rank}").symlink_to(self.root / "parameter-functions" / f"step{step}" /
                                                                     f"rank{2 if rank == bad else from_rank}")
            odd = self.blame(two, code=1)["odd"]
            self.assertEqual([(one["rank"], one["group"]) for one in odd], [(-1, [0, 1])])
            self.assertIn("which is right cannot be said", odd[0]["why"])

    def test_nan_travels(self) -> None:
        for name in self.names("nan"):
            one = CASES[name]
            with self.subTest(name):
                answer = self.blame(self.root / name, code=1)
                step, number = divmod(one["place"], BLOCKS)
                self.assertEqual([(is_["rank"], is_["step"], is_["call"]) for is_ in answer["not_finite"]],
                                 [(one["bad"], step, f"Functional.gelu.{number}.forward")])
                hops = answer["not_finite"][0]["hops"]
                self.assertEqual((hops[0]["from"], hops[0]["to"]), (one["bad"], [r for r in range(WORLD) if r != one["bad"]]))
                self.assertTrue(hops[0]["call"].startswith("Distributed.all_reduce."), hops)
                self.assertEqual([(is_["rank"], is_["call"]) for is_ in answer["first"]],
                                 [(one["bad"], f"Functional.gelu.{number}.forward")])

    def test_report_draws_ranks_by_calls(self) -> None:
        for name, bad in (("operator-0-2", 2), ("parameter-2-8", 2)):
            page = self.root / "page.html"
            subprocess.run([str(PLUMB), "blame", str(self.root / name / "step0"), "--report", str(page)], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
            report = Page(page)
            grid = report["grids"][0]
            self.assertEqual((grid["title"], grid["down"]), ("ranks", [f"rank {r}" for r in range(WORLD)]))
            moods = report.array(grid["mood"])
            across = len(grid["across"])
            self.assertEqual({k // across for k, mood in enumerate(moods) if mood == 0}, {bad})
            self.assertEqual(report.mood, 0)

    def test_a_rank_is_missing(self) -> None:
        """Its group cannot be added up, and that is said; calls of the others are judged."""
        for step in (0, 1):
            for rank in (0, 1, 3):
                (self.root / "three" / f"step{step}").mkdir(parents=True, exist_ok=True)
                (self.root / "three" / f"step{step}" / f"rank{rank}").symlink_to(
                    self.root / "operator-0-1" / f"step{step}" / f"rank{rank}")
        answer = self.blame(self.root / "three", code=1)
        self.assertEqual([(one["rank"], one["call"]) for one in answer["first"]], [(1, "Functional.gelu.1.forward")])
        reasons = {one["what"]: one["count"] for one in answer["not_judged"]}
        self.assertEqual(reasons["rank 2 of its group is not in the dump, or has not this call"], 2 * 3 * PARAMETERS)


if __name__ == "__main__":
    unittest.main()
