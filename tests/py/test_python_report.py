"""plumb.report: results as pages, in files and in notebooks."""

import html
import os
import pickle
import re
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

BUILD = Path(os.environ.get("PLUMB_BUILD", Path(__file__).resolve().parents[2] / "build"))
sys.path.insert(0, str(BUILD / "python"))

import numpy as np
import torch

import plumb
from page_read import Page

BAD, DOUBT, UNSEEN, GOOD = range(4)
HOSTILE = '</script><script>alert(1)</script>"\'><img src=x onerror=alert(2)>'


class Case(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        torch.manual_seed(1)

    def page(self, result: Any) -> Page:
        """The same in a file and in a notebook."""
        path = self.folder / "page.html"
        self.assertIsNone(plumb.report(result, path))
        shown = plumb.report(result)
        found, inline = Page(path), Page(shown.html)
        for key in ("answer", "counts", "tables"):
            self.assertEqual(found[key], inline[key])
        return found

    def dump(self, name: str, wrong: bool = False) -> Path:
        debugger = plumb.PrecisionDebugger(dump_path=str(self.folder / name), task="tensor",
                                           level="mix", step=[])
        torch.manual_seed(2)
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        debugger.start(model=model)
        out = model(torch.ones(3, 4))
        torch.exp(out)
        debugger.stop()
        debugger.step()
        if wrong:
            file = next((self.folder / name).rglob("Torch.exp.0.forward.output.0.pt"))
            value = torch.load(file)
            value[0, 0] *= 3
            torch.save(value, file)
        return self.folder / name


class TestValues(Case):
    def test_of_values(self) -> None:
        x = torch.randn(8)
        page = self.page(plumb.compare({"a": x, "b": x}, {"a": x, "b": x + 1}))
        self.assertEqual((page.mood, page.sentence), (BAD, "1 of 2 values fail."))
        self.assertEqual((page["answer"]["where"], page["answer"]["row"]), ("b", 1))
        self.assertEqual(page.counts, {"failed": 1, "passed": 1})
        page = self.page(plumb.compare({"a": x}, {"a": x}))
        self.assertEqual((page.mood, page.sentence), (GOOD, "All 1 values agree."))
        self.assertEqual(self.page(plumb.compare({}, {})).mood, UNSEEN)

    def test_of_files(self) -> None:
        for name, add in (("a", 0.0), ("b", 1.0)):
            np.savez(self.folder / f"{name}.npz", x=np.arange(12.0).reshape(3, 4) + add, y=np.ones(3))
        result = plumb.compare(self.folder / "b.npz", self.folder / "a.npz")
        page = self.page(result)
        self.assertEqual((page.mood, page.sentence), (BAD, "1 of 2 tensors fails."))
        self.assertEqual([tensor["name"] for tensor in page["tensors"]], ["x"])
        np.savez(self.folder / "b.npz", x=np.arange(12.0).reshape(3, 4), y=np.ones(3))
        with self.assertRaisesRegex(plumb.Error, "others than when they were compared"):
            plumb.report(result)

    def test_a_file_beside_values(self) -> None:
        np.savez(self.folder / "a.npz", x=np.ones(3, np.float32))
        page = self.page(plumb.compare({"x": torch.ones(3)}, self.folder / "a.npz"))
        self.assertEqual(page.mood, GOOD)
        self.assertEqual(page["tensors"], [])


class TestRuns(Case):
    def test_blame(self) -> None:
        bad = self.dump("bad", wrong=True)
        found = plumb.blame(bad)
        page = self.page(found)
        self.assertFalse(found)
        self.assertEqual(page.mood, BAD)
        self.assertIn("Torch.exp.0", page["answer"]["where"])
        self.assertEqual(page.counts, {word: count for word, count in found["verdicts"].items() if count})
        self.assertGreater(len(page["network"]["names"]), 3)
        again = pickle.loads(pickle.dumps(found))
        self.assertEqual(dict(again), dict(found))
        with self.assertRaisesRegex(plumb.Error, "no page any more"):
            plumb.report(again)

    def test_diagnosis(self) -> None:
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        found = plumb.diagnose(model, torch.ones(3, 4), a={"dtype": torch.float32}, b={"dtype": torch.float64})
        for _ in range(2):
            page = self.page(found)
            self.assertEqual(page.mood == GOOD, bool(found))
            self.assertEqual([value for label, value in page["facts"] if label == "a"], [found.a])
        self.assertIn(page.sentence, str(found))

    def test_passes(self) -> None:
        class Two(torch.nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return torch.relu(x) * 2

        def wrong(graph: Any) -> Any:
            for node in graph.graph.nodes:
                if node.op == "call_function" and "mul" in str(node.target):
                    node.args = (node.args[0], 3)
            graph.recompile()
            return graph

        for passes, mood in (([wrong], BAD), ([lambda graph: graph], GOOD)):
            found = plumb.numeric_check(Two(), passes, torch.ones(4))
            page = self.page(found)
            self.assertEqual((page.mood, bool(found)), (mood, mood == GOOD))
            self.assertEqual(page.sentence, found.summary().splitlines()[0])
            self.assertEqual(sum(page.counts.values()), len(found.rows))


class TestCompilers(Case):
    """What PyTorch 2 would have filled in."""

    def passes(self, *verdicts: str) -> Any:
        from plumb._compile.report import CheckedPass, InductorReport
        found = InductorReport()
        found.graphs = ["graph 0"]
        found.checked = [CheckedPass("joint", "graph 0", f"pass{k}", "", word, f"why {k}", "mul", "", "output 0", "", [],
                                     "model.py:3") for k, word in enumerate(verdicts)]
        return found

    def test_passes(self) -> None:
        page = self.page(self.passes("unchanged", "fault", "not judged", "rounding"))
        self.assertEqual((page.mood, page["answer"]["where"], page["answer"]["row"]), (BAD, "pass1", 1))
        self.assertEqual(page.moods("passes"), [GOOD, BAD, UNSEEN, GOOD])
        self.assertEqual(page.counts, {"unchanged": 1, "fault": 1, "not judged": 1, "rounding": 1})
        self.assertEqual(self.page(self.passes("unchanged", "rounding")).mood, GOOD)
        self.assertEqual(self.page(self.passes("not judged")).mood, UNSEEN)
        self.assertEqual(self.page(self.passes()).mood, UNSEEN)

    def test_compiled(self) -> None:
        from plumb._compile.check import CompileReport
        found = CompileReport()
        found.error = "the model could not be run"
        page = self.page(found)
        self.assertEqual((page.mood, page.sentence), (UNSEEN, "NOT CHECKED: the model could not be run"))
        found = CompileReport()
        found.results = plumb.numeric_check(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2), torch.ones(1, 2),
                                            verdict="expected")
        found.stage, found.node, found.stages = "joint pass", "mul", {"dynamo": "same"}
        found.passes = self.passes("fault")
        page = self.page(found)
        self.assertEqual((page.mood, page["answer"]["where"]), (BAD, "mul"))
        self.assertEqual(page.names, ["tensors", "passes"])
        self.assertIn(["dynamo", "same"], page["facts"])


class TestNotebook(Case):
    def test_frame(self) -> None:
        x = torch.randn(8)
        shown = plumb.report(plumb.compare({HOSTILE: x}, {HOSTILE: x + 1}), height=500)
        text = shown._repr_html_()
        frames = re.findall(r'<iframe srcdoc="([^"]*)"([^>]*)></iframe>', text)
        self.assertEqual(len(frames), 1)
        base = '<base href="about:srcdoc">'
        self.assertEqual(html.unescape(frames[0][0]).replace(base, "", 1), shown.html)
        self.assertLess(frames[0][0].index(html.escape(base)), frames[0][0].index("Content-Security"))
        self.assertEqual(re.sub(r'srcdoc="[^"]*"', "", text).count("<"), 2)
        self.assertIn('height="500"', frames[0][1])
        self.assertNotIn("allow-same-origin", frames[0][1])
        self.assertNotIn("<img", shown.html)
        self.assertEqual(Page(shown.html)["answer"]["where"], HOSTILE)
        self.assertLess(len(repr(shown)), 200)
        shown.save(self.folder / "page.html")
        self.assertEqual((self.folder / "page.html").read_text(), shown.html)

    def test_refuses(self) -> None:
        with self.assertRaisesRegex(TypeError, "not dict"):
            plumb.report({})
        with self.assertRaises(plumb.Error):
            plumb.report(plumb.compare([1.0], [1.0]), self.folder / "none" / "page.html")


if __name__ == "__main__":
    unittest.main()
