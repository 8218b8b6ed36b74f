"""plumb report --steps: the statistics of a training run along its steps."""

import json
import math
import os
import random
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Callable, Dict

from page_read import Page

PLUMB = Path(os.environ["PLUMB_BUILD"]) / "plumb"
BAD, DOUBT, UNSEEN, GOOD = range(4)
HOSTILE = "Functional.</script><img>.0.forward"


class TestSteps(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def run_of(self, name: str, value: Callable[[str, int], float], count: int = 30,
               calls: Dict[str, float] = {"Functional.a.0.forward": 1.0, HOSTILE: 5.0}) -> Path:
        """A dump of statistics; value is a factor for a call and step."""
        dice = random.Random(3)
        for step in range(count):
            data = {}
            for call, size in calls.items():
                size = size * value(call, step) * (1 + dice.gauss(0, 0.003))
                data[call] = {"input_args": [], "input_kwargs": {}, "output": [
                    {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4], "Max": size, "Min": -size / 2,
                     "Mean": size / 8, "Norm": 2 * size, "requires_grad": False}]}
            folder = self.root / name / f"step{step}" / "rank0"
            folder.mkdir(parents=True)
            (folder / "dump.json").write_text(json.dumps({"task": "statistics", "level": "L1", "framework": "pytorch",
                                                          "dump_data_dir": None, "data": data}))
        return self.root / name

    def page(self, *words: object) -> Page:
        done = subprocess.run([str(PLUMB), "report", "--steps", *map(str, words), "-o", "x.html"], cwd=self.root,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return Page(self.root / "x.html")

    def refused(self, *words: object) -> str:
        done = subprocess.run([str(PLUMB), "report", "--steps", *map(str, words), "-o", "y.html"], cwd=self.root,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertFalse((self.root / "y.html").exists())
        return done.stderr

    def test_quiet(self) -> None:
        page = self.page(self.run_of("run", lambda call, step: 1 + step / 300))
        self.assertEqual((page.mood, page.sentence),
                         (GOOD, "Nothing jumps, and all is finite: 2 tensors over 30 steps."))
        steps = page["steps"]
        self.assertEqual(steps["steps"], list(range(30)))
        self.assertEqual([one["title"] for one in steps["series"]], ["norm", "max", "min", "mean", "NaN", "Inf"])
        norms = page.array(steps["series"][0]["values"])
        self.assertEqual(len(norms), 2 * 30)
        self.assertAlmostEqual(norms[30 * 1 + 10] / norms[10], 5, delta=0.2)
        self.assertEqual((steps["earlier"], steps["jumps"]), ([], []))
        self.assertTrue(any("8 times their median absolute deviation" in note for note in page["notes"]))

    def test_jump(self) -> None:
        page = self.page(self.run_of("run", lambda call, step: 3 if step >= 17 and call == HOSTILE else 1))
        self.assertEqual((page.mood, page.sentence), (DOUBT, "2 jumps, the first in step 17."))
        self.assertTrue(page["answer"]["where"].startswith(HOSTILE))
        self.assertEqual({(jump["step"], jump["mood"]) for jump in page["steps"]["jumps"]}, {(17, DOUBT)})
        self.assertEqual(page.column("jumps", "What"), ["norm", "range"])
        self.assertEqual(page.column("jumps", "Step"), [17, 17])
        self.assertGreater(page.column("jumps", "Steps")[0], 5)

    def test_not_finite(self) -> None:
        page = self.page(self.run_of("run", lambda call, step: math.nan if step >= 20 and "a" in call[:12] else
                                     math.inf if step == 25 else 1))
        self.assertEqual(page.mood, BAD)
        self.assertEqual(page.sentence, "2 times a tensor begins to hold NaN or infinity, first in step 20.")
        self.assertEqual(page.counts["not finite"], 2)
        nan = page.array(page["steps"]["series"][4]["values"])
        names = page["steps"]["names"]
        first = next(k for k, name in enumerate(names) if name.startswith("Functional.a"))
        self.assertEqual(nan[first * 30:first * 30 + 30], [0.0] * 20 + [1.0] * 10)

    def test_earlier(self) -> None:
        """A drift that its own history does not show."""
        run = self.run_of("run", lambda call, step: 1 + 0.02 * step)
        page = self.page(run, self.run_of("earlier", lambda call, step: 1.0))
        self.assertEqual(page.mood, DOUBT)
        self.assertEqual(set(page.column("jumps", "Against")), {"the earlier run"})
        self.assertEqual(len(page["steps"]["earlier"]), 6)
        self.assertEqual(self.page(run, run).mood, GOOD)

    def test_too_few(self) -> None:
        page = self.page(self.run_of("run", lambda call, step: 1, count=3))
        self.assertEqual((page.mood, page.sentence),
                         (UNSEEN, "All is finite; 3 steps are too few to tell what jumps."))

    def test_refuses(self) -> None:
        run = self.run_of("run", lambda call, step: 1, count=2)
        self.assertIn("no steps with recorded statistics", self.refused(run / "step0" / "rank0" / "dump.json"))
        self.assertIn("at most one earlier", self.refused(run, run, run))
        self.assertIn("none", self.refused(self.root / "none"))


if __name__ == "__main__":
    unittest.main()
