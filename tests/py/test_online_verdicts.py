"""The online check with second opinions: what fails, what the log and the table say."""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, List

BUILD = os.environ.get("PLUMB_BUILD", str(Path(__file__).resolve().parents[2] / "build"))
sys.path.insert(0, os.path.join(BUILD, "python"))

import torch  # noqa: E402

import plumb  # noqa: E402


class Case(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.log = Path(folder.name) / "log.jsonl"
        torch.manual_seed(0)

    def check(self, kernel: Any, verdict: str, dtype: torch.dtype = torch.bfloat16,
              **more: Any) -> Dict[str, Any]:
        """A kernel in place of torch.mm, under the check; the table's row of it."""
        x, w = torch.randn(32, 256).to(dtype), torch.randn(256, 64).to(dtype)
        with contextlib.redirect_stderr(io.StringIO()) as self.told:
            plumb.enable_precision_check(path=self.log, log_format="jsonl", save_failures=False,
                                         verdict=verdict, **more)
            plumb.checked(kernel, "mm")(x, w)
            table = plumb.disable_precision_check()
        row, = (dict(zip(table.columns, row)) for row in table)
        return row

    def lines(self) -> List[Dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []


def scaled(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x.double() @ w.double() * 1.002).to(x.dtype)


def blocks(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Right, in another order."""
    parts = [x[:, k:k + 32].float() @ w[k:k + 32].float() for k in range(0, x.shape[1], 32)]
    return sum(reversed(parts)).to(x.dtype)  # type: ignore[union-attr]


class Verdicts(Case):
    def test_a_fault_that_tolerances_pass(self) -> None:
        self.assertEqual(self.check(scaled, "rules")["Failed"], 0)
        self.assertEqual(self.lines(), [])
        for verdict in ("expected", "both"):
            row = self.check(scaled, verdict)
            self.assertEqual((row["Failed"], row["Verdict"]), (1, "fault"))
        line = self.lines()[0]
        self.assertEqual(line["verdict"], "fault")
        self.assertIn("everything is scaled by 1.00", line["why"])
        self.assertIn("fault", self.told.getvalue())

    def test_right_in_another_order(self) -> None:
        for dtype in (torch.bfloat16, torch.float32):
            row = self.check(blocks, "expected", dtype, rtol=1e-9, atol=1e-9)
            self.assertEqual(row["Failed"], 0)
            self.assertIn(row["Verdict"], ("same", "rounding"))

    def test_allowed(self) -> None:
        def narrow(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
            return (x.bfloat16().double() @ w.bfloat16().double()).to(x.dtype)
        row = self.check(narrow, "expected", torch.float32)
        self.assertEqual((row["Failed"], row["Verdict"]), (0, "cheaper arithmetic"))
        with self.assertRaises(plumb.Error):
            plumb.enable_precision_check(path=self.log, verdict="expected", arithmetic="nonsense")
        with self.assertRaises(plumb.Error):
            plumb.enable_precision_check(path=self.log, verdict="perhaps")

    def test_no_column_unless_asked(self) -> None:
        self.assertNotIn("Verdict", self.check(blocks, "rules"))


if __name__ == "__main__":
    unittest.main()
