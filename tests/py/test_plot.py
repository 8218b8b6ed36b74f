"""plumb plot: drawings of networks and tensors."""

import os
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path
from typing import Any, List

import numpy as np

PLUMB = Path(os.environ["PLUMB_BUILD"]) / "plumb"
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = 'w<script>alert(1)</script>&"\x1b'


class TestPlot(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.save("good.npz", 0.0)
        self.save("bad.npz", 0.5)

    def save(self, name: str, off: float) -> None:
        values = {f"layer{k}": np.arange(24.0).reshape(2, 3, 4) + (k >= 2) * off * (k == 2) for k in range(4)}
        values["layer1"] = values["layer1"] * (1 + 1e-9 * off)
        values[HOSTILE] = np.ones((2, 2)) + off
        np.savez(self.root / name, **values)

    def run_plumb(self, *words: object) -> None:
        done = subprocess.run([str(PLUMB), "plot", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, cwd=self.root)
        self.code, self.errors = done.returncode, done.stderr

    def draw(self, *words: Any) -> xml.Element:
        self.run_plumb("bad.npz", "good.npz", "-o", "x.svg", *words)
        self.assertEqual(self.code, 0, self.errors)
        return xml.parse(self.root / "x.svg").getroot()

    def texts(self, root: xml.Element) -> List[str]:
        return [text.text or "" for text in root.iter(f"{SVG}text")]

    def test_network(self) -> None:
        root = self.draw()
        texts = self.texts(root)
        self.assertIn("Error along the network", texts)
        self.assertTrue(any(text.startswith("layer2: ") for text in texts), texts)
        self.assertTrue(any(text.startswith(HOSTILE.replace("\x1b", "\ufffd")) for text in texts), texts)
        self.assertEqual([one.tag for one in root.iter() if "script" in one.tag], [])
        marks = [one for one in root.iter(f"{SVG}path") if one.get("class") == "bad"]
        self.assertEqual(len(marks), 3)

    def test_page(self) -> None:
        """A page that compare wrote gives the drawings that its two runs give."""
        done = subprocess.run([str(PLUMB), "compare", "bad.npz", "good.npz", "--report", "r.html"], cwd=self.root,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        for words in ((), ("--tensor", "layer2"), ("--tensor", "layer2", "--axes", "0,2"), ("--title", HOSTILE)):
            drawn = self.draw(*words)
            self.run_plumb("r.html", "-o", "y.svg", *words)
            self.assertEqual(self.code, 0, self.errors)
            again = xml.parse(self.root / "y.svg").getroot()
            shapes = [[(one.tag, one.attrib, one.text) for one in root.iter() if one.get("y") != "42"][3:]
                      for root in (drawn, again)]
            if words[:1] == ("--tensor",):  # to within the step of the colours
                self.assertEqual(self.texts(again), self.texts(drawn))
            else:
                self.assertEqual(shapes[0], shapes[1])
                self.assertIn("Comparison of two runs: 2 of 5 tensors fail.", self.texts(again))

    def test_page_refuses(self) -> None:
        (self.root / "none.html").write_text("<html></html>", "utf-8")
        self.run_plumb("none.html")
        self.assertEqual(self.code, 2)
        self.assertEqual(self.errors, "plumb: none.html: this is no page that --report wrote, or it is damaged\n")
        self.run_plumb("bad.npz")
        self.assertEqual(self.code, 2)
        self.assertIn("GOLDEN is missing", self.errors)
        subprocess.run([str(PLUMB), "compare", "bad.npz", "good.npz", "--report", "r.html"], cwd=self.root,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.run_plumb("r.html", "--tensor", "layer9")
        self.assertEqual(self.code, 2)
        self.assertIn("has no tensor 'layer9'; of those that it has (2) the first is 'layer2'", self.errors)
        self.run_plumb("r.html", "--verdict", "both")
        self.assertEqual(self.code, 2)
        (self.root / "t.csv").write_text("name,Status\na,pass\n", "utf-8")
        subprocess.run([str(PLUMB), "report", "t.csv", "-o", "c.html"], cwd=self.root, stderr=subprocess.DEVNULL)
        self.run_plumb("c.html")
        self.assertEqual((self.code, "no calls to draw" in self.errors), (2, True))
        self.assertFalse((self.root / "plot.svg").exists())

    def test_tensor(self) -> None:
        texts = self.texts(self.draw("--tensor", "layer2"))
        self.assertIn("layer2", texts)
        self.assertIn("largest error 0.5 at [0, 0, 0]: 0.5 in place of 0", texts)
        self.assertIn("axis 1, 0 to 2", texts)
        self.assertIn("axis 0, 0 to 1", self.texts(self.draw("--tensor", "layer2", "--axes", "0,2")))
        self.assertIn("mine", self.texts(self.draw("--tensor", HOSTILE, "--title", "mine")))
        self.assertIn("no error", self.texts(self.draw("--tensor", "layer0")))

    def test_refuses(self) -> None:
        for words, why in ((("--tensor", "none"), "has no tensor 'none'"), (("--axes", "0,1"), "--axes needs --tensor"),
                           (("--tensor", "layer2", "--axes", "7,8"), "no map over axes 7 and 8"),
                           (("--tensor", "layer2", "--axes", "x"), "--axes takes two numbers"),
                           (("-o", "x.png"), "drawings are .svg files"),
                           (("--tensor", "layer2", "--verdict", "both"), "--verdict has no effect")):
            self.run_plumb("bad.npz", "good.npz", *words)
            self.assertEqual(self.code, 2)
            self.assertIn(why, self.errors)
        self.assertEqual(list(self.root.glob("*.svg")), [])


if __name__ == "__main__":
    unittest.main()
