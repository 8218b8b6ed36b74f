"""Sums whose terms are rounded: what that explains passes, and nothing else does."""

import csv
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Dict

sys.path.insert(0, str(Path(__file__).parent))
from capture_case import PLUMB  # noqa: E402

import torch  # noqa: E402

RANKS = 4


class SumsTest(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory(prefix="plumb-sums-")
        self.addCleanup(place.cleanup)
        self.root = Path(place.name)
        torch.manual_seed(0)

    def compare(self, terms: torch.Tensor, golden: torch.Tensor, *options: str) -> Dict[str, str]:
        for rank, term in enumerate(terms):
            (self.root / f"parts/rank{rank}").mkdir(parents=True, exist_ok=True)
            torch.save({"x": term}, self.root / f"parts/rank{rank}/x.pt")
        (self.root / "whole").mkdir(exist_ok=True)
        torch.save({"x": golden}, self.root / "whole/x.pt")
        subprocess.run([str(PLUMB), "compare", "parts", "whole", "found.csv", *options], cwd=self.root,
                       stdout=subprocess.DEVNULL)
        with open(self.root / "found.csv", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(1, len(rows))
        return rows[0]

    def terms(self) -> torch.Tensor:
        """Large terms of a small sum, in float64."""
        terms = torch.randn(RANKS, 40, 30, dtype=torch.float64) * 8
        terms[-1] = torch.randn(40, 30, dtype=torch.float64) - terms[:-1].sum(0)
        return terms

    def test_rounding_passes(self) -> None:
        exact = self.terms()
        row = self.compare(exact.to(torch.bfloat16), exact.sum(0).to(torch.bfloat16), "--dims", "x=a b[tp:partial]")
        self.assertIn("within the rounding of 4 terms in bfloat16", row["Err_message"])
        self.assertIn("max_rel", row["Err_message"])  # the rule that would have failed
        self.assertEqual("PASS", row["Result"])
        self.assertIn("sum of 4: ranks 0+1+2+3 (given)", row["Layout"])

    def test_more_than_rounding_fails(self) -> None:
        exact = self.terms()
        golden = exact.sum(0)
        golden[7, 5] += 4
        row = self.compare(exact.to(torch.bfloat16), golden.to(torch.bfloat16), "--dims", "x=a b[tp:partial]")
        self.assertEqual("FAIL", row["Result"])
        self.assertNotIn("rounding", row["Err_message"])

    def test_a_missing_term_fails(self) -> None:
        exact = self.terms()
        golden = exact.sum(0)
        exact[2] = 0
        row = self.compare(exact.to(torch.bfloat16), golden.to(torch.bfloat16), "--dims", "x=a b[tp:partial]")
        self.assertEqual("FAIL", row["Result"])

    def test_found_in_the_data(self) -> None:
        exact = self.terms()
        for kind in (torch.float32, torch.float16, torch.float64):
            row = self.compare(exact.to(kind), exact.sum(0).to(kind), "--shards")
            self.assertIn("sum of 4: ranks 0+1+2+3 (inferred", row["Layout"])
            self.assertEqual("PASS", row["Result"], kind)
        row = self.compare(exact.float() * RANKS, exact.sum(0).float(), "--shards")
        self.assertIn("mean of 4: ranks 0+1+2+3 (inferred", row["Layout"])

    def test_integers(self) -> None:
        terms = torch.randint(-1000, 1000, (RANKS, 17))
        row = self.compare(terms, terms.sum(0), "--shards")
        self.assertIn("sum of 4", row["Layout"])
        self.assertEqual("PASS", row["Result"])


if __name__ == "__main__":
    unittest.main()
