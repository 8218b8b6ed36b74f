"""plumb.compare(..., shards=...): the same as the command line, in all the ways to say it."""

import csv
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, List

BUILD = Path(os.environ["PLUMB_BUILD"])
sys.path[:0] = [str(BUILD / "python"), str(Path(__file__).parent)]

import plumb  # noqa: E402
from report_page import Page  # noqa: E402

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "shards"
FOUR, ONE = EXAMPLE / "four", EXAMPLE / "one"
QKV, OUTPUT = "o[tp:fused=1:1:1] i", "b h[tp:partial]"


class PythonShardsTest(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory(prefix="plumb-shards-")
        self.addCleanup(place.cleanup)
        self.root = Path(place.name)

    def command(self, *words: str) -> List[Dict[str, str]]:
        """What the command line says."""
        table = self.root / "table.csv"
        subprocess.run([str(BUILD / "plumb"), "compare", str(FOUR), str(ONE), str(table), *words],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with open(table, encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def same(self, report: Any, *words: str) -> None:
        expected = self.command(*words)
        path = self.root / "report.csv"
        report.save(path)
        with open(path, encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["Layout"] for row in expected], [row["Layout"] for row in rows])
        self.assertEqual([row["Result"] for row in expected], [row["Result"] for row in rows])

    def test_inferred(self) -> None:
        report = plumb.compare(FOUR, ONE, shards=True)
        self.same(report, "--shards")
        self.assertFalse(report)
        self.assertEqual(2, report.counts["failed"])
        self.assertIn("replicas differ in 1 tensor, the first on rank 3: norm.weight", report.closing)

    def test_given(self) -> None:
        words = ("--dims", f"qkv.weight={QKV}", "--dims", f"proj.output={OUTPUT}")
        for dims in ({"qkv.weight": QKV, "proj.output": OUTPUT}, [f"qkv.weight={QKV}", f"proj.output={OUTPUT}"]):
            self.same(plumb.compare(FOUR, ONE, dims=dims), *words)
        self.same(plumb.compare(str(FOUR), str(ONE), dims=f"qkv.weight={QKV}"), *words[:2])

    def test_parallel(self) -> None:
        for parallel in ({"tp": 4}, "tp=4", ["target:tp=4"]):
            self.same(plumb.compare(FOUR, ONE, parallel=parallel), "--parallel", "tp=4")

    def test_file(self) -> None:
        layouts = self.root / "layouts.yaml"
        layouts.write_text(f'parallel: "tp=4"\nlayouts:\n  "qkv.*": "{QKV}"\n')
        for file in (layouts, str(layouts)):
            report = plumb.compare(FOUR, ONE, shards=file)
            self.same(report, "--shards", str(layouts))
            self.assertIn("(given)", str(report))

    def test_report(self) -> None:
        """The page is made of the wholes too."""
        page = self.root / "page.html"
        plumb.report(plumb.compare(FOUR, ONE, shards=True), page)
        self.assertIn("the error is in the part of rank 1", " ".join(Page(page).column("Layout")))

    def test_without(self) -> None:
        """Ranks stay apart unless somebody asks."""
        self.assertNotIn("Layout", plumb.compare(FOUR, ONE).table.columns)

    def test_refused(self) -> None:
        for wrong in ({"parallel": "tp=3"}, {"parallel": {"tp": "x"}}, {"dims": {"a": "b[["}}, {"dims": "no equals"},
                      {"shards": self.root / "none.yaml"}, {"shards": 3}, {"shards": None},
                      {"shards": True, "verdict": "expected"}):
            with self.assertRaises(plumb.Error, msg=str(wrong)):
                plumb.compare(FOUR, ONE, **wrong)
        with self.assertRaises(plumb.Error):
            plumb.compare([1.0], [1.0], shards=True)
        with self.assertRaises(plumb.Error):
            plumb.compare(FOUR, [1.0], shards=True)

    def test_warnings(self) -> None:
        """What the command line says on stderr about a run is in the closing lines."""
        folder = self.root / "model"
        folder.mkdir()
        for file in (EXAMPLE / "indexed").iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
        (folder / "more.safetensors").write_bytes((folder / "model-00001-of-00002.safetensors").read_bytes())
        closing = plumb.compare(FOUR, folder, shards=True).closing
        self.assertIn("a file of tensors that it does not name: more.safetensors", closing.splitlines()[0])


if __name__ == "__main__":
    unittest.main()
